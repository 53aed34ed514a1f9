"""What a click in a rejected call's story puts right."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT
from support.client import Client
from support.reply import HttpReply
from support.wire import exchange
from surfaces.console.conftest import Outside


@pytest.mark.parametrize(
    ("settings", "sent", "kind", "label", "field", "before", "after"),
    [
        ({"enabled": False}, {}, "enable", "Enable the webhook", "enabled", False, True),
        (
            {"ipAllowlist": ["192.0.2.1"]},
            {},
            "allow-address",
            "Allow 127.0.0.1",
            "ipAllowlist",
            ["192.0.2.1"],
            ["192.0.2.1", "127.0.0.1"],
        ),
        (
            {"cors": {"enabled": True, "origins": ["https://a.example"]}},
            {"Origin": "https://b.example"},
            "allow-origin",
            "Allow https://b.example",
            "cors",
            {"enabled": True, "origins": ["https://a.example"]},
            {"enabled": True, "origins": ["https://a.example", "https://b.example"]},
        ),
    ],
)
def test_a_click_lets_the_next_call_in_and_a_second_one_changes_nothing(
    visitor: Client,
    outside: Outside,
    settings: dict[str, Any],
    sent: dict[str, str],
    kind: str,
    label: str,
    field: str,
    before: Any,
    after: Any,
) -> None:
    made = outside.webhook(**settings)
    assert made[field] == before
    status, refused = outside.call(made["url"], **sent)
    assert status in (403, 404, 410), refused
    call = refused["invocationId"]
    page = visitor.get(f"/calls/{call}").text
    assert label in page and f'value="{kind}"' in page
    assert fixed(visitor, call, kind).status == 303
    assert outside.settings_of(made)[field] == after
    assert outside.call(made["url"], **sent)[0] == 200
    assert f'value="{kind}"' not in visitor.get(f"/calls/{call}").text
    assert fixed(visitor, call, kind).status == 404
    assert outside.settings_of(made)[field] == after


def fixed(visitor: Client, call: str, kind: str = "raise-limit") -> HttpReply:
    return visitor.submit(f"/calls/{call}/fix", {"kind": kind})


def too_large(outside: Outside, size: int, in_pieces: bool = False) -> tuple[dict[str, Any], str]:
    """A webhook and a call to it that were rejected for their size; no more than its head and a piece is sent."""
    made = outside.webhook(payloadLimitBytes=1024)
    length = ("Transfer-Encoding", "chunked") if in_pieces else ("Content-Length", str(size))
    body = b"%x\r\n%s\r\n" % (size, b"x" * size) if in_pieces else b""
    headers = [("Content-Type", "application/json"), length]
    reply = exchange(outside.program.port, "POST", urlsplit(made["url"]).path, headers, body)
    assert reply.status == 413
    return made, reply.headers["x-invocation-id"]


@pytest.mark.parametrize("in_pieces", [False, True])
def test_the_payload_limit_is_doubled_up_to_the_largest(
    visitor: Client, outside: Outside, in_pieces: bool
) -> None:
    largest = LARGEST_PAYLOAD_LIMIT
    webhook, call = too_large(outside, 1500 if in_pieces else largest, in_pieces)
    assert fixed(visitor, call).status == 303
    assert outside.settings_of(webhook)["payloadLimitBytes"] == 2048
    outside.api.patch(f"webhooks/{webhook['id']}", {"payloadLimitBytes": largest - 1})
    assert fixed(visitor, call).status == 303
    assert outside.settings_of(webhook)["payloadLimitBytes"] == largest
    assert fixed(visitor, call).status == 404


def test_a_limit_into_which_the_call_fits_is_not_raised_further(visitor: Client, outside: Outside) -> None:
    webhook, call = too_large(outside, 2048)
    assert "Double the payload limit" in visitor.get(f"/calls/{call}").text
    assert fixed(visitor, call).status == 303
    assert "Double the payload limit" not in visitor.get(f"/calls/{call}").text
    assert fixed(visitor, call).status == 404
    assert outside.settings_of(webhook)["payloadLimitBytes"] == 2048


def test_a_call_offers_no_other_fix_than_its_own(visitor: Client, outside: Outside) -> None:
    made = outside.webhook(enabled=False)
    call = outside.called(made["url"])
    for kind in ("allow-address", "raise-limit", "", "lost"):
        refused = fixed(visitor, call, kind)
        assert refused.status == 404 and "nothing left to put right" in refused.text
    assert outside.settings_of(made)["version"] == made["version"]
