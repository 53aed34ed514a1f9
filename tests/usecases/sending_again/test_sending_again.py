"""What a sender failed to deliver comes back by its own button, and starts once. Each sender's API is stood in for by a small
server, written from its documents: docs.github.com (repository webhooks), docs.gitlab.com (project webhooks API),
developer.paddle.com (notifications), resend.com/docs (webhook events), docs.stripe.com (events)."""

import asyncio
import json
import random
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.making import Draft, Occasion, signed
from postern.surfaces.cli.webhooks import send_again as commands
from postern.usecases.access import audit
from postern.usecases.sending_again import senders
from postern.usecases.sending_again.asking import SETTLED, SendAgainRequest, send_again
from postern.usecases.sending_again.views import SentAgain
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook
from stand_in import Raw, Received, Reply, stand_in
from support.house import OWNER, House, a_house
from support.refusals import fields_refused, refused

pytestmark = pytest.mark.anyio

SECRET = {"github": "gh-secret-0123456789", "gitlab": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "paddle": "pdl_ntfset_01_secret_0123456789", "resend": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "stripe": "whsec_abcdefghijklmnop0123456789abcdef"}  # fmt: skip
ACCOUNT = {"github": "repos/acme/shop", "gitlab": "projects/acme/shop"}
PAGE = 10


class Vendor:
    """It has events, tries to deliver each, and lists its tries, the newest first. A third of the tries never arrive, half of these
    only seem so to it. ``faults`` is the share of requests that it answers with 502, and of those that it drops, half of them
    after it did what was asked. What it was asked for is delivered, and listed, ``lag`` seconds later."""

    def __init__(self, name: str, house: House, seed: int = 20261124) -> None:
        self.name, self.house = name, house
        self.chance = random.Random(seed)
        self.url = ""
        self.tries: list[dict[str, Any]] = []
        self.asked: list[tuple[int, int]] = []
        """Each event with the number of attempts at it until then."""
        self.due: list[tuple[float, int]] = []
        self.posts: list[float] = []
        self.a_minute = 10**9
        self.faults, self.lag, self.more_hooks = 0.0, 0.0, 0

    async def deliver(self, event: int, origin: str = "event") -> None:
        preset = presets.get(self.name)
        sample = preset.samples[0]
        now = self.house.gateway.clock()
        first = next((one["at"] for one in reversed(self.tries) if one["event"] == event), now)
        occasion = Occasion(
            # GitHub signs no time, and its bodies say when something happened.
            first if self.name == "github" else now,
            sha256(b"%d" % event).digest(),
            "https://hooks.example.com",
            urlsplit(self.url).path,
        )
        made = signed(
            SignatureCredential(preset.scheme, SECRET[self.name].encode()),
            Draft(sample.headers, sample.body.encode(), sample.event), occasion, {"number": event},
        )  # fmt: skip
        luck = self.chance.random()
        if luck > 0.15:
            answer = await self.house.call(
                self, made.body, headers={name.lower(): value for name, value in made.headers}
            )
            assert answer.status == 200, answer.body
        self.tries.insert(
            0,
            {
                "event": event,
                "id": f"msg_{event}" if self.name == "resend" else 1000 + len(self.tries),
                "ok": luck > 0.3,
                "at": now,
                "origin": origin,
            },
        )

    def missing(self) -> set[int]:
        return {one["event"] for one in self.tries} - {one["event"] for one in self.tries if one["ok"]}

    async def answer(self, request: Received) -> Reply | Raw:
        assert "secret-token" in str(request.headers), "each request carries the token"
        now, luck = self.house.gateway.clock(), self.chance.random()
        for at, event in [one for one in self.due if one[0] <= now]:
            self.due.remove((at, event))
            await self.deliver(event, "replay")
        if luck < self.faults:
            return Reply(502)
        done = await self._done(request)
        if luck < 1.5 * self.faults:
            return Raw(_dropped)
        return Raw(_cut) if luck < 2 * self.faults else done

    async def _done(self, request: Received) -> Reply:
        target, now = urlsplit(request.target), self.house.gateway.clock()
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        if request.method == "POST":
            self.posts = [at for at in self.posts if at > now - 60]
            if len(self.posts) >= self.a_minute:
                return Reply(429, {} if self.name == "gitlab" else {"Retry-After": "7"})
            self.posts.append(now)
            event = next(one["event"] for one in self.tries if str(one["id"]) in target.path.split("/"))
            newest = sum(one["event"] == event for one in self.tries)
            self.asked.append((event, newest))
            self.due.append((now + self.lag, event))
            if not self.lag:
                await self.deliver(self.due.pop()[1], "replay")
            return Reply(202, body=b"{}")
        if not target.path.endswith(("deliveries", "events", "notifications")):
            return self.hooks(query)
        if self.name in ("resend", "stripe"):
            newest_of = {one["event"]: one for one in reversed(self.tries)}
            rows = [newest_of[event] for event in sorted(newest_of, reverse=True)]
            rows = [one for one in rows if self.name == "resend" or not one["ok"]]
            known = query.get("after") or query.get("starting_after")
            after = next((at + 1 for at, one in enumerate(rows) if str(one["id"]) == known), 0)
        else:
            rows, after = self.tries, int(query.get("cursor") or query.get("page") or query.get("after") or 0)
        more = after + PAGE if after + PAGE < len(rows) else 0
        return getattr(self, f"{self.name}_page")(rows[after : after + PAGE], more)

    def hooks(self, query: dict[str, str]) -> Reply:
        names = {"github": "config", "gitlab": "url", "paddle": "destination", "resend": "endpoint"}
        field, head = names[self.name], {}
        page = int(query.get("page", "1"))
        if page * 100 < self.more_hooks:
            head = {"Link": f'<https://x.example/?page={page - 1}>; rel="prev", <https://x.example/?per_page=100&page={page + 1}>; rel="next"'}  # fmt: skip
        urls = ["https://elsewhere.example.com"] * min(self.more_hooks, 100) or ["https://elsewhere.example.com", self.url]  # fmt: skip
        if self.more_hooks and not head:
            urls = [self.url]
        rows = [
            {"id": number, field: {"url": url} if field == "config" else url}
            for number, url in enumerate(urls)
        ]
        return Reply(
            200, head, json.dumps({"data": rows} if self.name in ("paddle", "resend") else rows).encode()
        )

    def github_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        link = f'<https://evil.example.com/?per_page=100&cursor={more}>; rel="next"' if more else ""
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
        waiting = {event for _, event in self.due}
        shown = [{"id": one["id"], "type": "email.sent", "created_at": iso(one["at"]), "status": "pending" if one["event"] in waiting else "success" if one["ok"] else "failed"} for one in rows]  # fmt: skip
        return Reply(body=json.dumps({"data": shown, "has_more": bool(more)}).encode())

    def stripe_page(self, rows: list[dict[str, Any]], more: int) -> Reply:
        shown = [{"id": one["id"], "type": "charge.succeeded", "created": int(one["at"]), "pending_webhooks": 0} for one in rows]  # fmt: skip
        return Reply(body=json.dumps({"data": shown, "has_more": bool(more)}).encode())


