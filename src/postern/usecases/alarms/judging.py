"""Judging, every few seconds and in one process at a time, whether something is to be told: incidents open, gather what comes,
and close by themselves."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from postern.core.alarms import (
    IN_A_ROW,
    LATELY,
    LOOK_BACK,
    NEARLY_FULL,
    SECOND_SECRET_DAYS,
    WAITS,
    AlarmKind,
    Found,
    Incident,
    Minutes,
    gathered,
    is_bad,
    is_well,
    opens,
)
from postern.core.operations.retention import DAY
from postern.core.rhythm import rhythm_of
from postern.core.webhooks.settings import RhythmSetting
from postern.core.webhooks.webhook import Webhook
from postern.observe.logs import Log
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.loop import Loop

TURN = "alarms"
EVERY = 15.0
SHARE, LONGEST_PAUSE = 100, 60.0
"""Judging takes one of so many parts of the time; and seconds, however long it takes."""
LONGEST_GAP = 120.0
"""Seconds without a judge after which nobody can say that calls should have come: perhaps no gateway was there to take them."""
RECENT = 5
"""Minutes: a webhook at which nothing went wrong in these is not looked at, unless it has an incident."""
AT_ONCE, STEP = 100, 25
"""Webhooks looked at in one round, and in one query. Where more are in trouble, the others come in the next rounds."""
SELDOM = 3600.0
"""Seconds after which the disk, the history's size and second secrets are looked at again."""
LITTLE_ROOM = 5 * 2**30
"""Bytes: a large disk of which a tenth is free has room for long."""
OPEN_FOR_LONG = 3600.0
OVER_AFTER = 60.0
KNOWN_FOR = 30 * 1440
"""Minutes: a reason that was there within these is not new."""
STRANGERS = ("credential_missing", "signature_missing", "method_not_allowed")
"""Whoever does not even try to prove anything may be anybody: this alone is no news."""
OF_CALLS: tuple[AlarmKind, ...] = ("rejected", "not_started", "answers")

log = Log()


