"""What a sender failed to deliver comes back by its own button, and starts once. Each sender's API is stood in for by a small
server, written from its documents: docs.github.com (repository webhooks), docs.gitlab.com (project webhooks API),
developer.paddle.com (notifications), resend.com/docs (webhook events), docs.stripe.com (events)."""

import json
import random
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.making import Draft, Occasion, signed
from postern.usecases.access import audit
from postern.usecases.sending_again.asking import SendAgainRequest, send_again
from postern.usecases.webhooks import webhooks
from stand_in import Received, Reply, stand_in
from support.house import OWNER, House, a_house
from support.refusals import fields_refused, refused

pytestmark = pytest.mark.anyio

SECRET = {"github": "gh-secret-0123456789", "gitlab": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "paddle": "pdl_ntfset_01_secret_0123456789", "resend": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "stripe": "whsec_abcdefghijklmnop0123456789abcdef"}  # fmt: skip
ACCOUNT = {"github": "repos/acme/shop", "gitlab": "projects/acme/shop"}
PAGE = 10


class Vendor:
    """It has events, tries to deliver each, and lists its tries, the newest first. A third of the tries never arrive."""

    def __init__(self, name: str, house: House) -> None:
        self.name, self.house = name, house
        self.chance = random.Random(20261124)
        self.url = ""
        self.tries: list[dict[str, Any]] = []
        self.asked = 0
        self.unhurried = 10**9

    async def deliver(self, event: int, origin: str = "event") -> None:
        preset = presets.get(self.name)
        sample = preset.samples[0]
        now = self.house.gateway.clock()
        occasion = Occasion(
            now, sha256(b"%d" % event).digest(), "https://hooks.example.com", urlsplit(self.url).path
        )
        made = signed(
            SignatureCredential(preset.scheme, SECRET[self.name].encode()),
            Draft(sample.headers, sample.body.encode(), sample.event), occasion, {"number": event},
        )  # fmt: skip
        arrives = self.chance.random() > 0.3
        if arrives:
            answer = await self.house.call(
                self, made.body, headers={name.lower(): value for name, value in made.headers}
            )
            assert answer.status == 200, answer.body
        self.tries.insert(
            0, {"event": event, "id": 1000 + len(self.tries), "ok": arrives, "at": now, "origin": origin}
        )

    async def answer(self, request: Received) -> Reply:
        assert "secret-token" in str(request.headers), "each request carries the token"
        target = urlsplit(request.target)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        if request.method == "POST":
            self.asked += 1
            if self.asked % self.unhurried == 0:
                return Reply(429, {"Retry-After": "7"})
            one = next(one for one in self.tries if str(one["id"]) in target.path.split("/"))
            await self.deliver(one["event"], "replay")
            return Reply(202, body=b"{}")
        if not target.path.endswith(("deliveries", "events", "notifications")):
            return self.hooks(target.path)
        after = int(
            query.get("cursor") or query.get("page") or query.get("after") or query.get("starting_after") or 0
        )
        rows = self.tries[after : after + PAGE]
        more = after + PAGE if after + PAGE < len(self.tries) else 0
        return getattr(self, f"{self.name}_page")(rows, more)

    def hooks(self, path: str) -> Reply:
        names = {"github": "config", "gitlab": "url", "paddle": "destination", "resend": "endpoint"}
        field = names[self.name]
        rows = [
            {"id": number, field: {"url": url} if field == "config" else url}
            for number, url in ((1, "https://elsewhere.example.com"), (2, self.url))
        ]
        return Reply(body=json.dumps({"data": rows} if self.name in ("paddle", "resend") else rows).encode())

    def github_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        link = f'<https://evil.example.com/?cursor={more}>; rel="next"' if more else ""
        shown = [{"id": one["id"], "guid": f"g{one['event']}", "delivered_at": iso(one["at"]), "status_code": 200 if one["ok"] else 502, "event": "push", "action": None} for one in rows]  # fmt: skip
        return Reply(200, {"Link": link}, json.dumps(shown).encode())

    def gitlab_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        shown = [{"id": one["id"], "trigger": "push_hooks", "request_headers": {"Idempotency-Key": f"k{one['event']}"}, "response_headers": {"Date": formatdate(one["at"], usegmt=True)} if one["ok"] else {}, "response_status": "200" if one["ok"] else "internal error"} for one in rows]  # fmt: skip
        return Reply(200, {"X-Next-Page": str(more or "")}, json.dumps(shown).encode())

    def paddle_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        shown = [{"id": one["id"], "event_id": f"evt_{one['event']}", "type": "transaction.completed", "status": "delivered" if one["ok"] else "failed", "origin": one["origin"], "occurred_at": iso(one["at"])} for one in rows]  # fmt: skip
        pages = {"next": f"https://evil.example.com/?after={more}", "has_more": bool(more)}
        return Reply(body=json.dumps({"data": shown, "meta": {"pagination": pages}}).encode())

    def resend_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        newest = {one["event"]: one for one in reversed(self.tries)}
        listed = sorted(newest.values(), key=lambda one: -one["event"])
        shown = [{"id": one["id"], "type": "email.sent", "created_at": iso(one["at"]), "status": "success" if one["ok"] else "failed"} for one in listed]  # fmt: skip
        return Reply(body=json.dumps({"data": shown, "has_more": False}).encode())

    def stripe_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        shown = [{"id": one["id"], "type": "charge.succeeded", "created": int(one["at"]), "pending_webhooks": 0} for one in self.tries if not one["ok"]]  # fmt: skip
        return Reply(body=json.dumps({"data": shown, "has_more": False}).encode())


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house:
        yield house


