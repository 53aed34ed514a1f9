"""Judges the alarms, in one process at a time: incidents open, count further calls, and close by themselves."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from postern.core.moment import to_the_minute
from postern.core.operations.retention import DAY
from postern.core.watch.alarms import (
    ALARMS,
    FAILS_CALLERS,
    IN_A_ROW,
    LATELY,
    LOOK_BACK,
    NEARLY_FULL,
    SECOND_SECRET_DAYS,
    STRANGERS,
    WAITS,
    WEEK,
    WORKFLOW_FAILED,
    AlarmKind,
    Found,
    Incident,
    Minutes,
    gathered,
    has_recovered,
    ignored_reasons,
    incident_start,
    is_bad,
    reasons_to_tell,
    stopped_at,
    without,
)
from postern.core.watch.rhythm import REMEMBERED, rhythm_of
from postern.core.webhooks.webhook import Webhook
from postern.identity import time_of
from postern.observe.logs import log
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.loop import Loop

TURN = "alarms"
JUDGE_EVERY = 15.0
SHARE, LONGEST_PAUSE = 100, 60.0
"""Judging takes at most one part in this many of the time; the pause has at most this many seconds."""
LONGEST_GAP = 120.0
"""Seconds without a judge after which a silence proves nothing: perhaps no gateway was there to take calls."""
RECENT = 5
"""Minutes: a webhook with no bad call in these and no incident is not looked at."""
WEBHOOKS_AT_ONCE, STEP = 100, 25
"""Webhooks judged in one round, and read by one query. Where more are in trouble, the others come in the next rounds."""
SELDOM = 3600.0
"""Seconds between two looks at the disk, the size of the history and second secrets."""
LITTLE_ROOM = 5 * 2**30
"""Bytes: on a large disk, a tenth that is free lasts for long."""
MANY = 100
"""Calls in trouble from which there may be more than were read."""
OPEN_FOR_LONG = 3600.0
CALLS_AGAIN = "calls come again"
KNOWN_FOR = 30 * 1440
"""Minutes: a reason that occurred within these is not new."""
OF_CALLS = tuple(kind for kind, alarm in ALARMS.items() if alarm.is_of_calls)


class AlarmLoop:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._open: dict[tuple[str, str], Incident] = {}
        self._due: dict[str, tuple[object, int]] = {}
        """By webhook with a rhythm: what the next minute depends on, and the minute by which the next call should have come."""
        self._place = ""
        self._seldom_at = 0.0
        self._nearly_full: dict[str, str] = {}
        self._more = ""
        self._away = 0.0
        """Seconds before this round in which nobody judged: what happened then is still to be told."""
        self._loop = Loop("alarms", self._work, JUDGE_EVERY, gateway.runtime.may_be_over.wait)
        self.run, self.stop = self._loop.run, self._loop.stop

    async def _work(self) -> None:
        began = time.monotonic()
        self._gateway.runtime.may_be_over.clear()
        await self.round()
        self._loop.every = min(max(JUDGE_EVERY, (time.monotonic() - began) * SHARE), LONGEST_PAUSE)

    async def round(self) -> None:
        store, now = self._gateway.store, self._gateway.clock()
        await self._read_open()
        await self._record_troubles(now)
        before = await store.chores.last_done(TURN)
        if not await store.chores.my_turn(TURN, now, JUDGE_EVERY - 1):
            return
        since = float(await store.chores.reached(TURN) or 0)
        if before is None or not 0 <= now - before[0] <= LONGEST_GAP or not since:
            since = now
            await store.chores.reach(TURN, str(int(now)), now)
        self._away = min(max(now - before[0], 0.0), LOOK_BACK * 60) if before else 0.0
        if not 0 < self._seldom_at - now <= SELDOM:  # also after a clock that was ahead
            self._seldom_at = now + SELDOM
            await self._judge_room(now)
            await self._judge_second_secrets(now)
        await self._close_what_is_off(now)
        await self._judge_calls(now)
        await self._judge_silence(now, since)
        await self._read_open()

    async def _read_open(self) -> None:
        opened = await self._gateway.store.incidents.open()
        self._open = {(incident.webhook_id, incident.kind): incident for incident in opened}
        self._gateway.runtime.incidents = opened

    def _is_enabled(self, webhook: Webhook, kind: AlarmKind) -> bool:
        return webhook.enabled and kind in self._gateway.alarms.kinds and _is_wanted(webhook, kind)

    async def _begin(self, webhook_id: str, kind: AlarmKind, finding: Found, now: float) -> None:
        made = await self._gateway.store.incidents.begin(webhook_id, kind, finding, now)
        if made is not None:
            about = {"incident": made, "webhook": webhook_id, "kind": kind}
            log.warning("an incident has opened", **about, count=finding.count, reasons=finding.reasons)
            opened = Incident(made, webhook_id, kind, now, finding.first_at, finding.last_at)
            self._open[webhook_id, kind] = opened

    async def _close(self, incident: Incident, now: float, because: str) -> None:
        if await self._gateway.store.incidents.close(incident.id, now, because):
            about = {"incident": incident.id, "webhook": incident.webhook_id}
            log.info("an incident is over", **about, because=because)

    async def _close_what_is_off(self, now: float) -> None:
        directory = self._gateway.runtime.directory
        for incident in self._open.values():
            webhook_id = incident.webhook_id
            webhook = directory.by_id(webhook_id)
            if webhook is not None and not self._is_enabled(webhook, incident.kind):
                off = "this alarm was turned off" if webhook.enabled else "the webhook was disabled"
                await self._close(incident, now, off)
            elif webhook_id and webhook is None and directory.listed_by_id(webhook_id) is None:
                await self._close(incident, now, "the webhook was deleted")

    # --- the gateway itself --------------------------------------------------------------------------------------------

    async def _record_troubles(self, now: float) -> None:
        """Each process records its own, also those that were over before the database could be written to again."""
        runtime = self._gateway.runtime
        seen = runtime.troubles_seen | {name: (now, said) for name, said in self._nearly_full.items()}
        if not seen or "gateway" not in self._gateway.alarms.kinds:
            return
        before = self._open.get(("", "gateway"))
        reasons = dict.fromkeys([*(before.reasons if before else ()), *seen], 1)
        first_at = min([since for since, _ in seen.values()] + ([before.first_at] if before else []))
        detail = " ".join(sentence for _, sentence in seen.values())
        finding = Found(first_at, now, len(reasons), reasons, detail)
        if before is None:
            await self._begin("", "gateway", finding, now)
        else:
            await self._gather(before, finding, now)
        runtime.troubles_seen = {}

    async def _judge_room(self, now: float) -> None:
        store, policy = self._gateway.store, self._gateway.retention
        self._nearly_full = {}
        room = store.room()
        if room is not None and room[0] < min((1 - NEARLY_FULL) * room[1], LITTLE_ROOM):
            free = f"{room[0] / 2**30:.1f} GiB of {room[1] / 2**30:.0f}"
            self._nearly_full["disk"] = (
                f"The disk is nearly full: {free} are free. When it is full, calls get 503."
            )
        if policy.most_rows:
            came = await store.incidents.counted_since(int((now - policy.history_days * DAY) // 60))
            if came > NEARLY_FULL * policy.most_rows:
                self._nearly_full["history"] = (
                    f"About {came:,} calls came in {policy.history_days} days, and at most {policy.most_rows:,} are kept: the "
                    "oldest are deleted before that many days are over."
                )

    async def _judge_second_secrets(self, now: float) -> None:
        old = await self._gateway.store.incidents.second_secrets(now - SECOND_SECRET_DAYS * DAY)
        detail = f"Its second secret has been valid for more than {SECOND_SECRET_DAYS} days: promote it, or remove it."
        for webhook_id, since in old.items() if "gateway" in self._gateway.alarms.kinds else ():
            if (webhook_id, "gateway") not in self._open:
                finding = Found(since, now, 1, {"second_secret": 1}, detail)
                await self._begin(webhook_id, "gateway", finding, now)
        for (webhook_id, of), incident in self._open.items():
            if webhook_id and of == "gateway" and webhook_id not in old:
                await self._close(incident, now, "only one secret is valid, or the second one is new")

    # --- calls ---------------------------------------------------------------------------------------------------------

    async def _judge_calls(self, now: float) -> None:
        gateway, store, minute = self._gateway, self._gateway.store.incidents, int(now // 60)
        troubles = {trouble.kind for trouble in gateway.runtime.troubles}
        # While the engine is away all calls wait: that is one incident of the gateway.
        waiting = {} if troubles & {"engine cannot start", "calls wait"} else await store.waiting()
        since = min(
            [
                now - LATELY * 60 - self._away,
                *(incident.first_at for incident in self._open.values() if incident.kind == "not_started"),
            ]
        )
        passed_over = await store.passed_over(since)
        read = max(sum(map(len, found.values())) for found in (waiting, passed_over))
        self._more = "at least " if read >= MANY else ""
        in_trouble = await store.in_trouble(minute - self._recent) | waiting.keys() | passed_over.keys()
        in_trouble |= {webhook_id for webhook_id, kind in self._open if kind in OF_CALLS}
        for ids in self._next_ones(in_trouble):
            counted = await store.minutes(ids, minute - LOOK_BACK, minute + 1)
            for webhook_id in ids:
                webhook = gateway.runtime.directory.by_id(webhook_id)
                if webhook is None:
                    continue
                late = now - webhook.alarms.waits_minutes * 60
                waits = {call: at for call, at in waiting.get(webhook_id, {}).items() if at < late}
                in_order = webhook.turns is not None and webhook.turns.in_order
                heads = passed_over.get(webhook_id, {}) if in_order else {}
                for kind in OF_CALLS:
                    if self._is_enabled(webhook, kind):
                        own = (waits, heads) if kind == "not_started" else ({}, {})
                        await self._judge(webhook, kind, counted[webhook_id], *own, now)
        gateway_own = self._open.get(("", "gateway"))
        if gateway_own is not None and gateway_own.last_at < now - LATELY * 60:
            await self._close(gateway_own, now, "all is well again")

    @property
    def _recent(self) -> int:
        return RECENT + int(self._away // 60)

    def _next_ones(self, in_trouble: Iterable[str]) -> list[list[str]]:
        everyone = sorted(in_trouble)
        if len(everyone) > WEBHOOKS_AT_ONCE:
            later = [webhook_id for webhook_id in everyone if webhook_id > self._place]
            everyone = [*later, *everyone[: len(everyone) - len(later)]][:WEBHOOKS_AT_ONCE]
            self._place = everyone[-1]
        return [everyone[place : place + STEP] for place in range(0, len(everyone), STEP)]

    async def _judge(
        self,
        webhook: Webhook,
        kind: AlarmKind,
        minutes: Minutes,
        tried: Mapping[str, float],
        passed_over: Mapping[str, float],
        now: float,
    ) -> None:
        """``tried``: the calls whose deliveries wait, since when, and were tried in vain for too long. ``passed_over``: those that were
        given up at the head of their turn, and when: one is enough for an incident."""
        waits = list(tried.values())
        lately = {call: at for call, at in passed_over.items() if at >= now - LATELY * 60 - self._away}
        incident, minute = self._open.get((webhook.id, kind)), int(now // 60)
        ignored: frozenset[str] = frozenset()
        stopped = None
        if kind == "rejected" and (incident or any(STRANGERS & counts.keys() for counts in minutes.values())):
            past = await self._gateway.store.incidents.minutes(
                [webhook.id], minute - WEEK - LOOK_BACK, minute + 1
            )
            ignored, stopped = ignored_reasons(past[webhook.id], minute), stopped_at(past[webhook.id], minute)
        because = {(webhook.id, other) for other in FAILS_CALLERS} & self._open.keys()
        if kind == "answers" and incident is None and because:
            ignored = frozenset({WORKFLOW_FAILED})
        minutes = without(minutes, ignored)
        if incident is None:
            first = await self._first(webhook, kind, minutes, minute, lately)
            if first is None and waits:
                first = int(min(waits) // 60)
            if first is not None:
                finding = await self._gathered(webhook.id, kind, range(first, minute + 1), ignored, waits)
                # A call of a time that is yet to come does not count as over, however often its incident has closed.
                if finding is not None and (waits or await self._is_left(webhook.id, kind, finding)):
                    finding = replace(finding, detail=_of_turns(webhook, tried, lately, self._more))
                    await self._begin(webhook.id, kind, finding, now)
            return
        ignored -= incident.reasons.keys()
        open_for = range(int(incident.first_at // 60), minute + 1)
        finding = await self._gathered(webhook.id, kind, open_for, ignored, waits)
        if finding is not None:
            passed = {call: at for call, at in passed_over.items() if at >= incident.first_at}
            finding = replace(finding, detail=_of_turns(webhook, tried, passed, self._more))
            if stopped is not None:
                # It may be the first minute of a quarter of an hour that is summed up.
                last = (await self._gateway.store.incidents.last_calls([webhook.id])).get(webhook.id, stopped)
                detail = f"No call has been accepted since {to_the_minute(last * 60)}."
                finding = replace(finding, detail=detail) if last * 60 > incident.first_at else finding
            await self._gather(incident, finding, now)
        long = now - incident.opened_at > OPEN_FOR_LONG
        if finding is None:
            waited = kind == "not_started"
            await self._close(
                incident, now, "what waited was started" if waited else "its calls are no longer counted"
            )
        elif not (waits or lately) and has_recovered(
            kind, minutes, webhook.alarms.share_percent, minute, long
        ):
            await self._close(incident, now, "calls go well again")
        elif (
            not waits and kind in FAILS_CALLERS and not await self._gateway.store.incidents.left(incident, 1)
        ):
            await self._close(incident, now, "each of its calls has gone through")

    async def _is_left(self, webhook_id: str, kind: AlarmKind, finding: Found) -> bool:
        found = Incident("", webhook_id, kind, finding.last_at, finding.first_at, finding.last_at)
        return kind not in FAILS_CALLERS or bool(await self._gateway.store.incidents.left(found, 1))

    async def _gather(self, before: Incident, finding: Found, now: float) -> None:
        after = replace(before, count=finding.count, reasons=finding.reasons, detail=finding.detail)
        news = set(reasons_to_tell(after)) - set(reasons_to_tell(before))
        if after != before or finding.last_at != before.last_at:
            await self._gateway.store.incidents.gather(before.id, finding, now if news else None)

    async def _gathered(
        self, webhook_id: str, kind: AlarmKind, span: range, ignored: Collection[str], waits: Sequence[float]
    ) -> Found | None:
        counted = await self._gateway.store.incidents.minutes([webhook_id], span.start, span.stop)
        minutes = dict(without(counted[webhook_id], ignored))
        for minute, count in Counter(int(at // 60) for at in waits).items():
            minutes[minute] = {**minutes.get(minute, {}), WAITS: count}
        finding = gathered(kind, minutes)
        return finding and await self._gateway.store.incidents.exactly(webhook_id, kind, finding, waits)

    async def _first(
        self,
        webhook: Webhook,
        kind: AlarmKind,
        minutes: Minutes,
        minute: int,
        passed_over: Mapping[str, float],
    ) -> int | None:
        """The minute since which an incident is there, or None."""
        share = webhook.alarms.share_percent
        if incident_start(kind, minutes, share) is None and kind != "rejected" and not passed_over:
            return None
        # An incident that is over has told of the calls before its end.
        closed_at = await self._gateway.store.incidents.last_closed(webhook.id, kind)
        if came := [time_of(call) for call, at in passed_over.items() if at > closed_at]:
            return int(min(came) // 60)
        closed = int(closed_at // 60)
        since = {at: counted for at, counted in minutes.items() if at > closed}
        if not any(is_bad(kind, name) for at in since if at >= minute - self._recent for name in since[at]):
            return None
        first = incident_start(kind, since, share)
        if first is None and kind == "rejected":
            first = await self._first_of_new_reason(webhook.id, since, minute)
        return first

    async def _first_of_new_reason(self, webhook_id: str, minutes: Minutes, minute: int) -> int | None:
        """When calls began to be rejected for a reason that is new, at a webhook that accepted calls before."""
        has_been, before = self._gateway.store.incidents.has_been, (minute - KNOWN_FOR, minute - LATELY)
        recent = {at: counted for at, counted in minutes.items() if at > minute - LATELY}
        finding = gathered("rejected", recent)
        for reason, count in finding.reasons.items() if finding else ():
            if count < IN_A_ROW or await has_been(webhook_id, reason, *before):
                continue
            if await has_been(webhook_id, "accepted", *before):
                return min(at for at, counted in recent.items() if reason in counted)
        return None

    # --- silence -------------------------------------------------------------------------------------------------------

    async def _judge_silence(self, now: float, since: float) -> None:
        directory, minute = self._gateway.runtime.directory, int(now // 60)
        watched: list[Webhook] = []
        for entry in directory.listed():
            webhook = directory.by_id(entry.id)
            if webhook is None or not self._is_enabled(webhook, "silence"):
                continue
            depends_on, due = self._due.get(entry.id, (None, 0))
            is_same = depends_on == (webhook.alarms.rhythm, max(webhook.changed_at, since))
            if not is_same or minute > due or (entry.id, "silence") in self._open:
                watched.append(webhook)
        for place in range(0, len(watched), WEBHOOKS_AT_ONCE):
            step = watched[place : place + WEBHOOKS_AT_ONCE]
            last_calls = await self._gateway.store.incidents.last_calls([member.id for member in step])
            for webhook in step:
                await self._judge_last_call(webhook, last_calls.get(webhook.id), since, now)

    async def _judge_last_call(self, webhook: Webhook, last: int | None, since: float, now: float) -> None:
        setting, begins = webhook.alarms.rhythm, max(webhook.changed_at, since)
        assert setting is not None
        quiet_days = self._gateway.alarms.quiet_days
        rhythm = rhythm_of(setting.rows, setting.time_zone, quiet_days)
        since_minute = max(last or 0, int(begins // 60))
        due = rhythm.deadline(since_minute)
        self._due[webhook.id] = (setting, begins), due
        incident = self._open.get((webhook.id, "silence"))
        if incident is not None:
            if last is not None and last * 60 > incident.first_at:
                await self._close(incident, now, CALLS_AGAIN)
            elif incident.opened_at < webhook.changed_at <= now:  # a time yet to come is of a wrong clock
                await self._close(incident, now, "its settings were changed")
        elif int(now // 60) > due and (webhook.id, "rejected") not in self._open:
            # Calls that come and are rejected have an incident already.
            lately = now - REMEMBERED * 60
            ended = await self._gateway.store.incidents.ended_by_themselves(webhook.id, CALLS_AGAIN, lately)
            due = rhythm.deadline(since_minute, ended)
            if int(now // 60) <= due:
                return
            first_at = last * 60.0 if last is not None else begins
            detail = f"A call should have come by {to_the_minute(due * 60)}."
            finding = Found(first_at, due * 60.0, 1, {"silence": 1}, detail)
            await self._begin(webhook.id, "silence", finding, now)


def _is_wanted(webhook: Webhook, kind: AlarmKind) -> bool:
    own = webhook.alarms
    match kind:
        case "rejected":
            return own.rejected
        case "not_started":
            return own.not_started
        case "runs_failed":
            return own.runs_failed
        case "answers":
            return own.answers and webhook.answer_timeout is not None
        case "silence":
            return own.rhythm is not None
        case "gateway":
            return True


def _of_turns(
    webhook: Webhook, tried: Mapping[str, float], passed_over: Mapping[str, float], more: str
) -> str:
    """Says which calls stand in the way of others, and which others have passed."""
    if webhook.turns is None or not webhook.turns.in_order:
        return ""
    others = f"the calls with the same {webhook.turns.by}" if webhook.turns.by else "the other calls"
    said = []
    if tried:
        said.append(f"{_first_of(tried, more)} is tried again, and {others} wait behind it.")
    if passed_over:
        said.append(f"{_first_of(passed_over, more)} was given up, and {others} went on without it.")
    return " ".join(said)


def _first_of(calls: Mapping[str, float], more: str) -> str:
    first = min(calls, key=calls.__getitem__)
    return f"{first} (and {more}{len(calls) - 1:,} more, each)" if len(calls) > 1 else first