async def _dropped(_: asyncio.StreamWriter) -> None:
    """Closes the connection without an answer."""


async def _cut(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 Said\r\nContent-Length: 100\r\n\r\n[")
    await writer.drain()


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """Its clock goes on when the command waits."""
    monkeypatch.setattr(senders, "PAUSES", (0.0,) * len(senders.PAUSES))
    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house:
        clock, waits = house.gateway.clock, list[float]()
        house.gateway.clock = lambda: clock() + sum(waits)
        loop = asyncio.get_running_loop()

        def post(_: object, *path: str, body: Any, declines: bool = False) -> SentAgain:
            asking = send_again(house.gateway, OWNER, path[1], SendAgainRequest(**body))
            return asyncio.run_coroutine_threadsafe(asking, loop).result()

        monkeypatch.setattr(commands.api, "post", post)
        monkeypatch.setattr(commands.time, "sleep", waits.append)
        yield house


async def set_up(house: House, vendor: Vendor, api: str, events: int = 30, **settings: Any) -> Any:
    webhook = await house.webhook(
        authentication={"method": "hmac", "provider": vendor.name, "secret": SECRET[vendor.name]},
        duplicateProtection={"enabled": True},
        sendAgain={"account": ACCOUNT.get(vendor.name, ""), "api": api, "token": "secret-token"},
        fieldMapping={"fieldOne": "number"},
        **settings,
    )
    vendor.url = webhook.url
    for event in range(events):
        await vendor.deliver(event)
    return webhook


def asked(dry_run: bool = False) -> SendAgainRequest:
    return SendAgainRequest(since="2h", dry_run=dry_run)


async def typed(webhook: Webhook, *words: str) -> Result:
    """`postern send-again`, beside a gateway whose clock it moves."""
    arguments = [webhook.id, "--since", "2h", *words]
    return await asyncio.to_thread(CliRunner().invoke, commands.send_again, arguments)


@pytest.mark.parametrize(
    ("name", "lag"), [("github", 0.0), ("github", 20.0), ("gitlab", 0.0), ("paddle", 0.0), ("resend", 20.0)]
)
async def test_one_command_brings_all_that_was_missing_over_faults_and_limits_and_nothing_is_asked_for_twice(
    house: House, name: str, lag: float
) -> None:
    vendor = Vendor(name, house, seed=7)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url, events=60)
        missing = vendor.missing()
        assert 10 < len(missing) < 30
        tried = await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
        assert len(tried.asked) == len(missing) and not vendor.asked and tried.retry_after_seconds is None
        vendor.a_minute, vendor.faults, vendor.lag = (5 if name == "gitlab" else 20), 0.03, lag
        ran = await typed(webhook)
    assert (ran.exit_code, vendor.missing()) == (0, set()), ran.output
    assert len(vendor.asked) == len(set(vendor.asked)) and {event for event, _ in vendor.asked} == missing
    assert any(request.method == "POST" for request in server.received)
    notes = (await audit.listing(house.gateway, OWNER, 200)).items
    named = {name for note in notes for name in note.changes.get("events", ())}
    assert len(named) == len(missing) and "secret-token" not in repr(notes)
    await house.deliver()
    started = [one.fields["fieldOne"] for one in house.engine.started.values()]
    assert sorted(started, key=int) == [str(event) for event in range(60)]


@pytest.mark.parametrize("name", ["github", "gitlab", "paddle", "resend"])
async def test_what_was_asked_for_is_told_and_noted_whatever_comes_then(house: House, name: str) -> None:
    """A sender that fails, hangs or drops, and a gateway that ends, in the middle."""
    vendor = Vendor(name, house)
    async with stand_in(lambda request: answer(request)) as server:
        answer: Any = vendor.answer
        webhook = await set_up(house, vendor, server.url)
        first, hanging = len(vendor.missing()), asyncio.Event()

        async def fails(request: Received) -> Reply | Raw:
            return (
                Reply(500)
                if request.method == "POST" and len(vendor.asked) >= 2
                else await vendor.answer(request)
            )

        async def hangs(request: Received) -> Reply | Raw:
            if request.method == "POST":
                await vendor.answer(request)  # it does what was asked, and says nothing
                hanging.set()
                await asyncio.Event().wait()
            return await vendor.answer(request)

        vendor.lag = 3600.0  # nothing shows in its list
        answer = fails
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
        assert (len(told.asked), told.left, told.trouble) == (2, first - 2, "the sender's API answered 500")
        assert (await house.noted())[2] == {"calls": 2, "trouble": told.trouble}
        answer = hangs
        asking = asyncio.create_task(send_again(house.gateway, OWNER, webhook.id, asked()))
        await hanging.wait()
        asking.cancel()  # as the end of the gateway does
        await asyncio.wait([asking])
        action, _, changes = await house.noted()
        assert action == "sender is asked to send again" and changes["calls"] == first - 5
        answer = vendor.answer
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
        assert (len(told.asked), told.under_way, told.left) == (first - 6, 2, 4)
        assert len(vendor.asked) == len(set(vendor.asked)) == first - 3
        assert told.retry_after_seconds == SETTLED


@pytest.mark.parametrize("method", ["begin", "finish"])
async def test_what_was_asked_for_is_told_where_the_database_goes_away(
    house: House, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    vendor, journal = Vendor("github", house), house.gateway.store.idempotency
    usual = getattr(journal, method)

    async def away_after_two(*given: Any) -> Any:
        if len(vendor.asked) >= 2:
            raise StoreUnavailable("away")
        return await usual(*given)

    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        with monkeypatch.context() as trouble:
            trouble.setattr(journal, method, away_after_two)
            told = await send_again(house.gateway, OWNER, webhook.id, asked())
        away = "the database cannot be used now"
        assert (len(told.asked), told.trouble, told.retry_after_seconds) == (2, away, 5.0)
        assert (await typed(webhook)).exit_code == 0
    assert vendor.missing() == set() and len(vendor.asked) == len(set(vendor.asked))


async def test_an_answer_that_is_lost_is_asked_for_again_or_left(house: House) -> None:
    vendor, seen = Vendor("github", house), set[str]()
    lost: list[Reply | Raw] = [Reply(503), Raw(_dropped), Raw(_cut)]

    async def first_lost(request: Received) -> Reply | Raw:
        new = request.target not in seen
        seen.add(request.target)
        return lost[0] if new else await vendor.answer(request)

    async with stand_in(first_lost) as server:
        while lost:
            seen.clear()
            server.received.clear()
            vendor.tries.clear()
            webhook = await set_up(house, vendor, server.url)
            told = await send_again(house.gateway, OWNER, webhook.id, asked())
            posts = [one for one in server.received if one.method == "POST"]
            assert (told.asked, told.refused, told.left) == ([], 0, len(vendor.missing())) and len(posts) == 3
            lost.pop(0)


async def test_two_at_once_ask_for_nothing_twice(house: House) -> None:
    vendor = Vendor("github", house)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        vendor.lag = 60.0
        many = [send_again(house.gateway, OWNER, webhook.id, asked()) for _ in range(4)]
        told = await asyncio.gather(*many)
    assert len(vendor.asked) == len(set(vendor.asked)) == sum(len(one.asked) for one in told)
    assert {event for event, _ in vendor.asked} == vendor.missing()


async def test_an_event_that_fails_for_ever_ends_the_command_and_keeps_nothing_back(house: House) -> None:
    vendor = Vendor("gitlab", house)
    async with stand_in(lambda request: answer(request)) as server:
        answer: Any = vendor.answer
        webhook = await set_up(house, vendor, server.url)
        lost = min(vendor.missing())
        real = vendor.deliver

        async def deliver(event: int, origin: str = "event") -> None:
            await real(event, origin)
            if event == lost:
                vendor.tries[0]["ok"] = False

        vendor.deliver = deliver  # type: ignore[method-assign]
        ran = await typed(webhook)
        assert (vendor.missing(), ran.exit_code) == ({lost}, 1) and "fails each time it comes" in ran.stdout
        assert sum(event == lost for event, _ in vendor.asked) == 12
        before = len(vendor.asked)

        async def refuses(request: Received) -> Reply | Raw:
            return Reply(422) if request.method == "POST" else await vendor.answer(request)

        answer = refuses
        ran = await typed(webhook)
        assert (
            "1 that it does not send again" in ran.stdout
            and "answered 422" in ran.stdout
            and ran.exit_code == 1
        )
        assert len(vendor.asked) == before


async def test_a_command_that_is_broken_off_says_what_it_has_asked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = Vendor("github", house)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        missing = len(vendor.missing())
        monkeypatch.setattr(commands.time, "sleep", interrupted)
        ran = await typed(webhook)
    assert ran.exit_code != 0 and ran.stdout.count("push") == missing
    assert f"{missing} asked for. The next time goes on" in ran.stderr


LIMITS = [
    (Reply(429), 60),
    (Reply(429, {"Retry-After": "7"}), 7),
    (Reply(403, {"Retry-After": "9"}), 9),
    (Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "NOW+900"}), 900),
    (Reply(429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "NOW-900"}), 1),
    (Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}), 60),
    (Reply(403, {"x-ratelimit-remaining": "9"}, b'{"message": "You have exceeded a secondary rate limit"}'), 60),
    (Reply(503, {"Retry-After": "5"}), 5),
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_limit_is_waited_for_as_the_senders_documents_say(house: House, method: str) -> None:
    vendor, limits = Vendor("github", house), [*LIMITS]

    async def limited(request: Received) -> Reply | Raw:
        answer, _ = limits[0]
        at = {"NOW+900": house.gateway.clock() + 900, "NOW-900": house.gateway.clock() - 900}
        head = {name: str(int(at[value])) if value in at else value for name, value in answer.headers.items()}
        limit = Reply(answer.status, head, answer.body)
        return limit if request.method == method else await vendor.answer(request)

    async with stand_in(limited) as server:
        webhook = await set_up(house, vendor, server.url)
        for _, waits in LIMITS:
            server.received.clear()
            told = await send_again(house.gateway, OWNER, webhook.id, asked())
            assert told.asked == [] and abs((told.retry_after_seconds or 0) - waits) < 3
            assert f"the next request in {told.retry_after_seconds:.0f} s" in (told.trouble or "")
            assert len([one for one in server.received if one.method == method]) == 1, "it is asked no more"
            limits.append(limits.pop(0))
        if method == "POST":
            again = await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
            assert len(again.asked) == len(vendor.missing()), "what the limit kept back is asked for then"


