"""What may be stored, on one line, and on a terminal."""

import pytest

from postern.core.visible import can_be_stored, on_one_line, visible

FAMILY, PERSIAN = "👩\u200d👧 shop", "فروشگاه\u200cها"


@pytest.mark.parametrize("text", ["Orders", FAMILY, PERSIAN])
def test_names_in_all_scripts_are_taken_and_shown_as_they_are(text: str) -> None:
    assert on_one_line(text)
    assert visible(text) == text


@pytest.mark.parametrize(
    "text", ["", " ", "\u200d", " \u200c ", "a\nb", "a\u202eb", "a\u200bb", "\x1b[1m", "a\ufeffb"]
)
def test_what_nobody_sees_or_what_turns_the_line_around_is_no_name(text: str) -> None:
    assert not on_one_line(text)


def test_what_no_database_takes_is_known_before_it_is_asked() -> None:
    assert all(map(can_be_stored, ("", FAMILY, PERSIAN, "\x1b[1m\n", "\ud7ff\ue000")))
    assert not any(map(can_be_stored, ("a\0b", "\ud800", "\udfff", "\ud83d smile")))
