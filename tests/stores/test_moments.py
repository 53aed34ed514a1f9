"""Times in the tables: what is written, and what is found again."""

from decimal import Decimal

from postern.stores.sql.moments import milliseconds, seconds, stored
from postern.stores.sql.tables import metadata


def test_a_moment_that_was_read_is_found_again() -> None:
    for written in (1_764_000_000_001, 2_152_043_668_923, 2_187_813_133_857):
        assert stored(seconds(written)) == written
    assert milliseconds(seconds(2_152_043_668_923)) == 2_152_043_668_922


def test_a_moment_is_written_as_the_millisecond_that_has_begun() -> None:
    assert milliseconds(1.0019) == 1001
    assert seconds(None) is None


def test_no_column_holds_a_number_with_a_fraction() -> None:
    """In what is read from a row, each float is a time: a share would be taken for milliseconds."""
    fractions = (float, Decimal)
    columns = [column for table in metadata.tables.values() for column in table.columns]
    assert columns and not [str(column) for column in columns if column.type.python_type in fractions]