async def set_up(house: House, vendor: Vendor, api: str, **settings: Any) -> Any:
    webhook = await house.webhook(
        authentication={"method": "hmac", "provider": vendor.name, "secret": SECRET[vendor.name]},
        duplicateProtection={"enabled": True},
        sendAgain={"account": ACCOUNT.get(vendor.name, ""), "api": api, "token": "secret-token"},
        fieldMapping={"fieldOne": "number"},
        **settings,
    )
    vendor.url = webhook.url
    for event in range(40):
        await vendor.deliver(event)
    return webhook


def asked(dry_run: bool = False) -> SendAgainRequest:
    return SendAgainRequest(since="2h", dry_run=dry_run)


@pytest.mark.parametrize("name", ["github", "gitlab", "paddle", "resend"])
async def test_in_the_end_all_has_come_and_nothing_has_started_twice(house: House, name: str) -> None:
    vendor = Vendor(name, house)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        vendor.unhurried = 4
        missing = {one["event"] for one in vendor.tries if not one["ok"]}
        assert 5 < len(missing) < 20
        tried = await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
        assert len(tried.asked) == len(missing) and len(vendor.tries) == 40
        waits = []
        for _ in range(40):
            done = await send_again(house.gateway, OWNER, webhook.id, asked())
            waits.append(done.retry_after_seconds)
            if not done.asked and not done.left:
                break
        assert 7.0 in waits, "the sender was asked less often when it wanted that"
    notes = (await audit.listing(house.gateway, OWNER)).items
    assert {note.action for note in notes} == {"webhook created", "sender asked to send again"}
    await house.deliver()
    started = [one.fields["fieldOne"] for one in house.engine.started.values()]
    assert sorted(started, key=int) == [str(event) for event in range(40)]


async def test_gitlab_which_tells_no_times_is_asked_for_what_came_after_the_last_answer_before_since(
    house: House,
) -> None:
    vendor, clock = Vendor("gitlab", house), house.gateway.clock
    async with stand_in(vendor.answer) as server:
        house.gateway.clock = lambda: clock() - 86_400
        webhook = await set_up(house, vendor, server.url)
        house.gateway.clock = clock
        for event in range(40, 60):
            await vendor.deliver(event)
        told = await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
    last = max(one["event"] for one in vendor.tries if one["ok"] and one["event"] < 40)
    missing = {f"k{one['event']}" for one in vendor.tries if not one["ok"] and one["event"] > last}
    assert {one.event for one in told.asked} == missing
    assert all("per_page=20" in one.target for one in server.received if "/events" in one.target)


