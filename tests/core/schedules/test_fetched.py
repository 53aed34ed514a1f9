"""What a schedule has fetched becomes calls."""

from postern.core.schedules import MOST_ELEMENTS, calls_in


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


def test_an_array_of_more_elements_than_one_run_takes_starts_nothing() -> None:
    def divided(elements: int) -> object:
        return calls_in(
            "https://example.com", "example.com", (), b"[" + b",".join([b"{}"] * elements) + b"]", 7.0, True
        )

    found = divided(MOST_ELEMENTS)
    assert isinstance(found, list) and len(found) == MOST_ELEMENTS
    assert "at most 2000" in str(divided(MOST_ELEMENTS + 1))


def test_how_the_bytes_travelled_is_no_part_of_the_call() -> None:
    travelled = ("content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive")
    headers = (*((name.encode(), b"1") for name in travelled), (b"etag", b'"1"'))
    found = calls_in("https://example.com", "example.com", headers, b"{}", 7.0, False)
    assert not isinstance(found, str) and found[0].headers == ((b"etag", b'"1"'),)
    assert (found[0].address, found[0].received_at) == ("example.com", 7.0)
