"""A gateway's data with one of everything: each table, each member of what is stored, each value of a stored choice. The clock
and the ids are the same each time, so what is read of it can be kept as a text and compared.
"""

import asyncio
import base64
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from postern import identity
from postern.core.access.accounts import LEVELS
from postern.core.deliveries.delivery import End, EngineRejected, Started, Trigger
from postern.core.fetched import Fetched
from postern.core.history.invocation import STATUSES, HistoryFilter
from postern.core.history.volume import LATENCY_BOUNDS_MS
from postern.core.problems import FetchTrouble, Refused
from postern.core.signatures.handshake import HANDSHAKES, OF_A_SCHEME
from postern.core.signatures.keys.public import new_private_key
from postern.core.webhooks.announced import MOST_ANNOUNCED
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases import schedules
from postern.usecases.access import accounts, idempotency
from postern.usecases.alarms import channels, incidents
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.alarms.telling import TellLoop
from postern.usecases.answers import as_json
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds, replays
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.history import editing, findable, marks, samples, saved_views, volumes
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.listeners import listeners
from postern.usecases.operations import export, retention
from postern.usecases.webhooks import bin, webhooks
from support.every_kind import secret_of
from support.house import OWNER, House, a_house
from support.simulated import EndingEngine, OneClock

WRITTEN = Path(__file__).parents[1] / "written"
BEGINS = 1_790_000_000.0
PASSWORD, ONCE = "a password of the data that is kept", b"make a webhook"
MAIN, SECOND = (f"whk_{one}_token_of_the_data_that_is_kept" for one in ("main", "second"))
ORDER = b'{"order":{"id":"%s","by":"Ada"},"items":[{"sku":"T-1"}],"note":"n","total":10.5}'
SENDERS = (
    *("adyen", "asana", "braintree", "discord", "netlify", "notion", "paypal", "paystack", "pubsub", "sanity", "sendgrid", "shopify"),
    *("sns", "standardwebhooks", "stripe", "wise", "x", "zoom"),
)  # fmt: skip
"""Each has another algorithm, encoding, handshake or place than the others."""


def requests() -> dict[str, Any]:
    """The webhooks by their names, with keys where `webhooks.toml` has none."""
    asked: dict[str, Any] = tomllib.loads((WRITTEN / "webhooks.toml").read_text("utf-8"))
    asked |= {one: {"handshake": one} for one in HANDSHAKES if one not in OF_A_SCHEME}
    asked |= {f"by {one}": {"authentication": {"method": "hmac", "provider": one}} for one in SENDERS}
    for how in (one["authentication"] for one in asked.values() if "authentication" in one):
        if how["method"] == "hmac" and "secret" not in how:
            is_custom = how["provider"] == "custom"
            how["secret"] = (
                new_private_key(how["scheme"]["algorithm"]) if is_custom else secret_of(how["provider"])
            )
    return asked


class Engine(EndingEngine):
    """Refuses what asks for it, and knows nothing any more of what was lost."""

    async def start(self, trigger: Trigger) -> Started:
        if b"refused" in trigger.payload:
            raise EngineRejected("it was told to refuse")
        started = await super().start(trigger)
        if b"lost" in trigger.payload:
            del self.started[trigger.key]
        return started


async def network(url: str, **_: Any) -> Fetched:
    """A source, one that is broken from the second time on, and two channels, of which one refuses each message."""
    if "broken" in url:
        raise FetchTrouble("nobody answers there")
    headers = (
        (b"content-type", b"application/json"),
        (b"etag", b'"1"'),
        (b"last-modified", b"Mon, 21 Sep 2026 13:33:20 GMT"),
    )
    return Fetched(500 if "slack" in url else 200, headers, b'[{"n":1},{"n":2}]')


@asynccontextmanager
async def a_fixed_house(folder: Path, begins: float) -> AsyncIterator[tuple[House, OneClock]]:
    """One whose clock begins at this time, and whose ids and secrets are the same each time."""
    clock, chance = OneClock(), Random(int(begins))
    clock.now = begins
    secrets = SimpleNamespace(
        choice=chance.choice,
        token_bytes=chance.randbytes,
        token_urlsafe=lambda count: base64.urlsafe_b64encode(chance.randbytes(count)).decode().rstrip("="),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "clock", clock)
        patch.setattr(identity, "uuid_utils", SimpleNamespace(uuid7=lambda: UUID(bytes=chance.randbytes(16))))
        patch.setattr(identity, "secrets", secrets)
        patch.setattr(retention, "monotonic", lambda: clock.steady)
        channels = "ntfy+https://ntfy.example/shop slack+https://slack.example/T1/secret"
        async with a_house(folder, POSTERN_TELL=channels) as house:
            house.gateway.engine = house.engine = Engine(clock)
            house.gateway.outbound.fetch = network
            house.gateway.store.room = lambda: None  # type: ignore[method-assign]
            yield house, clock


