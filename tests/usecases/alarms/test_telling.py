"""Incidents are told elsewhere: once when they open and once when they close, whatever the receivers do."""

import asyncio
import base64
import email
import html
import time
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from postern.core.address import NOBODY, Allowlist
from postern.core.moment import to_the_minute
from postern.core.problems import PROBLEMS, Refused
from postern.core.watch.alarms import Found
from postern.core.watch.channels import read_channels, read_mail_server
from postern.outbound.fetch import Fetcher
from postern.outbound.guard import Guard
from postern.outbound.mail import send_mail
from postern.settings import SettingError, Settings
from postern.stores.sql.tables import deliveries, secrets
from postern.stores.sql.tables import incidents as table
from postern.usecases.alarms import channels as added
from postern.usecases.alarms import incidents, telling
from postern.usecases.webhooks import webhooks
from postern.wiring.gateway import opened
from stand_in import Answer, Received, Reply, StandIn, stand_in
from support.canaries import canary, leaks
from support.clock import HeldClock
from support.desk import ACTOR, Desk, on_both
from support.mail import mail_server

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789").decode()
OWN = Allowlist.parse(["127.0.0.1"])


def channels(desk: Desk, *addresses: str) -> telling.TellLoop:
    desk.gateway.alarms = replace(desk.gateway.alarms, channels=read_channels(" ".join(addresses)))
    return telling.TellLoop(desk.gateway)


async def incident(desk: Desk, name: str = "Orders <!channel> {after}") -> str:
    now = time.time()
    webhook_id = await desk.webhook(name)
    found = Found(now - 60, now, 412, {"signature_mismatch": 412})
    made = await desk.store.incidents.begin(webhook_id, "rejected", found, now)
    return str(made)


def mails_through(desk: Desk, port: int, guard: Guard | None = None, user: str = "") -> None:
    server = read_mail_server(f"smtp://{user}127.0.0.1:{port}?from=postern@shop.example")
    desk.gateway.outbound.mail = partial(send_mail, guard or Guard(OWN), server)


def at(server: StandIn, kind: str, rest: str) -> str:
    return f"{kind}+{server.url}/{rest}"


def test_channels_at_one_host_are_told_apart_without_a_secret() -> None:
    team, other, mail = (
        "slack+https://hooks.example/T1/secret",
        "slack+https://hooks.example/T2/secret",
        "mailto:ops@shop.example",
    )
    assert [one.name for one in read_channels(f"{team} {team} {mail} {other}")] == [
        "slack at hooks.example (address 1 of POSTERN_TELL)",
        "mail to shop.example",
        "slack at hooks.example (address 4 of POSTERN_TELL)",
    ]
    with pytest.raises(ValueError, match="mailto:…"):
        read_channels("mailto+https://a.example")


async def test_every_kind_of_channel_hears_of_it_once_when_it_opens_and_once_when_it_closes(
    desk: Desk,
) -> None:
    async with stand_in(lambda _: Reply(200)) as server, mail_server() as (port, mails):
        mails_through(desk, port)
        loop = channels(
            desk,
            at(server, "slack", "services/T0/secret-of-slack"),
            at(server, "teams", "workflows/1?sig=secret-of-teams"),
            at(server, "discord", "api/webhooks/1/secret-of-discord"),
            at(server, "ntfy", "alerts#tk_secret"),
            at(server, "telegram", "bot1:secret/sendMessage#-42"),
            at(server, "webhook", f"hook#{SECRET}"),
            "mailto:ops@shop.example,on-call@shop.example",
        )
        made = await incident(desk)
        for _ in range(3):
            await loop.round()
        assert (len(server.received), len(mails)) == (6, 1)
        by_kind = {one.target.split("/")[1].split("1:")[0]: one for one in server.received}
        said = "Orders <!channel> {after}: 412 calls rejected: signature does not match (412)."
        link = f"{desk.gateway.site.base_url}/incidents/{made}"
        escaped = said.replace("<", "&lt;").replace(">", "&gt;")
        assert by_kind["services"].json == {"text": f"{escaped}\n{link}"}
        card = by_kind["workflows"].json["attachments"][0]["content"]["body"]
        assert [one["text"] for one in card] == [said, link]
        assert by_kind["api"].json["content"] == f"{said}\n{link}"
        assert by_kind["alerts"].body.decode() == f"{said}\n{link}"
        assert by_kind["alerts"].headers["authorization"] == "Bearer tk_secret"
        assert by_kind["bot"].json == {"chat_id": "-42", "text": f"{said}\n{link}"}
        own: dict[str, Any] = Webhook(SECRET).verify(by_kind["hook"].body, by_kind["hook"].headers)
        assert (own["type"], own["data"]["count"], own["data"]["url"]) == ("incident.opened", 412, link)
        mailed = email.message_from_bytes(mails[0])
        assert mailed["From"] == "postern@shop.example"
        assert mailed["To"] == "ops@shop.example, on-call@shop.example"
        assert link in mailed.get_payload()

        assert await desk.store.incidents.close(made, time.time(), "calls go well again")
        for _ in range(3):
            await loop.round()
        assert (len(server.received), len(mails)) == (12, 2)
        assert server.received[-1].body != by_kind["hook"].body
        assert all("Over: Orders" in mail.decode() for mail in mails[1:])
        planted = ("secret-of-slack", "secret-of-teams", "tk_secret", SECRET[6:])
        secrets = {secret: secret for secret in planted}
        assert not leaks([(one.target.split("/")[1], one.body) for one in server.received], secrets)


