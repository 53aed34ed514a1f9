"""A world from a seed: gateways in one process on one store, an engine that notes, and one clock that may be set. What random
calls, people, crashes, lost commits and wrong clocks do is kept in a ledger, with which every surface is compared in the end."""

import asyncio
import hmac
import json
import logging
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import structlog

from postern import identity
from postern.core.deliveries.delivery import End, EngineUnavailable
from postern.core.history.invocation import HistoryFilter, StoreUnavailable
from postern.core.problems import Refused
from postern.stores.history import volumes as stored_volumes
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.calls import readmission
from postern.usecases.deliveries import dispatch, holds, replays
from postern.usecases.deliveries.dispatch import Dispatcher
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.history import findable, history, volumes
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.history.filters import filter_of
from postern.usecases.operations import clock as watching
from postern.usecases.operations import retention
from postern.usecases.operations.clock import ClockWatch
from postern.usecases.operations.retention import RetentionLoop
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook
from support.fresh import fresh_key
from support.house import OWNER, House, NotingEngine, a_house

BEGINS = 1_800_000_000.0
WINDOW = 7 * 86_400
STEPS = (-7200.0, -3600.0, -90.0, 90.0, 3600.0, 7200.0, -40 * 86_400.0, 40 * 86_400.0)


class OneClock:
    """Each look takes a moment: no two ids are of the same time."""

    def __init__(self) -> None:
        self.now, self.steady = BEGINS, 0.0

    def __call__(self) -> float:
        self.passes(0.001)
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds


class EndingEngine(NotingEngine):
    """Its runs end at once, and it tells so when it is asked."""

    asked_after: float | None = 1.0

    def __init__(self, clock: OneClock) -> None:
        super().__init__()
        self._clock = clock

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        if self.down:
            raise EngineUnavailable("switched off by the simulation")
        return {key: self._end(key) for key in keys if key in self.started}

    def _end(self, key: str) -> End:
        fails = b"fails" in self.started[key].payload
        return End("failed", self._clock(), "it fails") if fails else End("completed", self._clock())


@dataclass
class Sent:
    """One event: how often its sender was told that it is taken, and people asked for another start."""

    webhook: Webhook
    body: bytes
    headers: dict[str, str]
    ids: list[str] = field(default_factory=list)
    is_taken: bool = False
    is_rejected: bool = False
    attempts: int = 0
    """As often as its sender has sent it where nothing protects from duplicates."""
    asked_again: int = 0
    protected_until: float = 0.0

    @property
    def fails(self) -> bool:
        return b"fails" in self.body

    @property
    def is_held_back(self) -> bool:
        return b"concerns nobody" in self.body

    @property
    def event(self) -> str:
        return str(json.loads(self.body)["n"])


