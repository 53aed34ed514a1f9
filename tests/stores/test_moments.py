"""Times in the tables: what is written, and what is found again."""

from postern.stores.sql.moments import milliseconds, seconds, stored


def test_a_moment_that_was_read_is_found_again() -> None:
    for written in (1_764_000_000_001, 2_152_043_668_923, 2_187_813_133_857):
        assert stored(seconds(written)) == written
    assert milliseconds(seconds(2_152_043_668_923)) == 2_152_043_668_922


def test_a_moment_is_written_as_the_millisecond_that_has_begun() -> None:
    assert milliseconds(1.0019) == 1001
    assert seconds(None) is None