@pytest.mark.parametrize("asked", [False, True])
async def test_a_message_holds_mapped_values_of_proven_callers_only_where_the_setting_asks_for_them(
    desk: Desk, asked: bool
) -> None:
    planted = {name: canary(name) for name in ("token", "mapped", "unmapped", "unproven")}
    token = {"method": "token", "token": planted["token"]}
    webhook_id = await desk.webhook(authentication=token, fieldMapping={"fieldOne": "number"})
    key = (b"x-api-key", planted["token"].encode())
    await desk.accepted(webhook_id, {"number": planted["mapped"], "card": planted["unmapped"]}, key)
    assert (await desk.call(webhook_id, {"number": planted["unproven"]})).status == 401
    failed = update(deliveries).values(state="failed", ended_at=int(time.time() * 1000), error="out of stock")
    await desk.store.writer.write(lambda connection: connection.execute(failed).rowcount)
    now = time.time()
    for kind, reason in (("runs_failed", "failed"), ("rejected", "credential_missing")):
        await desk.store.incidents.begin(webhook_id, kind, Found(now - 60, now, 1, {reason: 1}), now)
    async with stand_in(lambda _: Reply(200)) as server, mail_server() as (port, mails):
        mails_through(desk, port)
        others = [at(server, kind, kind) for kind in ("slack", "teams", "discord", "ntfy")]
        own = [at(server, "telegram", "bot#-42"), at(server, "webhook", f"hook#{SECRET}")]
        loop = channels(desk, *others, *own, "mailto:ops@shop.example")
        desk.gateway.alarms = replace(desk.gateway.alarms, tells_values=asked)
        await loop.round()
        assert (len(server.received), len(mails)) == (12, 2)
        sent = [(one.target, html.unescape(one.body.decode()).encode()) for one in server.received]
        sent += [("mail", email.message_from_bytes(one).get_payload(decode=True)) for one in mails]
        leaked = {one.partition(",")[0] for one in leaks(sent, planted)}
        everywhere = {f"{place}: mapped" for place, _ in sent}
        assert leaked == (everywhere if asked else set())


@pytest.mark.parametrize("way", ["acknowledged", "closed"])
async def test_what_was_seen_or_over_before_it_was_told_is_not_told(desk: Desk, way: str) -> None:
    async with stand_in(lambda _: Reply(200)) as server:
        loop = channels(desk, at(server, "slack", "x"))
        made = await incident(desk)
        if way == "acknowledged":
            await incidents.acknowledge(desk.gateway, ACTOR, made)
            await loop.round()
        assert await desk.store.incidents.close(made, time.time(), "calls go well again")
        await loop.round()
        assert server.received == []


