"""A call's headers and query, looked up."""

from support.calls import call


def test_a_repeated_header_is_several_values() -> None:
    sent = call(b"{}", ("X-One", "1"), ("X-Two", "a"), ("X-Two", "b"))
    assert sent.header(b"x-one") == [b"1"]
    assert sent.header(b"x-two") == [b"a", b"b"]
    assert sent.first_header(b"x-two") == b"a"
    assert sent.header(b"x-three") == []
    assert sent.first_header(b"x-three") is None


def test_a_call_that_differs_is_looked_up_anew() -> None:
    sent = call(b"{}", ("X-One", "1"), query=b"a=1")
    assert sent.header(b"x-one") == [b"1"]
    assert sent.query_pairs == [(b"a", b"1")]
    other = sent.but(query=b"b=2", headers=((b"x-one", b"2"),))
    assert other.header(b"x-one") == [b"2"]
    assert other.query_pairs == [(b"b", b"2")]
    assert sent.header(b"x-one") == [b"1"]
