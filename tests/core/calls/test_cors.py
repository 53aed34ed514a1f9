"""Which pages may call, and what their browsers are told: to the header, for browsers go by nothing else."""

import pytest

from postern.core.calls.call import Call
from postern.core.calls.cors import Cors, is_preflight, origin_problem

SHOP = b"https://shop.example.com"


def call(method: str = "POST", **headers: bytes) -> Call:
    given = tuple((name.replace("_", "-").encode(), value) for name, value in headers.items())
    return Call(method, b"/webhook/x", b"", given, b"", "203.0.113.9", 0.0, "")


def test_a_page_on_the_list_may_read_and_send_credentials() -> None:
    assert Cors((SHOP.decode(),)).headers(call(origin=SHOP)) == [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", SHOP),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", b"X-Invocation-Id, Retry-After"),
    ]


def test_where_every_page_may_call_none_sends_credentials() -> None:
    assert Cors(("*",)).headers(call(origin=SHOP)) == [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", b"*"),
        (b"access-control-expose-headers", b"X-Invocation-Id, Retry-After"),
    ]


@pytest.mark.parametrize("headers", [{}, {"origin": b"https://other.example"}])
def test_who_is_not_on_the_list_learns_only_that_it_depends_on_the_origin(headers: dict[str, bytes]) -> None:
    assert Cors((SHOP.decode(),)).headers(call(**headers)) == [(b"vary", b"Origin")]


@pytest.mark.parametrize(
    ("listed", "origin", "allowed"),
    [
        ("https://shop.example.com", b"https://SHOP.example.com", True),
        ("https://shop.example.com", b"http://shop.example.com", False),
        ("https://*.example.com", b"https://a.b.example.com", True),
        ("https://*.example.com", b"https://example.com", False),
        ("https://*.example.com", b"https://aexample.com", False),
        ("https://*.example.com", b"https://a.exampleXcom", False),
        ("https://*.example.com", b"https://a.example.com:8443", False),
        ("https://*.example.com:8443", b"https://a.example.com:8443", True),
        ("https://*.example.com", b"https://" + b"a" * 279 + b".example.com", True),
        ("https://*.example.com", b"https://" + b"a" * 280 + b".example.com", False),
    ],
)
def test_an_origin_is_on_the_list_or_not(listed: str, origin: bytes, allowed: bool) -> None:
    assert Cors((listed,)).allows(origin) is allowed


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, b"content-type"),
        ({"access_control_request_headers": b"X-Api-Key, content-type"}, b"X-Api-Key, content-type"),
        ({"access_control_request_headers": b"X-Api-Key\r\nSet-Cookie: a"}, b"content-type"),
    ],
)
def test_a_preflight_hears_what_it_may_send_and_for_how_long(
    asked: dict[str, bytes], expected: bytes
) -> None:
    assert Cors((SHOP.decode(),)).preflight(call("OPTIONS", origin=SHOP, **asked))[-3:] == [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", expected),
        (b"access-control-max-age", b"600"),
    ]


def test_a_preflight_is_what_asks_for_a_method_from_another_page() -> None:
    asks = {"origin": SHOP, "access_control_request_method": b"POST"}
    assert is_preflight(call("OPTIONS", **asks))
    assert not is_preflight(call("POST", **asks))
    for without in asks:
        assert not is_preflight(
            call("OPTIONS", **{name: value for name, value in asks.items() if name != without})
        )


@pytest.mark.parametrize("origin", ["*", "https://a.example", "http://[::1]:3000", "https://*.Example.com"])
def test_an_origin_that_can_be_is_taken(origin: str) -> None:
    assert origin_problem(origin) is None


@pytest.mark.parametrize(
    "origin", ["a.example", "https://a.example/", "https://*.com", "ftp://a.example", ""]
)
def test_one_that_no_browser_sends_is_refused(origin: str) -> None:
    assert "write an origin" in (origin_problem(origin) or "")
