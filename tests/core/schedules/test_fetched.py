"""What a schedule has fetched becomes calls."""

from postern.core.schedules.fetched import calls_in


def test_an_answer_is_one_call_and_its_address_leaves_the_query_out() -> None:
    found = calls_in("https://example.com/ä?key=1", "example.com", (), b"[1]", 7.0, False)
    assert not isinstance(found, str)
    (call,) = found
    assert (call.method, call.path, call.query, call.body) == ("GET", b"https://example.com/?", b"", b"[1]")


def test_an_array_is_divided_where_that_was_chosen() -> None:
    found = calls_in("https://example.com", "example.com", (), b" [{}, {}]", 7.0, True)
    assert not isinstance(found, str)
    assert [call.body for call in found] == [b"{}", b"{}"]
    assert "not valid JSON" in str(calls_in("https://example.com", "example.com", (), b"[1,", 7.0, True))