async def fill(folder: Path) -> dict[str, Any]:
    """Makes the data by what the program does itself. Returns what nobody can read of it: when that was, an API key, a session."""
    async with a_fixed_house(folder, BEGINS) as (house, clock):
        made = _Made(house, clock)
        for part in (
            made.people,
            made.calls,
            made.callers_who_wait,
            made.replays,
            made.incidents,
            made.a_day_later,
        ):
            await part()
        return {"at": clock.now, "key": made.key, "session": made.session}


async def read(folder: Path, unread: dict[str, Any]) -> list[str]:
    """Everything that the data says, a line each: what is exported, what the stores have besides, and then whether it works."""
    lines: list[str] = []

    def line(kind: str, found: object) -> None:
        lines.append(as_json({kind: found}).decode())

    async with a_fixed_house(folder, unread["at"]) as (house, _):
        gateway, store = house.gateway, house.gateway.store
        exported: list[bytes] = []
        await export.everything(gateway, OWNER, exported.append)
        lines += b"".join(exported).decode().splitlines()[1:]
        kept = [one for one in await store.webhooks.page(500) if isinstance(one, StoredWebhook)]
        ids = {one.name: one.id for one in kept}
        for one in kept:
            line("resolved", one.resolved)
            line("secrets", {name: secret.value for name, secret in one.secrets.items()})
            line("volume", (await volumes.chart(gateway, OWNER, one.id, "week")).total)
        line("volume", (await volumes.chart(gateway, OWNER, None, "week")).total)
        line("tallies", await store.webhooks.tallies([*ids.values()]))
        line("schedules", await store.schedules.states([*ids.values()]))
        for incident in await store.incidents.page(50, None, None, False):
            line("incident", incident)
            line("incident", await incidents.show(gateway, OWNER, incident.id))
        line("listeners", await store.listeners.all())
        line("sessions", await accounts.sessions(gateway, OWNER))
        line("pruned", await retention.last(gateway, OWNER))
        line("to forget", await store.retention.to_forget(""))
        line("channels", await store.channels.all())
        line("keys", await store.sender_keys.all())
        line("found", {f"{name} {text}": await house.found(**{name: text}) for name, text in FOUND})
        await _works(house, ids, unread, line)
    return lines


FOUND = [
    ("value", "1001"), ("value", "goes well"), ("address", "127.0.0.1"), ("field", "fieldOne=1001"), ("field", "order.by=Ada"),
    ("header", "user-agent=Shop/1"), ("search", "goes"), ("status", "failed"), ("answer", "504"), ("error", "it fails"),
]  # fmt: skip


async def _works(
    house: House, ids: dict[str, str], unread: dict[str, Any], line: Callable[[str, object], None]
) -> None:
    """What can only be compared with itself: hashes, sealed answers, fingerprints."""
    gateway = house.gateway

    async def nothing() -> idempotency.KeptAnswer:
        return 500, [], b""

    line("key", await accounts.actor_of_key(gateway, unread["key"]))
    line("session", await accounts.actor_of_session(gateway, unread["session"]))
    line("signs in", bool(await accounts.sign_in(gateway, "admin", PASSWORD, "192.0.2.7")))
    line("once", await idempotency.once(gateway, OWNER, "a key", ONCE, nothing))
    orders = await webhooks.show(gateway, OWNER, ids["Orders"])
    for token in (MAIN, SECOND, "another"):
        await house.call(orders, ORDER % b"1001", headers={"X-Shop-Key": token})
        newest = (await house.history())[0]
        line("called again", [newest.code, newest.matched, newest.duplicate_of])
    line("may answer", gateway.site.response_token("inv_1.1"))
    await webhooks.change(gateway, OWNER, ids["Fetches"], {"schedule": {"timeoutSeconds": 20}})
    line("fetched before", await gateway.store.schedules.states([ids["Fetches"]]))
    await webhooks.change(gateway, OWNER, ids["Mistyped"], {"authentication": {"token": MAIN}})
    line("let in", await readmission.recheck(gateway, OWNER, ids["Mistyped"]))