class AlarmLoop:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._open: dict[tuple[str, str], Incident] = {}
        self._known: set[tuple[str, str]] = set()
        """Reasons for which calls of a webhook were rejected before."""
        self._due: dict[str, tuple[RhythmSetting, float, int]] = {}
        """Of a webhook with a rhythm: the setting, since when it holds, and the minute by which the next call should have come."""
        self._place = ""
        self._seldom_at = 0.0
        self._nearly_full: dict[str, str] = {}
        self._took = 0.0
        self._loop = Loop("alarms", self._work, lambda: self._loop.rest(self._pause))
        self.run, self.stop = self._loop.run, self._loop.stop

    async def _work(self) -> None:
        began = time.monotonic()
        await self.round()
        self._took = time.monotonic() - began

    @property
    def _pause(self) -> float:
        return min(max(EVERY, self._took * SHARE), LONGEST_PAUSE)

    async def round(self) -> None:
        store, now = self._gateway.store, self._gateway.clock()
        await self._look()
        await self._tell_troubles(now)
        before = await store.chores.last_done(TURN)
        if not await store.chores.my_turn(TURN, now, EVERY - 1):
            return
        since = float(await store.chores.reached(TURN) or 0)
        if before is None or not 0 <= now - before[0] <= LONGEST_GAP or not since:
            since = now
            await store.chores.reach(TURN, str(int(now)), now)
        if now >= self._seldom_at:
            self._seldom_at = now + SELDOM
            await self._look_seldom(now)
        await self._end_what_nobody_watches(now)
        await self._judge_calls(now)
        await self._judge_silence(now, since)
        await self._look()

    async def _look(self) -> None:
        found = await self._gateway.store.incidents.open()
        self._open = {(one.webhook_id, one.kind): one for one in found}
        self._gateway.runtime.incidents = found

    def _watches(self, webhook: Webhook, kind: AlarmKind) -> bool:
        own = webhook.alarms
        wanted = {
            "rejected": own.rejected,
            "not_started": own.not_started,
            "answers": own.answers and webhook.answer_timeout is not None,
            "silence": own.rhythm is not None,
            "gateway": True,
        }
        return webhook.enabled and wanted[kind] and kind in self._gateway.alarms.kinds

    async def _begin(self, webhook_id: str, kind: AlarmKind, found: Found, now: float) -> None:
        made = await self._gateway.store.incidents.begin(webhook_id, kind, found, now)
        if made is not None:
            log.warning(
                "an incident has opened",
                incident=made,
                webhook=webhook_id,
                kind=kind,
                count=found.count,
                reasons=found.reasons,
            )

    async def _close(self, incident: Incident, now: float, because: str) -> None:
        if await self._gateway.store.incidents.close(incident.id, now, because):
            log.info(
                "an incident is over", incident=incident.id, webhook=incident.webhook_id, because=because
            )

    async def _end_what_nobody_watches(self, now: float) -> None:
        directory = self._gateway.runtime.directory
        for incident in self._open.values():
            webhook_id = incident.webhook_id
            if not webhook_id:
                continue
            webhook = directory.by_id(webhook_id)
            if webhook is None and directory.listed_by_id(webhook_id) is None:
                await self._close(incident, now, "the webhook was deleted")
            elif webhook is not None and not self._watches(webhook, incident.kind):
                off = "this is no longer watched for" if webhook.enabled else "the webhook was disabled"
                await self._close(incident, now, off)

    # --- the gateway itself --------------------------------------------------------------------------------------------

    async def _tell_troubles(self, now: float) -> None:
        """Each process tells its own, also those that are over when the database can be written to again."""
        runtime, store = self._gateway.runtime, self._gateway.store.incidents
        seen = runtime.troubles_seen | {name: (now, said) for name, said in self._nearly_full.items()}
        if not seen or "gateway" not in self._gateway.alarms.kinds:
            return
        before = self._open.get(("", "gateway"))
        found = Found(
            first_at=min([since for since, _ in seen.values()] + ([before.first_at] if before else [])),
            last_at=now,
            count=len(seen | (before.reasons if before else {})),
            reasons=dict.fromkeys([*(before.reasons if before else ()), *seen], 1),
            detail=" ".join(sentence for _, sentence in seen.values()),
        )
        if before is None:
            await self._begin("", "gateway", found, now)
        else:
            await store.gather(before.id, found)
        runtime.troubles_seen = {}

    async def _look_seldom(self, now: float) -> None:
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
                    f"About {came:,} calls came in {policy.history_days} days, and {policy.most_rows:,} are kept at most: the "
                    "oldest go sooner than after these days."
                )
        old = await store.incidents.second_secrets(now - SECOND_SECRET_DAYS * DAY)
        for webhook_id, since in old.items() if "gateway" in self._gateway.alarms.kinds else ():
            if (webhook_id, "gateway") not in self._open:
                days = f"Its second secret has been valid for more than {SECOND_SECRET_DAYS} days: promote it, or take it away."
                await self._begin(
                    webhook_id, "gateway", Found(since, now, 1, {"second_secret": 1}, days), now
                )
        for (webhook_id, of), incident in self._open.items():
            if webhook_id and of == "gateway" and webhook_id not in old:
                await self._close(incident, now, "only one secret is valid, or the second one is new")

    # --- calls ---------------------------------------------------------------------------------------------------------

    async def _judge_calls(self, now: float) -> None:
        gateway, store, minute = self._gateway, self._gateway.store.incidents, int(now // 60)
        engine_is_well = not any(
            one.kind in ("engine cannot start", "calls wait") for one in gateway.runtime.troubles
        )
        # Where the engine is away, all calls wait, and that is told once.
        waiting = await store.waiting() if engine_is_well else {}
        in_trouble = await store.in_trouble(minute - RECENT) | waiting.keys()
        in_trouble |= {webhook_id for webhook_id, kind in self._open if kind in OF_CALLS}
        for ids in self._next_ones(in_trouble):
            found = await store.minutes(ids, minute - LOOK_BACK, minute + 1)
            for webhook_id in ids:
                webhook = gateway.runtime.directory.by_id(webhook_id)
                for kind in OF_CALLS if webhook is not None else ():
                    assert webhook is not None
                    if self._watches(webhook, kind):
                        late = now - webhook.alarms.waits_minutes * 60
                        waits = [
                            at for at in waiting.get(webhook_id, ()) if at < late and kind == "not_started"
                        ]
                        await self._judge(webhook, kind, found[webhook_id], waits, now)
        gateway_own = self._open.get(("", "gateway"))
        if gateway_own is not None and gateway_own.last_at < now - OVER_AFTER:
            await self._close(gateway_own, now, "all is well again")

    def _next_ones(self, in_trouble: Iterable[str]) -> list[list[str]]:
        everyone = sorted(in_trouble)
        if len(everyone) > AT_ONCE:
            later = [one for one in everyone if one > self._place]
            everyone = [*later, *everyone[: len(everyone) - len(later)]][:AT_ONCE]
            self._place = everyone[-1]
        return [everyone[place : place + STEP] for place in range(0, len(everyone), STEP)]

    async def _judge(
        self, webhook: Webhook, kind: AlarmKind, minutes: Minutes, waits: Sequence[float], now: float
    ) -> None:
        store, minute, share = self._gateway.store.incidents, int(now // 60), webhook.alarms.share_percent
        incident = self._open.get((webhook.id, kind))
        if incident is None:
            first = await self._first(webhook, kind, minutes, minute)
            if first is None and waits:
                first = int(min(waits) // 60)
            if first is not None:
                exact = await store.minutes([webhook.id], first, minute + 1)
                if (found := _with_waits(gathered(kind, exact[webhook.id]), waits)) is not None:
                    await self._begin(webhook.id, kind, found, now)
            return
        exact = await store.minutes([webhook.id], int(incident.first_at // 60), minute + 1)
        found = _with_waits(gathered(kind, exact[webhook.id]), waits)
        if found is not None and (found.count, found.last_at) != (incident.count, incident.last_at):
            await store.gather(incident.id, found)
        if waits:
            return
        if found is None:
            await self._close(incident, now, "what waited was started")
        elif is_well(kind, minutes, share, minute, long=now - incident.opened_at > OPEN_FOR_LONG):
            await self._close(incident, now, "calls go well again")

    async def _first(self, webhook: Webhook, kind: AlarmKind, minutes: Minutes, minute: int) -> int | None:
        """Since which minute there is something to tell."""
        if opens(kind, minutes, webhook.alarms.share_percent) is None and kind != "rejected":
            return None
        # What an incident before has told is not told again.
        closed = int(await self._gateway.store.incidents.last_closed(webhook.id, kind) // 60)
        since = {at: counted for at, counted in minutes.items() if at > closed}
        if not any(is_bad(kind, name) for at in since if at >= minute - RECENT for name in since[at]):
            return None
        first = opens(kind, since, webhook.alarms.share_percent)
        if first is None and kind == "rejected":
            first = await self._first_of_new_reason(webhook.id, since, minute)
        return first

    async def _first_of_new_reason(self, webhook_id: str, minutes: Minutes, minute: int) -> int | None:
        recent = {at: counted for at, counted in minutes.items() if at > minute - LATELY}
        found = gathered("rejected", recent)
        for reason, count in found.reasons.items() if found else ():
            if count < IN_A_ROW or reason in STRANGERS or (webhook_id, reason) in self._known:
                continue
            past = minute - KNOWN_FOR, minute - LATELY
            store = self._gateway.store.incidents
            if await store.has_been(webhook_id, reason, *past) or not await store.has_been(
                webhook_id, "accepted", *past
            ):
                self._known.add((webhook_id, reason))
                continue
            return min(at for at, counted in recent.items() if reason in counted)
        return None

    # --- silence -------------------------------------------------------------------------------------------------------

    async def _judge_silence(self, now: float, since: float) -> None:
        directory, minute = self._gateway.runtime.directory, int(now // 60)
        asked: dict[str, tuple[Webhook, RhythmSetting]] = {}
        for one in directory.listed():
            webhook = directory.by_id(one.id)
            if webhook is None or webhook.alarms.rhythm is None or not self._watches(webhook, "silence"):
                continue
            setting, known = webhook.alarms.rhythm, self._due.get(one.id)
            same = known is not None and known[:2] == (setting, max(webhook.changed_at, since))
            if known is None or not same or minute > known[2] or (one.id, "silence") in self._open:
                asked[one.id] = webhook, setting
        ids = list(asked)
        for place in range(0, len(ids), AT_ONCE):
            step = ids[place : place + AT_ONCE]
            last_calls = await self._gateway.store.incidents.last_calls(step)
            for webhook_id in step:
                webhook, setting = asked[webhook_id]
                await self._judge_one(webhook, setting, last_calls.get(webhook_id), since, now)

    async def _judge_one(
        self, webhook: Webhook, setting: RhythmSetting, last: int | None, since: float, now: float
    ) -> None:
        begins = max(webhook.changed_at, since)
        quiet_days = self._gateway.alarms.quiet_days
        rhythm = rhythm_of(setting.cron, setting.grace_minutes, setting.time_zone, quiet_days)
        due = rhythm.deadline(max(last or 0, int(begins // 60)))
        self._due[webhook.id] = setting, begins, due
        incident = self._open.get((webhook.id, "silence"))
        if incident is not None:
            if last is not None and last * 60 > incident.first_at:
                await self._close(incident, now, "calls come again")
            elif webhook.changed_at > incident.opened_at:
                await self._close(incident, now, "its settings were changed")
        elif int(now // 60) > due and (webhook.id, "rejected") not in self._open:
            # Where calls come and are rejected, that is told already.
            by = datetime.fromtimestamp(due * 60, UTC).strftime("%Y-%m-%d %H:%M UTC")
            first_at = last * 60.0 if last is not None else begins
            found = Found(first_at, due * 60.0, 1, {"silence": 1}, f"A call should have come by {by}.")
            await self._begin(webhook.id, "silence", found, now)


def _with_waits(found: Found | None, waits: Sequence[float]) -> Found | None:
    if not waits:
        return found
    reasons = dict(found.reasons) if found else {}
    reasons[WAITS.partition(":")[2]] = len(waits)
    first = min([*waits, *([found.first_at] if found else [])])
    last = max([*waits, *([found.last_at] if found else [])])
    return Found(first, last, sum(reasons.values()), reasons)