async def test_what_is_still_tried_is_not_asked_for_and_what_can_only_be_listed_is_listed(
    house: House,
) -> None:
    vendor = Vendor("stripe", house)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
    failed = [str(one["id"]) for one in vendor.tries if not one["ok"]]
    assert [one.event for one in told.asked] == failed and "stripe events resend" in (told.by_hand or "")
    assert all(one.method == "GET" for one in server.received)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Reply(401, body=b"secret-token"), "answered 401: the account or the token"),
        (Reply(500), "answered 500"),
        (Reply(200, body=b"<html>"), "did not answer with JSON"),
        (Reply(302, {"Location": "http://169.254.169.254/"}), "redirect"),
        (Reply(200, body=b"[]"), "knows no webhook with the URL"),
        (Reply(200, body=b'[1,{"config":7}]'), "knows no webhook"),
        (Reply(429), "the next request in 60 s"),
    ],
)
async def test_a_sender_that_does_not_help_is_told_without_the_token(
    house: House, answer: Reply, said: str
) -> None:
    vendor = Vendor("github", house)
    async with stand_in(lambda _: answer) as server:
        webhook = await set_up(house, vendor, server.url)
        detail = (await refused(send_again(house.gateway, OWNER, webhook.id, asked()))).detail
    assert said in detail and "secret-token" not in detail


async def test_a_github_app_shows_a_token_that_its_key_has_signed(house: House) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    vendor = Vendor("github", house)
    async with stand_in(lambda _: Reply(200, body=b"[]")) as server:
        webhook = await set_up(house, vendor, server.url)
        app = {"account": "app/77", "api": server.url, "token": pem.decode()}
        await webhooks.change(house.gateway, OWNER, webhook.id, {"sendAgain": app})
        assert (await send_again(house.gateway, OWNER, webhook.id, asked())).asked == []
    (request,) = server.received
    assert request.headers["x-github-api-version"] == "2022-11-28"
    shown = request.headers["authorization"].removeprefix("Bearer ")
    head, claims, signature = (urlsafe_b64decode(part + "==") for part in shown.split("."))
    key.public_key().verify(signature, shown.rpartition(".")[0].encode(), padding.PKCS1v15(), hashes.SHA256())
    assert request.target.startswith("/app/hook/deliveries") and json.loads(head)["alg"] == "RS256"
    assert json.loads(claims)["iss"] == "77"


async def test_the_token_goes_where_it_was_given_for_and_nowhere_else(house: House) -> None:
    vendor = Vendor("github", house)
    webhook = await set_up(house, vendor, "https://api.example.com")
    for patch, field in (
        ({"api": "https://evil.example.com"}, "token"),
        ({"account": "repos/../x"}, "account"),
    ):
        asking = webhooks.change(house.gateway, OWNER, webhook.id, {"sendAgain": patch})
        assert list(await fields_refused(asking)) == [f"sendAgain.{field}"]
    shown = await webhooks.show(house.gateway, OWNER, webhook.id)
    assert "secret-token" not in repr(shown)
    await webhooks.change(house.gateway, OWNER, webhook.id, {"sendAgain": None})
    with pytest.raises(Refused, match="sendAgain is not set"):
        await send_again(house.gateway, OWNER, webhook.id, asked())
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"method": "none"}})
    with pytest.raises(Refused, match="cannot ask this"):
        await send_again(house.gateway, OWNER, webhook.id, asked())
    with pytest.raises(Refused):
        await send_again(house.gateway, Actor("reader", "read"), webhook.id, asked())


async def test_a_sender_without_any_list_says_what_to_do(house: House) -> None:
    webhook = await house.webhook(
        authentication={"method": "hmac", "provider": "shopify", "secret": "a" * 32}
    )
    told = await send_again(house.gateway, OWNER, webhook.id, asked())
    assert told.asked == [] and "Shopify sends no webhook again" in (told.by_hand or "")
