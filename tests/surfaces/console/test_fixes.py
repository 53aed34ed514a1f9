"""What a click in a rejected call's story puts right."""

from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from postern.core.webhooks.webhook import LARGEST_PAYLOAD_LIMIT
from support.client import PASSWORD, Client, admin_of
from support.program import Program

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
    page = console.get(f"/history/{call}").text
    assert label in page and f'value="{kind}"' in page

    def click() -> int:
        return console.post(f"/history/{call}/fix", urlencode({"kind": kind}).encode(), **FORM).status

    assert click() == 303
    assert api.get(f"webhooks/{made['id']}").json[field] == after
    assert calling.post(urlsplit(made["url"]).path, {}).status == 200
    assert f'value="{kind}"' not in console.get(f"/history/{call}").text
    assert click() == 404
    assert api.get(f"webhooks/{made['id']}").json[field] == after


def test_the_payload_limit_is_doubled_up_to_the_largest(console: Client, program: Program) -> None:
    api = admin_of(program)
    settings = {"name": "Orders", "authentication": {"method": "none"}, "payloadLimitBytes": 1024}
    made = api.post("webhooks", settings).json
    path = urlsplit(made["url"]).path
    assert Client(program.port).post(path, {"a": "x" * 1500}).status == 413
    call = api.get(f"invocations?webhookId={made['id']}").json["items"][0]["id"]
    form = urlencode({"kind": "raise-limit"}).encode()
    assert console.post(f"/history/{call}/fix", form, **FORM).status == 303
    assert Client(program.port).post(path, {"a": "x" * 1500}).status == 200
    largest = LARGEST_PAYLOAD_LIMIT
    api.patch(f"webhooks/{made['id']}", {"payloadLimitBytes": largest - 1})
    assert console.post(f"/history/{call}/fix", form, **FORM).status == 303
    assert api.get(f"webhooks/{made['id']}").json["payloadLimitBytes"] == largest
    assert console.post(f"/history/{call}/fix", form, **FORM).status == 404


def test_a_call_offers_no_other_fix_than_its_own(console: Client, program: Program) -> None:
    api = admin_of(program)
    settings = {"name": "Orders", "authentication": {"method": "none"}, "enabled": False}
    made = api.post("webhooks", settings).json
    Client(program.port).post(urlsplit(made["url"]).path, {})
    call = api.get(f"invocations?webhookId={made['id']}").json["items"][0]["id"]
    for kind in ("allow-address", "raise-limit", "", "lost"):
        refused = console.post(f"/history/{call}/fix", urlencode({"kind": kind}).encode(), **FORM)
        assert refused.status == 404 and "nothing left to put right" in refused.text
    assert api.get(f"webhooks/{made['id']}").json["version"] == made["version"]
