"""Scheduled webhooks: fetches what is due, and takes it in as if its source had called."""

import asyncio
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from postern.core.access.accounts import Actor
from postern.core.admit import admit_fetched
from postern.core.calls.call import Call
from postern.core.history.invocation import Entry, StoreUnavailable
from postern.core.problems import FetchTrouble, Refused
from postern.core.schedules import (
    ScheduleRun,
    ScheduleState,
    Seen,
    after_run,
    changed,
    conditions,
    next_run,
    parts_of,
    seen,
)
from postern.core.verdict import Step, Verdict
from postern.core.webhooks.settings import ScheduleSetting
from postern.core.webhooks.stored import StoredWebhook
from postern.core.webhooks.webhook import Webhook
from postern.observe.calls import call_counts
from postern.observe.logs import log
from postern.usecases.access.audit import note_down, noted
from postern.usecases.answers import shown
from postern.usecases.calls.receive import entry_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop
from postern.usecases.stored_webhook import stored
from postern.usecases.webhooks import views
from postern.usecases.webhooks.compiling import compile_webhook
from postern.usecases.webhooks.requests import SECRET_PREFIX
from postern.usecases.webhooks.webhooks import show

FETCHES_AT_ONCE = 20
CHECK_SCHEDULES_EVERY = 1.0
LEASE = 120.0
"""Seconds, more than the longest time-out. After them another process takes over a run whose process died."""


@dataclass
class FetchOutcome:
    """The result of one fetch: what is recorded, and what the schedule has to know."""

    result: str
    reason: str = ""
    entries: list[Entry] = field(default_factory=list)
    seen: Seen | None = None
    asked_for: float | None = None


async def run_now(gateway: Gateway, actor: Actor, webhook_id: str) -> views.ScheduleRun:
    """Fetch once, now, and say what came of it. A schedule that had paused itself goes on if this succeeds."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    if webhook.settings.schedule is None:
        raise Refused("conflict", "this webhook has no schedule")
    if not webhook.enabled:
        raise Refused("conflict", "this webhook is disabled and fetches nothing; enable it first")
    claimed = await gateway.store.schedules.take(webhook_id, gateway.clock(), LEASE)
    if claimed is None:
        raise Refused("conflict", "it is being run right now")
    await note_down(gateway, actor, "schedule run by hand", webhook_id)
    done = await run(gateway, claimed)
    if done is None:
        raise Refused("conflict", "its setting was changed while it ran: nothing was recorded")
    return done


async def resume(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Webhook:
    """Go on after a pause, at the schedule's next time."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    state = (await gateway.store.schedules.states([webhook_id])).get(webhook_id)
    if state is None or webhook.settings.schedule is None:
        raise Refused("conflict", "this webhook has no schedule")
    following = next_run(webhook.settings.schedule.times(state.anchor), gateway.clock(), webhook_id)
    note = noted(gateway, actor, "schedule resumed", webhook_id)
    if not await gateway.store.schedules.resume(webhook_id, following, note):
        raise Refused("conflict", "this schedule is not paused")
    return await show(gateway, actor, webhook_id)


async def run(gateway: Gateway, claimed: ScheduleState) -> views.ScheduleRun | None:
    """Runs a claimed schedule once. Returns None if it was no longer ours at the end: then nothing is recorded."""
    webhook = await gateway.store.webhooks.get(claimed.webhook_id)
    if not isinstance(webhook, StoredWebhook) or (setting := webhook.settings.schedule) is None:
        return None
    began = time.perf_counter()
    outcome = await _fetch(gateway, webhook, setting, claimed)
    took = int((time.perf_counter() - began) * 1000)
    now, planned = gateway.clock(), claimed.next_run_at
    if planned is not None and planned <= now:
        # The row has whole milliseconds: counted from a hair before its time, the next time would be the same again. A run
        # by hand, before its time, leaves that time as it is.
        now = max(now, planned + 0.002)
    following = after_run(
        setting.times(claimed.anchor),
        webhook.id,
        now,
        succeeded=outcome.result != "failed",
        failures=claimed.consecutive_failures,
        asked_for=outcome.asked_for,
        pause_after=setting.pause_after_failures,
    )
    goes_on = webhook.enabled and setting.enabled
    result = ScheduleRun(
        at=gateway.clock(),
        result=outcome.result,
        reason=outcome.reason,
        duration_ms=took,
        next_run_at=following.at if goes_on else None,
        failures=following.failures,
        paused=following.paused,
        seen=outcome.seen,
    )
    if await gateway.store.schedules.finish(claimed, result, outcome.entries) is None:
        return None
    gateway.runtime.starts_due()
    _note(webhook, result, outcome)
    ids = [entry.invocation.id for entry in outcome.entries]
    reason = outcome.reason or None
    return shown(views.ScheduleRun, result, webhook_id=webhook.id, reason=reason, invocation_ids=ids)