class _Made:
    def __init__(self, house: House, clock: OneClock) -> None:
        self.house, self.gateway, self.clock = house, house.gateway, clock

    async def people(self) -> None:
        await accounts.ensure_admin(self.gateway, PASSWORD)
        for level in LEVELS:
            await accounts.create_user(self.gateway, OWNER, f"{level}er", PASSWORD, level)
            self.key = (await accounts.create_key(self.gateway, OWNER, f"for {level}", level)).key
        await accounts.actor_of_key(self.gateway, self.key)
        self.of = {
            name: await self.house.webhook(**{"name": name, **one}) for name, one in requests().items()
        }

    async def call(self, name: str, said: str, **call: Any) -> str:
        """A call that says how it is to go. Its id."""
        answer = await self.house.call(self.of[name], b'{"n":"%s"}' % said.encode(), **call)
        await self.house.deliver()
        return (await self.house.history())[0].id if answer else ""

    async def ends(self) -> None:
        endings = EndingsLoop(self.gateway)
        while await endings.ask():
            pass
        await endings.write()

    async def calls(self) -> None:
        house, orders, plain = self.house, self.of["Orders"], self.of["Plain"].id
        await samples.arm(self.gateway, OWNER, orders.id)
        for body, token in ((b"1001", MAIN), (b"1002", SECOND), (b"1001", MAIN)):
            headers = {"X-Shop-Key": token, "User-Agent": "Shop/1"}
            await house.call(orders, ORDER % body, headers=headers, query="a=1&token=x")
            await house.deliver()
        self.first = (await house.history())[-1].id
        await house.call(orders, b"{broken", headers=headers)
        await house.call(
            self.of["by zoom"], b'{"event":"endpoint.url_validation","payload":{"plainToken":"q"}}'
        )
        for number in range(MOST_ANNOUNCED + 1):
            await house.call(self.of["by notion"], b'{"verification_token":"secret_of_notion_%d"}' % number)
        mistyped = [
            await self.call("Mistyped", f"mistyped {number}", headers={"X-Api-Key": MAIN})
            for number in range(5)
        ]
        await webhooks.change(
            self.gateway, OWNER, self.of["Mistyped"].id, {"authentication": {"token": MAIN}}
        )
        await readmission.admit(self.gateway, OWNER, mistyped[:1])
        await webhooks.change(
            self.gateway, OWNER, self.of["Mistyped"].id, {"authentication": {"token": "mistyped"}}
        )
        for said in ("goes well", "fails", "is refused", "is lost"):
            await self.call("Plain", said)
        await holds.hold(self.gateway, OWNER, plain)
        await self.call("Plain", "is dropped")
        await self.call("Choosy", "filtered")
        await holds.drop(self.gateway, OWNER, plain)
        await self.call("Plain", "is released")
        await holds.release(self.gateway, OWNER, plain)
        for _ in range(2):
            await self.call("In turn", "goes well")
        self.clock.passes(6)
        await self.house.deliver()
        house.engine.down = True
        await self.call("Plain", "waits")
        house.engine.down = False
        self.clock.passes(60)
        await self.ends()
        await marks.bookmark(self.gateway, OWNER, self.first)
        await marks.add_note(self.gateway, OWNER, self.first, "Asked the shop.")
        await editing.replay_edited(self.gateway, OWNER, self.first, values={"fieldTwo": "Eve"})
        await saved_views.save(self.gateway, OWNER, "Failed orders", "status=failed")

    async def callers_who_wait(self) -> None:
        """One is answered; the others hear that the time is over, and their workflow answers and fails later."""
        for is_late in (False, *[True] * 5):
            self.house.engine.started.clear()
            if is_late:
                self.house.lets_callers_wait(self.of["Waits"])
            calling = asyncio.create_task(self.house.call(self.of["Waits"]))
            trigger = await self.house.begun()
            if is_late:
                await calling
            with suppress(Refused):
                await self.house.answer(trigger, 201, {"done": True}, {"X-Order": "1001"})
            await calling
            end = End("failed", self.clock(), "it fails") if is_late else End("completed", self.clock())
            self.gateway.runtime.endings.ended(trigger.key, end)
        for bound in LATENCY_BOUNDS_MS:
            self.gateway.runtime.endings.count(self.of["Plain"].id, 200, bound / 1000)
        await self.ends()

    async def replays(self) -> None:
        """One of each state. A plan keeps its filter, of which each member is in one."""
        wanted = [
            HistoryFilter(webhook_id=self.of["Plain"].id),
            HistoryFilter(since=BEGINS, until=BEGINS + 60, search="goes", address="127.0.0.1", value="1001"),
            HistoryFilter(code="accepted", answer="200", bookmarked=True, header="user-agent=Shop/1"),
            HistoryFilter(field="fieldOne=1001"),
            HistoryFilter(error="it fails"),
            *(HistoryFilter(status=one) for one in STATUSES),
        ]
        made = [(await replays.plan(self.gateway, OWNER, one, include_completed=True)).id for one in wanted]
        done, cancelled, self.planned, *_ = made
        await replays.begin(self.gateway, OWNER, done, "current")
        await Replayer(self.gateway).round()
        await replays.begin(self.gateway, OWNER, cancelled)
        await replays.cancel(self.gateway, OWNER, cancelled)
        await replays.plan(self.gateway, OWNER, HistoryFilter(replay=done))
        await self.house.deliver()

    async def incidents(self) -> None:
        """One of each kind, one that is over, and one that somebody has seen."""
        for name in ("Fetches", "Paused", "Paused"):
            await schedules.run_now(self.gateway, OWNER, self.of[name].id)
        await self.gateway.store.schedules.claim(self.clock() + 3600, 60, 1)
        for _ in range(3):
            await self.call("Nothing starts", "is refused")
            await self.call("All fail", "fails")
            await self.house.call(self.of["Off"], b"{broken")
        self.clock.passes(60)
        await self.ends()
        judge, tell = AlarmLoop(self.gateway), TellLoop(self.gateway)
        self.gateway.runtime.troubles_seen = {"disk": (self.clock(), "The disk is nearly full.")}
        for number in range(10):
            self.clock.passes(20)
            await judge.round()
            await tell.round()
            if number == 5:
                opened = (await incidents.listing(self.gateway, OWNER)).items
                await incidents.acknowledge(self.gateway, OWNER, opened[0].id, "asks the shop")
                await webhooks.switch(self.gateway, OWNER, self.of["Off"].id, False)

    async def a_day_later(self) -> None:
        """What is deleted, and then what is kept for less than a day."""
        for name in ("Gone", "Forgets"):
            await self.call(name, "is deleted")
        plan = await replays.plan(
            self.gateway, OWNER, HistoryFilter(webhook_id=self.of["Forgets"].id), include_completed=True
        )
        await replays.begin(self.gateway, OWNER, plan.id)
        await webhooks.switch(self.gateway, OWNER, self.of["Forgets"].id, False)
        await Replayer(self.gateway).round()
        for name in ("Gone", "Binned"):
            await webhooks.remove(self.gateway, OWNER, self.of[name].id)
        await bin.delete_for_good(self.gateway, OWNER, self.of["Gone"].id)
        self.clock.passes(90_000)
        while await findable.step(self.gateway):
            pass
        await retention.roll_up(self.gateway)
        self.gateway.engine = None  # it forgets its copies later
        await retention.prune(self.gateway, OWNER)

        async def made() -> idempotency.KeptAnswer:
            return 201, [("location", "/things/1")], b"{}"

        await idempotency.once(self.gateway, OWNER, "a key", ONCE, made)
        keys = "https://keys.example.com/jwks.json", b'{"keys":[]}'
        await self.gateway.store.sender_keys.keep(*keys, self.clock(), 1e9)
        self.gateway.alarms = replace(self.gateway.alarms, mails=True)
        key = "whsec_" + base64.b64encode(bytes(32)).decode()
        for address in (
            "mailto:ops@shop.example",
            f"webhook+https://hooks.example/a#{key}",
            "telegram+https://t.example/bot/sendMessage#1",
        ):
            await channels.add(self.gateway, OWNER, address)
        for kind in ("slack", "teams", "discord"):
            await channels.add(
                self.gateway, OWNER, f"{kind}+https://{kind}.example/a", kind, self.of["Orders"].id
            )
        await channels.add(
            self.gateway, OWNER, "ntfy+https://ntfy.example/a#tk_written", folder="Shops/Europe"
        )
        await replays.begin(self.gateway, OWNER, self.planned)
        await samples.arm(self.gateway, OWNER, self.of["Mistyped"].id)
        await self.house.call(self.of["Orders"], ORDER % b"1003", headers={"X-Shop-Key": MAIN})
        await holds.hold(self.gateway, OWNER, self.of["Plain"].id)
        await self.house.call(self.of["Plain"])
        await self.house.call(self.of["In turn"])
        self.clock.passes(6)
        lane = self.of["In turn"].id
        served = self.gateway.runtime.directory.by_id(lane)
        assert served is not None and served.turns is not None
        await self.gateway.store.turns.claim(lane, served.turns, True, self.clock(), 30.0, 1, 1 << 20)
        await self.listeners()

    async def listeners(self) -> None:
        for level in LEVELS:
            self.session = await accounts.sign_in(
                self.gateway, f"{level}er", PASSWORD, "192.0.2.7", "Firefox"
            )
            person = await accounts.actor_of_session(self.gateway, self.session)
            if level != "admin":
                await accounts.sign_out(self.gateway, self.session)
        desk, other = [
            await listeners.enter(self.gateway, one, listeners.EnterRequest(name=one.name), "192.0.2.7")
            for one in (OWNER, person)
        ]
        for request in (listeners.LocalAnswer(status=201, ms=12.5), listeners.LocalAnswer(error="refused")):
            run = await listeners.replay(self.gateway, OWNER, desk.id, self.first)
            await listeners.answer(self.gateway, OWNER, desk.id, run.id, request)
        await listeners.replay(self.gateway, OWNER, desk.id, self.first)
        await listeners.end(self.gateway, OWNER, other.id)