async def test_gitlab_which_tells_no_times_is_asked_for_what_came_after_the_last_answer_before_since(
    house: House,
) -> None:
    vendor, clock = Vendor("gitlab", house), house.gateway.clock
    async with stand_in(vendor.answer) as server:
        house.gateway.clock = lambda: clock() - 86_400
        webhook = await set_up(house, vendor, server.url)
        house.gateway.clock = clock
        for event in range(30, 50):
            await vendor.deliver(event)
        told = await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
    last = max(one["event"] for one in vendor.tries if one["ok"] and one["event"] < 30)
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


async def test_a_sender_that_does_not_help_is_told_without_the_token(house: House) -> None:
    vendor, answer = Vendor("github", house), [Reply(200)]
    async with stand_in(lambda _: answer[0]) as server:
        webhook = await set_up(house, vendor, server.url, events=0)
        for answer[0], said in (
            (Reply(401, body=b"secret-token"), "answered 401: the account or the token"),
            (Reply(500), "answered 500"),
            (Reply(200, body=b"<html>"), "did not answer with JSON"),
            (Reply(302, {"Location": "http://169.254.169.254/"}), "redirect"),
            (Reply(200, body=b"[]"), "knows no webhook with the URL"),
            (Reply(200, body=b'[1,{"config":7}]'), "knows no webhook"),
            (Reply(200, body=b"[" + b"1," * 400_001 + b"1]"), "too many values"),
            (Reply(200, body=b"[" * 5000), "did not answer with JSON"),
        ):
            detail = (await refused(send_again(house.gateway, OWNER, webhook.id, asked()))).detail
            assert said in detail and "secret-token" not in detail