async def _fetch(
    gateway: Gateway, webhook: StoredWebhook, setting: ScheduleSetting, claimed: ScheduleState
) -> FetchOutcome:
    try:
        compiled = compile_webhook(webhook)
    except ValueError as error:  # a secret cannot be decrypted any more
        return FetchOutcome("failed", str(error))
    compiled.answer_timeout = None  # nobody waits
    url = setting.url
    shown, host = url.partition("?")[0], urlsplit(url).hostname or ""
    before = (
        Seen(claimed.etag, claimed.last_modified, claimed.body_hash)
        if setting.only_when_changed and claimed.body_hash
        else None
    )
    headers = {name: webhook.secrets[SECRET_PREFIX + name.lower()].value.decode() for name in setting.headers}

    def failed(reason: str, status: int = 0, asked_for: float | None = None) -> FetchOutcome:
        step: Step = ("schedule", False, f"fetched {shown}: {reason}")
        call = Call("GET", shown.encode("ascii", "replace"), b"", (), b"", host, gateway.clock())
        entry = _entry(gateway, compiled, call, Verdict("rejected", "fetch_failed", reason, [step]), status)
        return FetchOutcome("failed", reason, [entry], asked_for=asked_for)

    if gateway.outbound.fetch is None:
        return failed("this process cannot fetch")
    try:
        fetched = await gateway.outbound.fetch(
            url,
            headers={**conditions(before), **headers},
            timeout=setting.timeout_seconds,
            max_bytes=compiled.payload_limit,
        )
    except FetchTrouble as trouble:
        return failed(trouble.detail, trouble.status or 0)
    if fetched.status == 304 and before is not None:
        return FetchOutcome("unchanged", "the source answered 304")
    if not 200 <= fetched.status < 300:
        wait = fetched.retry_after(gateway.clock())
        return failed(f"the source answered {fetched.status}", fetched.status, wait)
    now_seen = seen(fetched.header("etag"), fetched.header("last-modified"), fetched.body)
    if before is not None and not changed(before, now_seen):
        return FetchOutcome("unchanged", "the answer is the same as before", seen=now_seen)
    arrived = Call(
        "GET", shown.encode("ascii", "replace"), b"", fetched.headers, fetched.body, host, gateway.clock()
    )
    calls = parts_of(arrived, setting.split_array)
    if isinstance(calls, str):
        return failed(calls, fetched.status)
    if not calls:
        return FetchOutcome("empty", "an empty array", seen=now_seen)
    came = f"fetched {shown}: {fetched.status}, {len(fetched.body)} bytes"
    entries = []
    for number, call in enumerate(calls, 1):
        which = f", element {number} of {len(calls)}" if len(calls) > 1 else ""
        verdict = admit_fetched(compiled, call, ("schedule", True, f"{came}{which}"))
        entries.append(_entry(gateway, compiled, call, verdict, fetched.status))
    rejected = [entry for entry in entries if entry.invocation.outcome == "rejected"]
    filtered = sum(entry.invocation.outcome == "filtered" for entry in entries)
    if len(rejected) == len(entries):
        return FetchOutcome("failed", rejected[0].invocation.detail, entries)
    reason = ""
    if rejected:
        reason = f"{len(rejected)} of {len(entries)} elements rejected: {rejected[0].invocation.detail}"
    elif filtered:
        reason = f"{filtered} of {len(entries)} filtered: the conditions do not hold"
    return FetchOutcome("accepted", reason, entries, seen=now_seen)


