"""The answer of a schedule's source becomes calls."""

from postern.core.calls.call import Call, Headers
from postern.core.schedules import MOST_ELEMENTS, parts_of


def fetched(body: bytes, headers: Headers = ()) -> Call:
    return Call("GET", b"https://example.com", b"", headers, body, "example.com", 7.0)


def test_an_array_is_divided_where_that_was_chosen() -> None:
    (whole,) = parts_of(fetched(b"[1]"), False)
    assert isinstance(whole, Call) and whole.body == b"[1]"
    found = parts_of(fetched(b" [{}, {}]"), True)
    assert not isinstance(found, str)
    assert [call.body for call in found] == [b"{}", b"{}"]
    assert "not valid JSON" in str(parts_of(fetched(b"[1,"), True))


def test_an_array_of_more_elements_than_one_run_takes_starts_nothing() -> None:
    def divided(elements: int) -> object:
        return parts_of(fetched(b"[" + b",".join([b"{}"] * elements) + b"]"), True)

    found = divided(MOST_ELEMENTS)
    assert isinstance(found, list) and len(found) == MOST_ELEMENTS
    assert "at most 2000" in str(divided(MOST_ELEMENTS + 1))


def test_how_the_bytes_travelled_is_no_part_of_the_call() -> None:
    travelled = ("content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive")
    headers = (*((name.encode(), b"1") for name in travelled), (b"etag", b'"1"'))
    found = parts_of(fetched(b"{}", headers), False)
    assert not isinstance(found, str) and found[0].headers == ((b"etag", b'"1"'),)
    assert (found[0].address, found[0].received_at) == ("example.com", 7.0)