async def test_the_webhook_is_found_at_its_sender_by_its_address_on_any_page(house: House) -> None:
    vendor = Vendor("github", house)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        path, missing = urlsplit(webhook.url).path, len(vendor.missing())
        vendor.more_hooks = 201
        for kept, found in (
            ("https://Hooks.Example.COM:443{path}", True),
            ("https://hooks.example.com{path}/?from=us#here", True),
            ("https://user:word@hooks.example.com.{path}", True),
            ("http://hooks.example.com{path}", False),
            ("https://hooks.example.com:8443{path}", False),
            ("https://hooks.example.com{path}x", False),
            ("https://hooks.example.com:x{path}", False),
        ):
            vendor.url = kept.format(path=path)
            asking = send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
            if found:
                assert len((await asking).asked) == missing
            else:
                assert "knows no webhook" in (await refused(asking)).detail


async def test_ids_stay_parts_of_a_path_and_what_is_kept_of_a_list_is_bounded(house: House) -> None:
    vendor = Vendor("github", house)
    ids: list[Any] = ["7/../../../user/keys?x="]

    def answer(request: Received) -> Reply:
        if request.target.partition("?")[0].endswith("/hooks"):
            return Reply(body=json.dumps([{"id": ids[0], "config": {"url": webhook.url}}]).encode())
        rows = [{"id": f"{request.target[-3:]}-{at}", "guid": "g" * 500 + str(at)} for at in range(300)]
        return Reply(
            200, {"Link": f'<?cursor={len(server.received)}>; rel="next"'}, json.dumps(rows).encode()
        )

    async with stand_in(answer) as server:
        webhook = await set_up(house, vendor, server.url)
        told = await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))
        assert "/hooks/7%2F..%2F..%2F..%2Fuser%2Fkeys%3Fx%3D/deliveries" in server.received[1].target
        assert len(server.received) <= 2 + senders.MOST_ROWS / 300 and "what is older" in (told.note or "")
        assert all(len(one.event) <= 200 for one in told.asked)
        for id in ("..", "", None, {"a": 1}, "x" * 300):
            ids[0] = id
            detail = (await refused(send_again(house.gateway, OWNER, webhook.id, asked()))).detail
            assert "an id that is none" in detail