async def test_a_reason_that_comes_later_is_told_once_also_after_somebody_has_acknowledged(
    desk: Desk,
) -> None:
    now = time.time()
    async with stand_in(lambda _: Reply(200)) as server:
        loop = channels(desk, at(server, "webhook", f"hook#{SECRET}"))
        made = await incident(desk)
        await loop.round()
        await incidents.acknowledge(desk.gateway, ACTOR, made)
        for last, later, news in (
            (1, {}, None),
            (2, {"malformed_json": 3}, now),
            (3, {"malformed_json": 4}, None),
        ):
            reasons = {"signature_mismatch": 412 + last, **later}
            found = Found(now - 60, now + last, sum(reasons.values()), reasons)
            await desk.store.incidents.gather(made, found, news)
            for _ in range(2):
                await loop.round()
        assert [one.json["type"] for one in server.received] == ["incident.opened", "incident.updated"]
        (again,) = server.received[1:]
        assert again.headers["webhook-id"] == f"{made}.updated.2" and again.json["data"]["count"] == 417
        assert [one.acknowledged_at for one in await desk.store.incidents.open()] == [None]


@on_both
@pytest.mark.parametrize("meanwhile", ["closed", "another reason"])
async def test_what_happens_while_it_is_told_is_told_next(desk: Desk, meanwhile: str) -> None:
    now = time.time() + 5  # later than the incident
    judged = now - 5  # by a process whose clock is behind
    async with stand_in(lambda _: Reply(200)) as server:
        loop = channels(desk, at(server, "slack", "x"))
        made = await incident(desk)
        (claimed,) = await desk.store.incidents.claim_to_tell(now, 5)
        if meanwhile == "closed":
            assert await desk.store.incidents.close(made, judged, "calls go well again")
        else:
            found = Found(now - 60, now, 415, {"signature_mismatch": 412, "malformed_json": 3})
            await desk.store.incidents.gather(made, found, judged)
        await loop._tell(claimed, await added.known(desk.gateway))
        await loop.round()
        assert len(server.received) == 2


async def test_a_dead_channel_is_tried_for_a_day_and_the_end_has_tries_of_its_own(desk: Desk) -> None:
    clock = HeldClock(desk.gateway)
    answer = [Reply(500)]
    async with stand_in(lambda _: answer[0]) as server:
        loop = channels(desk, at(server, "slack", "x"))
        made = await incident(desk)
        clock.now += 60
        began = clock.now
        for tries in range(1, telling.MOST_TRIES + 1):
            await loop.round()
            ((told,),) = [one.told.values() for one in await desk.store.incidents.open()]
            assert (len(server.received), told.tries) == (tries, tries)
            last, clock.now = clock.now, told.next_at - 1
            await loop.round()
            clock.now += 1
        assert 20 * 3600 < last - began < 30 * 3600
        clock.now += telling.A_DAY
        await loop.round()
        assert len(server.received) == telling.MOST_TRIES
        await incident(desk, "another one")
        await loop.round()
        answer[0] = Reply(200)
        clock.now -= 40 * 86_400  # it was ahead, and is set right
        await desk.store.ahead.take_back(clock.now, clock.now)
        await loop.round()
        (_, told) = (await desk.store.incidents.open())[0].told.popitem()
        assert (told.tries, told.error) == (0, "")
        assert await desk.store.incidents.close(made, clock.now, "calls go well again")


async def test_a_long_message_is_cut_to_what_every_channel_takes(desk: Desk) -> None:
    webhook_id, now = await desk.webhook("Long " * 40), time.time()
    every = Found(now - 60, now, len(PROBLEMS), dict.fromkeys(PROBLEMS, 10**12))
    await desk.store.incidents.begin(webhook_id, "rejected", every, now)
    async with stand_in(lambda _: Reply(200)) as server:
        await channels(desk, at(server, "discord", "x")).round()
        said = server.received[0].json["content"]
        assert said.startswith("Long Long ") and 1500 < len(said) <= 2000


