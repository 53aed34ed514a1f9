"""Rejected calls are counted as they come, so that a flood is trimmed at once."""

from postern.core.operations.retention import REJECTED_BYTES
from postern.usecases.runtime.process import TRIM_AFTER, Rejections


def test_a_webhook_is_trimmed_after_so_many_bytes_and_until_then_takes_no_more_than_there_is_room() -> None:
    rejections = Rejections()
    for _ in range(2):
        assert rejections.find_room("wh_1", TRIM_AFTER - 1) and rejections.find_room("wh_2", 1)
        assert (rejections.any_full.is_set(), rejections.take()) == (False, [])
        assert rejections.find_room("wh_1", REJECTED_BYTES - TRIM_AFTER + 1)
        assert not rejections.find_room("wh_1", 1)
        assert rejections.any_full.is_set()
        assert (rejections.take(), rejections.any_full.is_set(), rejections.take()) == (["wh_1"], False, [])