@pytest.mark.parametrize("name", ["github", "gitlab", "paddle", "resend", "stripe"])
async def test_a_list_of_anything_is_read_or_refused(house: House, name: str) -> None:
    vendor, chance = Vendor(name, house), random.Random(20261128)
    odd: list[Any] = [
        None,
        True,
        -1,
        1.5,
        1e308,
        10**30,
        "",
        "9" * 400,
        "\0",
        "1e400",
        [],
        {},
        [{}],
        {"x": 1},
    ]
    odd += ["Mon, 01 Jan 0001 00:00:00 +2359", "9999-12-31T23:59:59-23:59", "failed", "delivered", "é", 502]
    fields = ["id", "guid", "event", "action", "delivered_at", "status_code", "trigger", "request_headers"]
    fields += [
        "response_headers",
        "response_status",
        "event_id",
        "payload",
        "status",
        "origin",
        "occurred_at",
    ]
    fields += ["created_at", "created", "type", "pending_webhooks"]

    def answer(request: Received) -> Reply:
        target = request.target.partition("?")[0]
        if target.endswith(("/hooks", "/webhooks", "-settings")):
            return vendor.hooks({})
        rows: list[Any] = [
            {one: chance.choice(odd) for one in fields} | {"id": chance.choice([1, "a/b"])} for _ in "12"
        ]
        rows[1] |= {
            "response_headers": {"Date": chance.choice(odd)},
            "request_headers": {"Idempotency-Key": chance.choice(odd)},
        }
        body = chance.choice(
            [
                rows,
                {"data": rows, "has_more": True, "meta": {"pagination": chance.choice(odd)}},
                chance.choice(odd),
            ]
        )
        head = {"Link": chance.choice(['<>; rel="next"', "<?a=b>;rel=next", "<" * 500]), "X-Next-Page": "2"}
        return Reply(200, head, json.dumps(body).encode())

    async with stand_in(answer) as server:
        webhook = await set_up(house, vendor, server.url, events=1)
        for _ in range(40):
            with suppress(Refused):
                await send_again(house.gateway, OWNER, webhook.id, asked(dry_run=True))