@on_both
async def test_what_nobody_acknowledges_is_told_again_each_day_by_one_of_two_processes(
    desk: Desk, settings: Settings
) -> None:
    clock, answer = HeldClock(desk.gateway), [Reply(200)]
    async with stand_in(lambda _: answer[0]) as server, opened(settings) as second:
        both = at(server, "webhook", f"hook#{SECRET}"), at(server, "slack", "x")
        loops = [channels(desk, *both), telling.TellLoop(second)]
        second.alarms, second.clock = desk.gateway.alarms, desk.gateway.clock

        async def heard(after: float) -> list[str]:
            server.received.clear()
            clock.now += after
            await asyncio.gather(*(loop.round() for loop in loops * 2))
            keys = sorted(key for one in server.received if (key := one.headers.get("webhook-id")))
            assert len(server.received) == 2 * len(keys)
            return keys

        made, seen, over = [await incident(desk, name) for name in "abc"]
        assert len(await heard(60)) == 3
        await incidents.acknowledge(desk.gateway, ACTOR, seen)
        assert await desk.store.incidents.close(over, clock.now, "calls go well again")
        assert await heard(0) == [f"{over}.closed"]
        assert await heard(telling.A_DAY - 1) == []
        answer[0] = Reply(500)
        assert await heard(1) == [f"{made}.reminded.1"]
        answer[0] = Reply(200)
        assert await heard(10) == [f"{made}.reminded.1"]
        (of_program,) = [one.json for one in server.received if "type" in one.json]
        assert of_program["type"] == "incident.reminded"
        (said,) = [one.json["text"] for one in server.received if "text" in one.json]
        (opened_at,) = {one.opened_at for one in await desk.store.incidents.open() if one.id == made}
        since = f"A reminder: this is open since {to_the_minute(opened_at)}, and nobody has acknowledged it."
        assert said.startswith(since) and of_program["data"]["sentence"] in said
        # Another reason does not wait for the next day, and the day begins again with it.
        reasons = {"signature_mismatch": 412, "malformed_json": 3}
        await desk.store.incidents.gather(made, Found(clock.now, clock.now, 415, reasons), clock.now + 60)
        assert await heard(60) == [f"{made}.updated.2"]
        assert await heard(telling.A_DAY - 1) == []
        # Killed after it was claimed: the next one tells it, once, and not if somebody acknowledges it meanwhile.
        clock.now += 1
        assert len(await desk.store.incidents.claim_to_tell(clock.now, 20)) == 1
        assert (await heard(0), await heard(61)) == ([], [f"{made}.reminded.2"])
        # A clock that is ahead brings one when the day seems over. Set right, it brings the next one after a whole day.
        for ahead in (3600.0, 26 * 3600.0, 365 * telling.A_DAY):
            assert len(await heard(ahead)) == (ahead > telling.A_DAY)
            clock.now -= ahead
            await desk.store.ahead.take_back(clock.now, clock.now)
            assert (await heard(0), await heard(telling.A_DAY - 1)) == ([], [])
            assert len(await heard(1)) == 1
        clock.now += telling.A_DAY
        assert len(await desk.store.incidents.claim_to_tell(clock.now, 20)) == 1
        await incidents.acknowledge(desk.gateway, ACTOR, made)
        assert await heard(61) == []
        # It is open for something else, and so for the days after, too.
        reasons["origin_not_allowed"] = 3
        await desk.store.incidents.gather(made, Found(clock.now, clock.now, 418, reasons), clock.now)
        assert await heard(1) == [f"{made}.updated.3"]
        assert len(await heard(telling.A_DAY)) == 1
        await incidents.acknowledge(desk.gateway, ACTOR, made)
        assert await heard(telling.A_DAY) == []


