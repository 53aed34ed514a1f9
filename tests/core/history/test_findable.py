"""By what a call is found at once."""

from postern.core.history.findable import LONGEST, address_key, beginning_key, keys_of, value_key


def test_a_value_is_found_in_capitals_or_not_and_by_its_beginning_where_it_is_long() -> None:
    assert value_key(" Order 7 ") == value_key("order 7") != value_key("order 70")
    long = "x" * LONGEST
    assert value_key(long + "y") == value_key(long + "z") == value_key(long)
    assert value_key(long[:-1] + "y") != value_key(long)
    assert value_key("\ud800") == value_key("?")


def test_a_star_at_the_end_asks_for_a_beginning() -> None:
    for value in ("ORDER 7", "order 70"):
        assert value_key(value).startswith(beginning_key(" Order 7* ") or b"-")
    assert not value_key("order 8").startswith(beginning_key("order 7*") or b"")
    for whole in ("*", " * ", "", "order", "*order"):
        assert beginning_key(whole) is None


def test_an_address_is_no_value() -> None:
    assert address_key(" 2001:DB8::1 ") == address_key("2001:db8::1") != value_key("2001:db8::1")
    assert address_key("\ud800") == address_key("?")
    keys = keys_of("192.0.2.1", ["a", " ", "", "A", "b"])
    assert keys == {address_key("192.0.2.1"), value_key("a"), value_key("b")}