class World:
    def __init__(
        self, seed: int, clock: OneClock, houses: "list[House]", again: Callable[[int], Awaitable[House]]
    ) -> None:
        self.chance, self.clock, self.houses, self._again = Random(seed), clock, houses, again
        self.engine, self.target = EndingEngine(clock), NotingEngine()
        self.sent: list[Sent] = []
        self.accepted: list[tuple[str, int, str]] = []
        """Webhook, value of the turn and id, in the order of the answers."""
        self.broken: list[str] = []
        self.done: list[str] = []
        self._takes_commits = ""
        """For one commit: `refused` before it is made, or `lost` after."""

    # --- what happens ------------------------------------------------------------------------------------------------

    async def begins(self) -> None:
        for place in range(len(self.houses)):
            self._move_in(place)
        protected: Any = {"enabled": True, "windowSeconds": WINDOW}
        signs = {"method": "hmac", "provider": "github", "secret": RIGHT}
        mapped: Any = {"fieldMapping": {"fieldOne": "n"}}
        house = self.houses[0]
        self.plain = await house.webhook(name="Plain", **mapped)
        self.guarded = await house.webhook(name="Guarded", duplicateProtection=protected, **mapped)
        self.signed = await house.webhook(name="Signed", authentication=signs, **mapped)
        concerns: Any = [{"of": "it", "is": "notOneOf", "values": ["concerns nobody"]}]
        self.choosy = await house.webhook(name="Choosy", conditions=concerns, **mapped)
        self.aimed = await house.webhook(name="Aimed", target={"url": "https://erp.example/in"}, **mapped)
        self.ordered = await house.webhook(name="Ordered", turns={"by": "who", "atOnce": 2}, **mapped)
        self.bursts = await house.webhook(
            name="Bursts", turns={"by": "who", "newestAfterSeconds": 60}, **mapped
        )
        await self._tell_all()

    async def happens(self, count: int, steps: tuple[float, ...]) -> None:
        kinds: list[tuple[int, Callable[[House], Awaitable[None]]]] = [
            (6, self._call), (2, self._broken_call), (2, self._sent_again), (1, self._mistyped), (1, self._admitted),
            (1, self._held), (1, self._released), (1, self._replayed), (1, self._replayed_many), (2, self._engine_away),
            (2, self._trouble), (2, self._crash), (5, self._rounds), (2, self._time), (3 if steps else 0, lambda _: self._step(steps)),
        ]  # fmt: skip
        for _ in range(count):
            does = self.chance.choices([one for _, one in kinds], [often for often, _ in kinds])[0]
            try:
                await does(self.chance.choice(self.houses))
            except (StoreUnavailable, Refused) as trouble:
                self.done.append(f"  {trouble}")
            self._takes_commits = ""
            await self._tell_all()

    async def _call(self, house: House) -> None:
        every = [self.plain, self.guarded, self.signed, self.choosy, self.aimed, self.ordered, self.bursts]
        webhook = self.chance.choice(every)
        fails = webhook is not self.aimed and self.chance.random() < 0.3  # a target tells of no ends
        what = b'"fails"' if fails else b'"goes well"'
        if webhook is self.choosy and self.chance.random() < 0.5:
            what = b'"concerns nobody"'
        await self._send(house, self._event(webhook, what))

    def _event(self, webhook: Webhook, what: bytes) -> Sent:
        body = b'{"n": "event-%d", "it": %s, "who": %d}' % (len(self.sent), what, len(self.sent) % 2)
        sent = Sent(webhook, body, signed(body))
        self.sent.append(sent)
        return sent

    async def _send(self, house: House, sent: Sent) -> None:
        sent.attempts += sent.webhook is not self.guarded or self.clock.now > sent.protected_until
        answer = await house.call(sent.webhook, sent.body, headers=sent.headers)
        self.done.append(f"call {sent.body!r} to {sent.webhook.name}: {answer.status}")
        if answer.status == 200:
            sent.is_taken = True
            sent.protected_until = sent.protected_until or self.clock.now + WINDOW
            if answer.json["status"] == "accepted":
                sent.ids.append(str(answer.json["invocationId"]))
                who = json.loads(sent.body)["who"]
                self.accepted.append((sent.webhook.id, who, sent.ids[-1]))
        elif answer.status == 401:
            sent.is_rejected = True
        else:
            assert answer.status == 503, answer.status

    async def _broken_call(self, house: House) -> None:
        await house.call(self.plain, b"{broken")
        self.done.append("broken call")

    async def _sent_again(self, house: House) -> None:
        of_guarded = [one for one in self.sent if one.webhook is self.guarded]
        unheard = [one for one in self.sent if not one.is_taken and not one.is_rejected]
        if some := of_guarded + unheard:
            await self._send(house, self.chance.choice(some))

    async def _mistyped(self, house: House) -> None:
        """The secret is wrong for some calls."""
        await self._secret(house, "mistyped, and long enough")
        try:
            for _ in range(3):
                await self._send(house, self._event(self.signed, b'"goes well"'))
        finally:
            await self._secret(house, RIGHT)

    async def _secret(self, house: House, secret: str) -> None:
        await webhooks.change(house.gateway, OWNER, self.signed.id, {"authentication": {"secret": secret}})
        await self._tell_all()

    async def _admitted(self, house: House) -> None:
        self.done.append("admit")
        await readmission.admit_all(house.gateway, OWNER, self.signed.id)

    async def _held(self, house: House) -> None:
        self.done.append("hold")
        await holds.hold(house.gateway, OWNER, self.chance.choice([self.plain, self.guarded]).id)

    async def _released(self, house: House) -> None:
        self.done.append("release")
        for webhook in (self.plain, self.guarded):
            await holds.release(house.gateway, OWNER, webhook.id)

    async def _replayed(self, house: House) -> None:
        if some := [one for one in self.sent if one.ids]:
            sent = self.chance.choice(some)
            sent.asked_again += 1
            self.done.append(f"replay {sent.body!r}")
            await history.replay(house.gateway, OWNER, sent.ids[0])

    async def _replayed_many(self, house: House) -> None:
        await self._write_ends(house)
        failed = [one.id for one in await house.history(status="failed")]
        for sent in self.sent:
            sent.asked_again += (
                sent.fails
            )  # also one whose sender was told 503 and then that it is a duplicate
        self.done.append(f"replay of {len(failed)} failed")
        plan = await replays.plan(house.gateway, OWNER, HistoryFilter(status="failed"))
        await replays.begin(house.gateway, OWNER, plan.id)

    async def _engine_away(self, _house: House) -> None:
        one = self.chance.choice([self.engine, self.target])
        one.down = not one.down
        self.done.append(f"{'engine' if one is self.engine else 'target'} {'away' if one.down else 'there'}")

    async def _trouble(self, _house: House) -> None:
        """One commit of the next that happens is refused, or made and its answer lost."""
        self._takes_commits = self.chance.choice(("refused", "lost"))
        self.done.append(f"a commit is {self._takes_commits}")
        await self.chance.choice((self._call, self._released, self._replayed, self._replayed_many, self._rounds, self._admitted))(
            self.chance.choice(self.houses)
        )  # fmt: skip

    async def _crash(self, house: House) -> None:
        place = self.houses.index(house)
        self.done.append(f"crash of {place}")
        self.houses[place] = await self._again(place)
        self._move_in(place)

    async def _time(self, _house: House) -> None:
        self.clock.passes(self.chance.choice((1.0, 20.0, 100.0, 1000.0)))

    async def _step(self, steps: tuple[float, ...]) -> None:
        step = self.chance.choice(steps)
        self.done.append(f"clock {step:+.0f}")
        self.clock.now += step
        for house in self.houses:  # which looks each second; the other loops may not come to it
            await house.loops[0].round()  # type: ignore[attr-defined]
            if self.chance.random() < 0.5:
                await self._rounds(house)

    # --- what the gateway does by itself -------------------------------------------------------------------------------

    def _move_in(self, place: int) -> None:
        house = self.houses[place]
        house.gateway.engine = house.engine = self.engine
        house.gateway.outbound.target = lambda *_: self.target
        house.dispatcher = Dispatcher(house.gateway)
        house.loops = [  # type: ignore[attr-defined]
            ClockWatch(house.gateway), AlarmLoop(house.gateway), RetentionLoop(house.gateway), Replayer(house.gateway),
        ]  # fmt: skip
        house.endings = EndingsLoop(house.gateway)  # type: ignore[attr-defined]
        writer = house.gateway.store.writer
        really = writer._transact

        def transact(works: list[Any]) -> list[Any]:
            takes, self._takes_commits = self._takes_commits, ""
            if takes == "refused":
                raise StoreUnavailable("refused by the simulation")
            results = really(works)
            if takes == "lost":
                raise StoreUnavailable("lost by the simulation")
            return results

        writer._transact = transact  # type: ignore[method-assign]

    async def _tell_all(self) -> None:
        for house in self.houses:
            await house.gateway.runtime.directory.refresh()

    async def _rounds(self, house: House) -> None:
        """What each loop does, once."""
        await dispatch.catch_up(house.gateway)
        for loop in house.loops:  # type: ignore[attr-defined]
            await loop.round()
        await house.deliver()
        lane = Dispatcher(house.gateway, self.aimed.id)
        while await lane.round():
            await lane.finish()
        await self._write_ends(house)
        while await findable.step(house.gateway):
            pass

    async def _write_ends(self, house: House) -> None:
        endings = house.endings  # type: ignore[attr-defined]
        while await endings.ask():
            pass
        await endings.write()

    # --- in the end all is well ----------------------------------------------------------------------------------------

    async def ends(self) -> None:
        """Everything is there again, and the clock stays as it is: whatever waits is started, and every end is known."""
        house, self.engine.down, self.target.down = self.houses[0], False, False
        for one in self.houses:
            await self._rounds(one)
        await self._secret(house, RIGHT)
        for sent in self.sent:
            if not sent.is_taken and not sent.is_rejected:
                await self._send(house, sent)
        await self._released(house)
        await self._admitted(house)
        for _ in range(40):
            self.clock.passes(120.0)
            for one in self.houses:
                await self._rounds(one)

    async def compares(self) -> list[str]:
        """What is wrong, one sentence each."""
        house = self.houses[0]
        return (
            await self._of_starts(house)
            + await self._of_turns(house)
            + await self._of_history(house)
            + await self._of_news(house)
        )

    async def _of_starts(self, house: House) -> list[str]:
        wrong: list[str] = []
        stories = [await house.story(one) for one in await self._all(house, {})]
        deliveries = [one for story in stories for one in story.deliveries]
        for sent in self.sent:
            keys, others = (
                [key for key, trigger in one.started.items() if trigger.payload == sent.body]
                for one in sorted(
                    [self.engine, self.target],
                    key=lambda one: (one is self.engine) is (sent.webhook is self.aimed),
                )
            )
            if others:
                wrong.append(f"{sent.body!r} went where it does not go")
            if sent.is_held_back:
                if len(keys) > sent.asked_again * max(1, len(sent.ids)):
                    wrong.append(f"{sent.body!r} was held back, and started {len(keys)} times")
                continue
            first = sum(key.endswith(".1") for key in keys)
            states = [
                f"{one.state} {one.error}" for one in deliveries if one.fields.get("fieldOne") == sent.event
            ]
            # One in whose place another was started is compared in `_of_turns`.
            fewest = 0 if sent.webhook is self.bursts else 1
            # The clock was forty days behind when it came in; it is shown as failed, and any replay of failed calls starts it.
            is_given_up = "given up after 3 days" in str(states)
            if not (0 if is_given_up else fewest) <= first <= max(1, sent.attempts):
                wrong.append(f"{sent.body!r} was started {first} times: {states}")
            if len(keys) - first > sent.asked_again * max(1, first) and not is_given_up:
                wrong.append(f"{sent.body!r} was started {len(keys) - first} times more")
        return wrong

    async def _of_turns(self, house: House) -> list[str]:
        """Each value in its order; of a burst at least the last, and the others superseded by a later one."""
        wrong: list[str] = []
        begun = [key for key in self.engine.started if key.endswith(".1")]
        for webhook, who in product((self.ordered, self.bursts), (0, 1)):
            accepted = [f"{one}.1" for of, by, one in self.accepted if (of, by) == (webhook.id, who)]
            first = [one for one in begun if one in accepted]
            if first != [one for one in accepted if one in first]:
                wrong.append(f"calls of {who} to {webhook.name} were started in another order")
            rows = {one: await house.gateway.store.deliveries.get(one) for one in accepted}
            for place, (key, row) in enumerate(rows.items()):
                if (
                    row is not None
                    and row.state == "superseded"
                    and row.superseded_by in accepted[: place + 1]
                ):
                    wrong.append(f"{key} was superseded by an earlier call")
                if row is None or row.state not in ("completed", "failed", "superseded"):
                    wrong.append(f"{key} of {webhook.name} is {row and row.state} in the end")
        return wrong

    async def _of_history(self, house: House) -> list[str]:
        wrong: list[str] = []
        superseded = {one.id for one in await house.history(status="superseded")}
        failed = [one for sent in self.sent if sent.fails for one in sent.ids if one not in superseded]
        good = [sent for sent in self.sent if not sent.fails]
        ended = await house.history(status="failed")
        given_up = [one.id for one in ended if "given up after 3 days" in (one.error or "")]
        ids = [one for sent in good if not sent.is_held_back for one in sent.ids]
        apart = {*given_up, *superseded, *self._ids_of(self.aimed)}
        completed = [one for one in ids if one not in apart]
        filtered = [one for sent in good if sent.is_held_back and not sent.asked_again for one in sent.ids]
        until = {"until": f"{self.clock():.3f}"}
        for asked, ids in (
            ({}, failed + completed),
            (until, failed + completed),
            ({"since": f"{BEGINS - 3000 * 86_400:.0f}"}, failed + completed),
            ({"status": "failed"}, failed),
            ({"status": "filtered"}, filtered),
            (until | {"status": "completed"}, completed),
            *(({"webhook_id": one.id, **until}, self._ids_of(one)) for one in (self.plain, self.guarded, self.signed, self.choosy, self.aimed)),
            *(({"value": sent.event}, sent.ids) for sent in self.sent),
        ):  # fmt: skip
            found = await self._all(house, asked)
            if len(found) != len(set(found)):
                wrong.append(f"{asked}: some are listed twice")
            if missing := set(ids) - set(found):
                wrong.append(f"{asked}: {len(missing)} of {len(ids)} are not found")
        plan = await replays.plan(house.gateway, OWNER, HistoryFilter(status="failed"))
        listed = len(await self._all(house, {"status": "failed"}))
        if plan.count != listed:
            wrong.append(f"{plan.count} of {listed} failed calls are planned")
        return wrong

    def _ids_of(self, webhook: Webhook) -> list[str]:
        return [one for sent in self.sent if sent.webhook is webhook for one in sent.ids]

    async def _all(self, house: House, asked: dict[str, str]) -> list[str]:
        found, cursor = [], None
        while True:
            page = await history.listing(house.gateway, OWNER, filter_of(**asked), 25, cursor)
            found += [item.id for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def _of_news(self, house: House) -> list[str]:
        """What comes in now is the first in the list, counted, and told."""
        wrong: list[str] = []
        before = await volumes.chart(house.gateway, OWNER, self.plain.id)
        newest = []
        for _ in range(6):
            self.clock.passes(1.0)
            newest.append(str((await house.call(self.plain, b"{broken")).json["invocationId"]))
        listed = [one.id for one in await house.history()][:6]
        if listed != newest[::-1]:
            wrong.append(
                f"{sum(one in newest for one in listed)} of the newest 6 calls are the first in the list"
            )
        chart = await volumes.chart(house.gateway, OWNER, self.plain.id)
        if chart.total.calls != before.total.calls + 6:
            wrong.append(f"{chart.total.calls - before.total.calls} of 6 calls are in the chart")
        self.clock.passes(30.0)
        for one in self.houses:
            await self._rounds(one)
        told = {(one.webhook_id, one.kind) for one in await house.gateway.store.incidents.open()}
        if (self.plain.id, "rejected") not in told:
            wrong.append("six broken calls open no incident")
        return wrong


RIGHT = "a secret that is long enough"


def signed(body: bytes) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={hmac.digest(RIGHT.encode(), body, 'sha256').hex()}"}


@asynccontextmanager
async def a_world(seed: int, folder: Path, url: str = "", stores: int = 1) -> AsyncIterator[World]:
    """``url``: of a Postgres database that was started once; on SQLite there is one store."""
    clock = OneClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "clock", clock)
        patch.setattr(retention, "monotonic", lambda: clock.steady)
        patch.setattr(watching, "steady", lambda: clock.steady)
        # A step of forty days is summed up at once, and nobody waits for callers or an engine that only this world has.
        patch.setattr(stored_volumes, "STEP", 40 * 1440)
        patch.setattr(retention, "gently", lambda step: step)
        patch.setattr(dispatch, "LONGEST_PAUSE", 0.001)
        stacks = [AsyncExitStack() for _ in range(stores)]

        async def moved_in(place: int, number: int) -> House:
            data = folder / f"{place}-{number}"
            if url:
                fresh_key(data / "data")
            return await stacks[place].enter_async_context(
                a_house(data, POSTERN_HISTORY_DAYS="3650", **({"POSTERN_DATABASE_URL": url} if url else {}))
            )

        async def again(place: int) -> House:
            """As after `kill -9`: nothing but the files is left."""
            numbers[place] += 1
            old, new = (folder / f"{place}-{number}" for number in (numbers[place] - 1, numbers[place]))
            if not url:
                shutil.copytree(old, new)
            await stacks[place].aclose()
            return await moved_in(place, numbers[place])

        numbers = [0] * stores
        world = World(seed, clock, [await moved_in(place, 0) for place in range(stores)], again)
        try:
            await world.begins()
            yield world
        finally:
            for stack in stacks:
                await stack.aclose()


async def what_a_seed_finds(
    seed: int, folder: Path, url: str = "", stores: int = 1, steps: tuple[float, ...] = STEPS
) -> list[str]:
    async with a_world(seed, folder, url, stores) as world:
        await world.happens(60, steps)
        await world.ends()
        wrong = await world.compares()
        return [*wrong, *world.done] if wrong else []


def main() -> None:
    """`python tests/support/simulated.py 200 1` tries the seeds 1 to 200 on SQLite."""
    count, first = int(sys.argv[1]), int(sys.argv[2])
    steps = STEPS if "right-clock" not in sys.argv else ()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found = 0
    for seed in range(first, first + count):
        with TemporaryDirectory() as folder:
            if wrong := asyncio.run(what_a_seed_finds(seed, Path(folder), steps=steps)):
                found += 1
                print(f"seed {seed}:", *wrong, sep="\n  ", flush=True)
    print(f"{found} of {count} seeds from {first} on have found something")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
