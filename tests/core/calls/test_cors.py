"""Which pages may call, and what their browsers are told: to the header, for browsers go by nothing else."""

import pytest

from postern.core.calls.call import Call
from postern.core.calls.cors import Cors, is_preflight, origin_problem

SHOP = b"https://shop.example.com"


def call(method: str = "POST", **headers: bytes) -> Call:
    given = tuple((name.replace("_", "-").encode(), value) for name, value in headers.items())
    return Call(method, b"/webhook/x", b"", given, b"", "203.0.113.9", 0.0, "")


@pytest.mark.parametrize(
    ("listed", "told", "credentials"),
    [(SHOP.decode(), SHOP, [(b"access-control-allow-credentials", b"true")]), ("*", b"*", [])],
)
def test_a_page_may_read_and_send_credentials_where_it_is_listed_by_name(
    listed: str, told: bytes, credentials: list[tuple[bytes, bytes]]
) -> None:
    assert Cors((listed,)).headers(call(origin=SHOP)) == [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", told),
        *credentials,
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
    for name, value in asks.items():
        assert not is_preflight(call("OPTIONS", **{name: value}))


def test_an_origin_is_one_that_a_browser_sends() -> None:
    for origin in ("*", "https://a.example", "http://[::1]:3000", "https://*.Example.com"):
        assert origin_problem(origin) is None
    for origin in ("a.example", "https://a.example/", "https://*.com", "ftp://a.example", ""):
        assert "write an origin" in (origin_problem(origin) or "")
