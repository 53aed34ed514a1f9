"""What a click in a rejected call's story puts right."""

from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT
from support.client import PASSWORD, Client, admin_of
from support.program import Program
from support.wire import wire

FORM = {"Content_Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def console(program: Program) -> Client:
    signed_in = Client(program.port).post("sessions", {"name": "admin", "password": PASSWORD})
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    return Client(program.port, Cookie=cookie, Sec_Fetch_Site="same-origin")


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
    console: Client,
    program: Program,
    settings: dict[str, Any],
    sent: dict[str, str],
    kind: str,
    label: str,
    field: str,
    before: Any,
    after: Any,
) -> None:
    api = admin_of(program)
    made = api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}, **settings}).json
    assert made[field] == before
    calling = Client(program.port, **sent)
    refused = calling.post(urlsplit(made["url"]).path, {})
    assert refused.status in (403, 404, 410), refused.text
    call = api.get(f"invocations?webhookId={made['id']}").json["items"][0]["id"]
    page = console.get(f"/calls/{call}").text
    assert label in page and f'value="{kind}"' in page

    def click() -> int:
        return console.post(f"/calls/{call}/fix", urlencode({"kind": kind}).encode(), **FORM).status

    assert click() == 303
    assert api.get(f"webhooks/{made['id']}").json[field] == after
    assert calling.post(urlsplit(made["url"]).path, {}).status == 200
    assert f'value="{kind}"' not in console.get(f"/calls/{call}").text
    assert click() == 404
    assert api.get(f"webhooks/{made['id']}").json[field] == after


def too_large(program: Program, limit: int, size: int, in_pieces: bool = False) -> tuple[str, str]:
    """A webhook and a call to it that were rejected for their size; no more than its head and a piece is sent."""
    settings = {"name": "Orders", "authentication": {"method": "none"}, "payloadLimitBytes": limit}
    made = admin_of(program).post("webhooks", settings).json
    path = urlsplit(made["url"]).path
    length = {"Transfer-Encoding": "chunked"} if in_pieces else {"Content-Length": str(size)}
    body = b"%x\r\n%s\r\n" % (size, b"x" * size) if in_pieces else b""
    head = "".join(f"{name}: {value}\r\n" for name, value in length.items())
    with wire(program.port) as caller:
        caller.send(
            f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{head}\r\n".encode() + body
        )
        reply = caller.answer()
    assert reply is not None and reply.status == 413
    call = admin_of(program).get(f"invocations?webhookId={made['id']}").json["items"][0]["id"]
    return made["id"], call


def raised(console: Client, call: str) -> int:
    return console.post(f"/calls/{call}/fix", urlencode({"kind": "raise-limit"}).encode(), **FORM).status


@pytest.mark.parametrize("in_pieces", [False, True])
def test_the_payload_limit_is_doubled_up_to_the_largest(
    console: Client, program: Program, in_pieces: bool
) -> None:
    api, largest = admin_of(program), LARGEST_PAYLOAD_LIMIT
    webhook, call = too_large(program, 1024, 1500 if in_pieces else largest, in_pieces)
    assert raised(console, call) == 303
    assert api.get(f"webhooks/{webhook}").json["payloadLimitBytes"] == 2048
    api.patch(f"webhooks/{webhook}", {"payloadLimitBytes": largest - 1})
    assert raised(console, call) == 303
    assert api.get(f"webhooks/{webhook}").json["payloadLimitBytes"] == largest
    assert raised(console, call) == 404


def test_a_limit_into_which_the_call_fits_is_not_raised_further(console: Client, program: Program) -> None:
    webhook, call = too_large(program, 1024, 2048)
    assert "Double the payload limit" in console.get(f"/calls/{call}").text
    assert raised(console, call) == 303
    assert "Double the payload limit" not in console.get(f"/calls/{call}").text
    assert raised(console, call) == 404
    assert admin_of(program).get(f"webhooks/{webhook}").json["payloadLimitBytes"] == 2048


def test_a_call_offers_no_other_fix_than_its_own(console: Client, program: Program) -> None:
    api = admin_of(program)
    settings = {"name": "Orders", "authentication": {"method": "none"}, "enabled": False}
    made = api.post("webhooks", settings).json
    Client(program.port).post(urlsplit(made["url"]).path, {})
    call = api.get(f"invocations?webhookId={made['id']}").json["items"][0]["id"]
    for kind in ("allow-address", "raise-limit", "", "lost"):
        refused = console.post(f"/calls/{call}/fix", urlencode({"kind": kind}).encode(), **FORM)
        assert refused.status == 404 and "nothing left to put right" in refused.text
    assert api.get(f"webhooks/{made['id']}").json["version"] == made["version"]