async def test_an_event_whose_newest_attempt_is_still_to_come_is_not_asked_for(house: House) -> None:
    """It failed, and an older notification of it is tried again; and the other way round."""
    vendor = Vendor("paddle", house)
    at = iso(house.gateway.clock())

    def row(id: int, event: str, status: str, origin: str = "event") -> dict[str, Any]:
        return {
            "id": id,
            "event_id": event,
            "type": "t",
            "status": status,
            "origin": origin,
            "occurred_at": at,
        }

    rows = [
        row(9, "a", "failed"), row(8, "a", "needs_retry"), row(7, "b", "not_attempted", "replay"), row(6, "b", "failed"),
        row(5, "c", "failed", "replay"), row(4, "c", "failed"), row(3, "d", "delivered", "replay"), row(2, "d", "failed"),
    ]  # fmt: skip

    def answer(request: Received) -> Reply:
        if "settings" in request.target:
            return vendor.hooks({})
        return (
            Reply(202, body=b"{}")
            if request.method == "POST"
            else Reply(body=json.dumps({"data": rows}).encode())
        )

    async with stand_in(answer) as server:
        webhook = await set_up(house, vendor, server.url)
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
        assert ([one.event for one in told.asked], told.by_itself) == (["c"], 2)
        assert [one.target for one in server.received if one.method == "POST"] == ["/notifications/4/replay"]
        rows.insert(0, row(10, "c", "failed", "replay"))
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
        assert [one.event for one in told.asked] == ["c"], "that replay failed as well"
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
        assert (told.asked, told.under_way) == ([], 1)


async def test_gitlabs_events_which_have_no_times_are_asked_for_from_the_oldest_on(house: House) -> None:
    vendor = Vendor("gitlab", house)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url)
        missing = vendor.missing()
        vendor.a_minute = 3
        told = await send_again(house.gateway, OWNER, webhook.id, asked())
    assert [one.event for one in told.asked] == [f"k{event}" for event in sorted(missing)[:3]]
    assert told.left == len(missing) - 3 and told.retry_after_seconds == 60


async def test_stripes_pages_are_followed_over_faults(house: House) -> None:
    vendor = Vendor("stripe", house)
    async with stand_in(vendor.answer) as server:
        webhook = await set_up(house, vendor, server.url, events=80)
        vendor.faults = 0.1
        ran = await typed(webhook)
    assert ran.exit_code == 0 and ran.stdout.count("charge.succeeded") == len(vendor.missing()) > PAGE


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
    now, told = house.gateway.clock(), json.loads(claims)
    assert told["iss"] == "77" and told["iat"] < now and now + 300 < told["exp"] < now + 600


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
