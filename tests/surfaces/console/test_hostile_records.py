"""Whatever strangers sent and users did, each page of the console shows it."""

from urllib.parse import urlsplit

import pytest

from postern.surfaces.console.routes import VIEWS
from support.client import Client, admin_of
from support.program import Program
from support.reply import HttpReply

NAMES = [
    "<script>alert(1)</script>",
    "{{ 7 * 7 }}{% x %}",
    "\u0645\u0631 \U0001f642",
    "' or 1=1 --",
    "…" * 200,
]
BODIES = [
    b"",
    b"null",
    b"[]",
    b'[{"a": 1}]',
    b'{"": {"": [[], {}, null, true, 1e999, "\\ud83d"]}}',
    b'{"items": 1, "keys": 2, "values": 3, "get": 4, "__class__": 5}',
    b'{"a.b[0]\\\\": "<script>", "\\u0000": "\\u0000", "a": "\xe2\x80\xae"}',
    b'{"a": %s}' % (b"9" * 5000),
    b'{"a": %s1%s}' % (b"[" * 99, b"]" * 99),
    b'{"a": %s1%s}' % (b"[" * 5000, b"]" * 5000),
    b"\xff\xfe\x00",
    b"a=1&a=2&=%00&%ff=%",
]
HEADERS: list[dict[str, str]] = [
    {},
    {"X-Many": "\xff\x80 <b>", "Signature": "'\"", "X-Empty": ""},
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "a" * 3000, "X-Signature": "\x85" * 300},
]
QUERIES = ["", "?%", "?%ff=%00&<x>&=&token", "?" + "a=1&" * 1000]
METHODS = [
    {"method": "none"},
    {"method": "token", "token": "a token of the tests", "placement": "url"},
    {
        "method": "hmac",
        "provider": "shopify",
        "secret": "a secret of the tests",
        "secondSecret": "another one",
    },
    {
        "method": "hmac",
        "provider": "custom",
        "secret": "a secret of the tests",
        "scheme": {"signature": "header:X-Signature", "signedContent": "{bodyfield:a.b}{query:token}"},
    },
]


@pytest.fixture(scope="module")
def known(program: Program) -> dict[str, list[str]]:
    """What the pages' addresses name."""
    api = admin_of(program)
    webhooks, replays = [], []
    for name, method in zip(NAMES, [*METHODS, METHODS[0]], strict=True):
        made = done(api.post("webhooks", {"name": name[:100], "authentication": method})).json
        webhooks.append(made["id"])
        for number, body in enumerate(BODIES):
            query, headers = QUERIES[number % len(QUERIES)], HEADERS[number % len(HEADERS)]
            assert Client(program.port).post(urlsplit(made["url"]).path + query, body, **headers).status < 500
    recorded = api.get("invocations?limit=200").json["items"]
    calls = [one["id"] for one in recorded]
    accepted = [one["id"] for one in recorded if one["code"] == "accepted"][:3]
    everything_done(api, webhooks, accepted)
    for wanted in (
        {},
        {"webhookId": webhooks[0]},
        {"code": "malformed_json", "since": "2020-01-01T00:00:00Z"},
    ):
        replays.append(done(api.post("replays", {"filter": wanted})).json["id"])
    done(api.post(f"replays/{replays[0]}/run"))
    api.post(f"replays/{replays[0]}/cancel")  # it may be over
    return {"webhook": webhooks, "invocation": calls, "replay": replays}


def everything_done(api: Client, webhooks: list[str], accepted: list[str]) -> None:
    """One note in the audit log of each kind that can be had."""
    for number, settings in enumerate(
        [
            {"fieldMapping": {"fieldOne": "a\\.b[0]", "fieldTwo": None}, "ipAllowlist": ["127.0.0.0/8"]},
            {"cors": {"enabled": True, "origins": ["https://a.example"]}, "name": "b" * 100},
            {"duplicateProtection": {"enabled": True, "key": "header:X-Many"}, "historyRetentionDays": 3},
            {"schedule": {"url": "https://orders.invalid/x?a=<b>", "every": "1d", "headers": {"X-A": "b"}}},
        ]
    ):
        done(api.patch(f"webhooks/{webhooks[number]}", settings))
    api.post(f"webhooks/{webhooks[3]}/schedule/run")
    done(api.post(f"webhooks/{webhooks[2]}/promote?now=true"))
    for verb in ("disable", "enable", "hold", "release"):
        done(api.post(f"webhooks/{webhooks[0]}/{verb}"))
    done(api.post(f"invocations/{accepted[0]}/replay"))
    done(api.post("api-keys", {"name": NAMES[0], "level": "read"}))
    user = done(
        api.post("users", {"name": "<b>", "password": "a password of the tests", "level": "read"})
    ).json
    done(api.patch(f"users/{user['id']}", {"level": "write"}))


def done(reply: HttpReply) -> HttpReply:
    assert reply.status < 300, reply.text
    return reply


NO_PAGE = {"/live/stream", "/calls/{invocation}/body"}
"""A stream, and bytes as they came: `test_call_page.py` downloads them."""


@pytest.mark.parametrize(
    "path", [path for method, path, _ in VIEWS if method == "GET" and path not in NO_PAGE]
)
def test_no_page_fails_on_what_is_recorded(visitor: Client, known: dict[str, list[str]], path: str) -> None:
    for address in addresses(path, known):
        reply = visitor.get(address)
        assert reply.status in (200, 303, 404, 409, 422), (address, reply.status)


def addresses(path: str, known: dict[str, list[str]]) -> list[str]:
    if "{answer}" in path:
        return [path.format(answer=answer) for answer in ("tool", "signed", "browser", "schedule", "other")]
    for name, ids in known.items():
        if (place := "{" + name + "}") in path:
            return [path.replace(place, one) for one in ids]
    asked = {
        "/calls": [*(f"?live=1&webhook={one}" for one in known["webhook"]), "?search=%3Cb%3E"],
        "/tester": [f"?what=recorded&webhook={one}" for one in known["webhook"]],
    }
    return [path, *(path + query for query in asked.get(path, []))]