def _entry(gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict, status: int) -> Entry:
    entry = entry_of(gateway, webhook, call, verdict)
    entry.invocation.status = status  # the source's: no caller is answered
    return entry


def _note(webhook: StoredWebhook, run: ScheduleRun, outcome: FetchOutcome) -> None:
    for entry in outcome.entries:
        made = entry.invocation
        call_counts.add(webhook.id, made.outcome, made.code, made.duration_us / 1_000_000, waited=False)
    fields = {
        "webhook": webhook.id,
        "result": run.result,
        "reason": run.reason,
        "duration_ms": run.duration_ms,
    }
    log.info("a schedule has run", **fields, invocations=len(outcome.entries))
    if run.paused:
        log.warning(
            "a schedule has paused itself; resume it when its source is well again",
            **fields,
            failures=run.failures,
        )


async def catch_up(gateway: Gateway) -> int:
    """Brings forward schedules that have run, or were saved, in the future: the clock was set back since. Returns how many."""
    now, count = gateway.clock(), 0
    for state in await gateway.store.schedules.ahead(now):
        webhook = await gateway.store.webhooks.get(state.webhook_id)
        setting = webhook.settings.schedule if isinstance(webhook, StoredWebhook) else None
        if setting is not None:
            following = next_run(setting.times(state.anchor), now, state.webhook_id)
            if state.next_run_at is not None and following < state.next_run_at - 0.001:
                count += await gateway.store.schedules.bring_forward(state, following)
    if count:
        log.warning("the clock was set back: schedules that waited for a later time do not", count=count)
    return count


class Scheduler:
    """Begins what is due. Any number of processes may run one on the same database: one of them claims each run."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._running: dict[asyncio.Task[None], ScheduleState] = {}
        self._loop = Loop(
            "schedules", self.round, CHECK_SCHEDULES_EVERY, self._room, catch_up=lambda: catch_up(gateway)
        )
        self.stop = self._loop.stop

    async def run(self) -> None:
        try:
            await self._loop.run()
        finally:
            await self._hand_on()

    async def _room(self) -> None:
        """If every place is taken, the next one that becomes free ends the pause."""
        if len(self._running) >= FETCHES_AT_ONCE:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(CHECK_SCHEDULES_EVERY)

    async def round(self) -> int:
        """Begins as many due runs as there are places. Returns how many."""
        free = FETCHES_AT_ONCE - len(self._running)
        now = self._gateway.clock()
        if free <= 0 or not await self._gateway.store.schedules.any_due(now):
            return 0
        claimed = await self._gateway.store.schedules.claim(now, LEASE, free)
        for state in claimed:
            task = asyncio.create_task(self._run(state))
            self._running[task] = state
            task.add_done_callback(self._running.pop)
        return len(claimed)

    async def _hand_on(self) -> None:
        """Releases the runs that are under way when the process ends, so that another process begins them at once."""
        under_way = dict(self._running)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        unfinished = [claimed for task, claimed in under_way.items() if task.cancelled()]
        if unfinished:
            try:
                await self._gateway.store.schedules.release(self._gateway.clock(), unfinished)
            except StoreUnavailable as trouble:
                log.warning(
                    "runs could not be handed on: they begin again when their leases are over",
                    error=str(trouble),
                )

    async def _run(self, claimed: ScheduleState) -> None:
        try:
            await run(self._gateway, claimed)
        except StoreUnavailable as trouble:
            log.warning(
                "a schedule's run could not be recorded", webhook=claimed.webhook_id, error=str(trouble)
            )
        except Exception:
            log.exception("a schedule raised an unexpected error", webhook=claimed.webhook_id)