def answers(how: str, hangs: asyncio.Event) -> Answer:
    async def answer(asked: Received) -> Reply:
        if how == "hangs":
            await hangs.wait()
        if how == "redirects":
            return Reply(302, {"Location": f"http://127.0.0.2/{asked.target}"})
        return Reply(404, body=asked.target.encode())

    return answer


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("hangs", "no complete answer within 2 seconds"),
        ("refuses", "it answered 404"),
        ("redirects", "it answered 302, a redirect, which is not followed"),
        ("private", "127.0.0.1 is"),
    ],
)
async def test_a_channel_that_fails_is_tried_again_and_keeps_no_other_one_back(
    desk: Desk, how: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "hangs":
        monkeypatch.setattr(telling, "TIMEOUT", 2.0)
    clock = HeldClock(desk.gateway)
    bad: Answer = answers(how, asyncio.Event())
    guarded = Fetcher(allowed_ranges=NOBODY)
    async with stand_in(bad) as failing, stand_in(lambda _: Reply(200)) as well:
        if how == "private":
            desk.gateway.outbound.fetch = guarded.fetch
        loop = channels(desk, at(failing, "slack", "services/the-secret"), at(well, "slack", "x"))
        made = await incident(desk)
        clock.now += 60
        with capture_logs() as lines:
            for _ in range(3):
                await loop.round()
        told_of = [(one["incident"], one["tries"], said in one["error"]) for one in lines if "channel" in one]
        assert set(told_of) == {(made, 1, True)}
        (told, *_) = (await incidents.listing(desk.gateway, ACTOR)).items
        assert told.told[0].opened_at is None and said in told.told[0].error
        assert "the-secret" not in str(told.told)
        assert len(failing.received) == (0 if how == "private" else 1)
        for _ in range(2):
            clock.now += telling.FIRST_WAIT + 1  # the second time it waits longer
            await loop.round()
        assert len(failing.received) == (0 if how == "private" else 2)
        assert len(well.received) == (0 if how == "private" else 1)
        # Nobody waits for it where it is over: who was told hears of that within a minute.
        assert await desk.store.incidents.close(made, clock.now, "calls go well again")
        clock.now += 61
        await loop.round()
        assert len(well.received) == (0 if how == "private" else 2)
    await guarded.aclose()


async def test_the_test_says_what_came_of_it_and_no_secret(desk: Desk) -> None:
    async with stand_in(lambda _: Reply(200)) as server, mail_server("RCPT") as (port, mails):
        mails_through(desk, port)
        channels(desk, at(server, "slack", "services/the-secret"), "mailto:ops@shop.example")
        found = (await telling.test(desk.gateway, ACTOR)).items
        assert [(one.channel, one.taken, one.detail) for one in found] == [
            (f"slack at 127.0.0.1:{server.port}", True, ""),
            ("mail to shop.example", False, "the mail server takes no mail for them"),
        ]
        assert mails == []
        for guard, user, said in [
            (Guard(NOBODY), "", "127.0.0.1 is"),
            (None, "user:the-password@", "STARTTLS"),  # a password does not go out in the clear
        ]:
            mails_through(desk, port, guard, user)
            detail = (await telling.test(desk.gateway, ACTOR)).items[1].detail
            assert said in detail and "the-password" not in detail
        assert "secret" not in repr(desk.gateway.alarms)


@pytest.mark.parametrize(
    "text",
    ["slack+https://:80/", "pager+https://a.example", "https://a.example", "webhook+https://a.example/x", "mailto:x",
     "slack+https://user:word@a.example/", "telegram+https://a.example/bot/sendMessage", "mailto:a@b.example"],
)  # fmt: skip
def test_an_address_that_cannot_be_told_is_refused_at_the_start_without_saying_it(text: str) -> None:
    with pytest.raises(SettingError, match=r"^POSTERN_TELL") as refused:
        Settings({"POSTERN_TELL": text})
    assert text not in str(refused.value)


@on_both
async def test_an_end_does_not_wait_for_a_channel_that_is_tried_later(desk: Desk) -> None:
    store, now = desk.store.incidents, time.time()
    made = await store.begin("wh_1", "rejected", Found(now, now, 3, {"signature_mismatch": 3}), now)
    (claimed,) = await store.claim_to_tell(now, 5)
    await store.have_told(claimed, {}, now + 7200, now)
    assert await store.close(made, now, "calls go well again")
    assert [one.id for one in await store.claim_to_tell(now + 300, 5)] == [made]


async def test_an_added_channel_hears_of_its_webhook_or_folder_alone(desk: Desk) -> None:
    heard: dict[str, int] = {}

    def answer(request: Received) -> Answer:
        heard[request.target] = heard.get(request.target, 0) + 1
        return Reply(200)

    async with stand_in(answer) as server:
        loop = channels(desk)
        mine, other = await desk.webhook("Orders", folder="Shops/Europe"), await desk.webhook("Leads")
        for name, of in (("all", {}), ("one", {"webhook_id": other}), ("folder", {"folder": "shops"})):
            made = await added.add(desk.gateway, ACTOR, at(server, "ntfy", name), name.title(), **of)
            assert (made.name, made.created_by) == (name.title(), ACTOR.name)
        for webhook_id in (mine, other, ""):
            found = Found(time.time() - 60, time.time(), 3, {"database": 3})
            assert await desk.store.incidents.begin(webhook_id, "gateway", found, time.time())
        await loop.round()
        assert heard == {"/all": 3, "/one": 1, "/folder": 1}
        await webhooks.remove(desk.gateway, ACTOR, mine)
        (over,) = [one for one in await desk.store.incidents.open() if one.webhook_id == mine]
        assert await desk.store.incidents.close(over.id, time.time(), "the webhook was deleted")
        await loop.round()
        assert heard == {"/all": 4, "/one": 1, "/folder": 2}
        gone = (await added.listing(desk.gateway, ACTOR)).items[0]
        await added.delete(desk.gateway, ACTOR, gone.id or "")
        assert [one.taken for one in (await telling.test(desk.gateway, ACTOR)).items] == [True, True]
        assert heard == {"/all": 4, "/one": 2, "/folder": 3}
        last = (await added.listing(desk.gateway, ACTOR)).items[1]
        assert len((await telling.test(desk.gateway, ACTOR, last.id)).items) == 1
        assert heard == {"/all": 4, "/one": 2, "/folder": 4}
    for tried in (gone.id, "ch_0", ""):
        with pytest.raises(Refused, match="no channel with this id"):
            await telling.test(desk.gateway, ACTOR, tried)


async def test_every_wrong_field_of_a_channel_is_named_and_its_address_never_shown(desk: Desk) -> None:
    bad = "slack", "mailto:nobody", "telegram+https://t.example/x", "slack+https://a.example/x y"
    for address in ("", *bad, "x" * 3000):
        with pytest.raises(Refused) as refused:
            await added.add(desk.gateway, ACTOR, address, "a\nb\0", "wh_none", "Nowhere")
        fields = [one.field for one in refused.value.errors]
        assert fields == ["name", "webhookId", "folder", "folder", "address"]
    with pytest.raises(Refused) as refused:
        await added.add(desk.gateway, ACTOR, "mailto:ops@shop.example")
    assert "POSTERN_SMTP_URL" in refused.value.errors[0].message
    desk.gateway.alarms = replace(desk.gateway.alarms, mails=True)
    mail = await added.add(desk.gateway, ACTOR, "mailto:ops@shop.example")
    planted = canary("channel")
    slack = await added.add(desk.gateway, ACTOR, f"slack+https://hooks.example/{planted}")
    assert (mail.name, slack.name) == ("mail to shop.example", "slack at hooks.example")
    shown = await added.listing(desk.gateway, ACTOR), await desk.store.audit.page(50, None, None)
    assert planted not in repr(shown)
    for _ in range(added.MOST_CHANNELS - 2):
        await added.add(desk.gateway, ACTOR, "ntfy+https://ntfy.example/x")
    with pytest.raises(Refused, match="delete one first"):
        await added.add(desk.gateway, ACTOR, "ntfy+https://ntfy.example/x")


@pytest.mark.parametrize("is_sealed", [True, False])
async def test_a_channel_whose_address_cannot_be_read_says_so_and_the_others_are_told(
    desk: Desk, is_sealed: bool
) -> None:
    """Nor does an incident whose bytes are damaged stop anything: it is told once more, to be sure."""
    async with stand_in(lambda _: Reply(200)) as server:
        loop = channels(desk, at(server, "ntfy", "x"))
        kept = await added.add(desk.gateway, ACTOR, at(server, "ntfy", "y"), "Lost")
        envelope = desk.store.vault.seal(b"pager+x", kept.id, "address") if is_sealed else "v1.other.x"
        lost = update(secrets).where(secrets.c.field == "address").values(envelope=envelope)
        made = await incident(desk)
        damaged = update(table).values(reasons=b"[", told=b"\xff{")
        await desk.store.writer.write(lambda there: [there.execute(change) for change in (lost, damaged)])
        await loop.round()
        told = (await incidents.show(desk.gateway, ACTOR, made)).told
        wrong = [(one.channel, one.error) for one in told if one.error]
        assert wrong == [("Lost", "its address cannot be read: delete it and add it again")]
        assert await desk.store.incidents.claim_to_tell(time.time() + 1, 5) == []
        assert len(server.received) == 1
