"""Whether the gateway can do its work, for balancers, the console, the metrics and the log."""

import asyncio
from contextlib import suppress
from time import monotonic

from msgspec.structs import replace

from postern import __version__
from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import EngineHealth
from postern.core.history.invocation import StoreUnavailable
from postern.observe.logs import log
from postern.observe.metrics import Numbers
from postern.stores.history.endings import MOST_COUNTED
from postern.usecases.history.endings import LONGEST_WAIT
from postern.usecases.operations.clock import ClockWatch
from postern.usecases.operations.views import Part, Status
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop
from postern.usecases.runtime.process import GatewayTrouble, TroubleKind

CHECK_STORE_EVERY = 1.0
MOST_NAMED = 10
ASK_EVERY = 5.0
ASK_WITHIN = 3.0
LOST_KNOWN_AFTER = LONGEST_WAIT + 10.0
"""Seconds within which the engine is asked about each started delivery."""
LONGEST_START = 15.0
"""Seconds that a healthy engine takes at most to start, or to take over a changed file."""

NO_ENGINE = EngineHealth(True, "none in this process")
"""That is well: it was set so."""


async def readiness(gateway: Gateway) -> Status:
    """Answers within a few seconds, whatever the store does.

    Ready: calls are stored, and their workflows can be started sooner or later. An engine that is away makes them wait, not
    fail, and a webhook that cannot be served does not concern the others: both are shown and do not count.
    """
    store, engine = await _store(gateway), NO_ENGINE
    if gateway.engine is not None:
        engine = await gateway.engine.health()
    troubles = gateway.runtime.troubles
    waiting = [trouble for trouble in troubles if trouble.kind == "calls wait"]
    if waiting and engine.ok:  # it is there, and takes no start
        engine = EngineHealth(False, waiting[0].detail)
    partly = [trouble for trouble in troubles if trouble.kind in ("calls lost", "workflow files broken")]
    if engine.ok and partly:
        said = (trouble.sentence[:1].lower() + trouble.sentence[1:].removesuffix(".") for trouble in partly)
        engine = EngineHealth(False, "; ".join([engine.detail, *said]))
    detail = f"it cannot be started: {engine.detail}" if engine.cannot_start else engine.detail
    return Status(
        version=__version__,
        base_url=gateway.site.base_url,
        ready=store.ok and gateway.runtime.directory.trouble is None and not engine.cannot_start,
        store=store,
        webhooks=_webhooks(gateway),
        engine=Part(ok=engine.ok, detail=detail),
    )


async def status(gateway: Gateway, actor: Actor) -> Status:
    """Which version this is, its public address, and whether it can do its work."""
    require(actor, "read")
    return await readiness(gateway)


def _trouble(kind: TroubleKind, what: str, why: str) -> GatewayTrouble:
    # Reasons that others give, databases for example, may end with a full stop.
    detail = why if why.endswith((".", "?", "!")) else f"{why}."
    return GatewayTrouble(kind, f"{what}: {detail}", detail)


def _is_long_away(gateway: Gateway, engine: EngineHealth) -> bool:
    """Whether the engine has not run for longer than a start takes: a file has an error, or its process does not come up."""
    runtime, now = gateway.runtime, monotonic()
    if engine.ok or runtime.engine_ran_at is None:
        runtime.engine_ran_at = now
    return now - runtime.engine_ran_at >= LONGEST_START


async def _starts_nothing(gateway: Gateway) -> str | None:
    """Why no start of this process has succeeded for a while, if any delivery waits."""
    away = gateway.runtime.engine.away
    if away is None or monotonic() - away.since < LONGEST_START:
        return None
    with suppress(StoreUnavailable):
        waiting, _ = await gateway.store.deliveries.backlog(gateway.clock(), "")
        if not waiting:  # they were dropped, or another process has started them
            gateway.runtime.engine.away = None
            return None
    return away.detail


async def _starts_nothing_elsewhere(gateway: Gateway) -> str:
    """The same for starts of another process, or of this one before a restart. Only then is a remote engine asked."""
    engine, runtime, now = gateway.engine, gateway.runtime, monotonic()
    if engine is None or engine.name == "embedded":
        return ""
    if now - runtime.engine_asked_at >= ASK_EVERY:
        runtime.engine_asked_at, runtime.engine_found_away = now, ""
        with suppress(StoreUnavailable, TimeoutError):
            if await gateway.store.deliveries.tried_in_vain(gateway.clock() - LONGEST_START):
                async with asyncio.timeout(ASK_WITHIN):
                    health = await engine.health()
                runtime.engine_found_away = "" if health.ok else health.detail
    return runtime.engine_found_away


async def own_engine(gateway: Gateway) -> EngineHealth:
    """The health of the embedded engine. Others are not asked: that would be a request over the network each second."""
    engine = gateway.engine
    return await engine.health() if engine is not None and engine.name == "embedded" else NO_ENGINE


async def _store(gateway: Gateway) -> Part:
    trouble = await gateway.store.trouble()
    kept, back = gateway.runtime.kept_for_now, gateway.runtime.clock_set_back
    well = "calls are stored, schema up to date" + (f"; old ones are kept for now: {kept}" if kept else "")
    well += f"; the clock was set back by {back}" if back else ""
    return Part(ok=trouble is None, detail=trouble or well)


def _webhooks(gateway: Gateway) -> Part:
    trouble = _trouble_of_webhooks(gateway)
    if trouble is not None:
        return Part(ok=False, detail=trouble.sentence.removesuffix("."))
    return Part(ok=True, detail=f"{len(gateway.runtime.directory)} served")


def _trouble_of_webhooks(gateway: Gateway) -> GatewayTrouble | None:
    directory = gateway.runtime.directory
    if directory.trouble is not None:
        return _trouble("changes not followed", "Changes to webhooks are not followed", directory.trouble)
    if not directory.not_served:
        return None
    named = [f"{webhook.id} ({webhook.reason})" for webhook in directory.not_served.values()]
    more = f", and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    what = "Some webhooks are not served and their callers hear 503"
    return _trouble("webhooks not served", what, ", ".join(named[:MOST_NAMED]) + more)


async def watch(gateway: Gateway) -> None:
    """Runs as long as the gateway serves."""
    clock = ClockWatch(gateway)

    async def look() -> None:
        with suppress(StoreUnavailable):
            await clock.round()
        await _look(gateway)

    await Loop("readiness", look, CHECK_STORE_EVERY).run()


async def _look(gateway: Gateway) -> None:
    store, engine = await _store(gateway), await own_engine(gateway)
    of_webhooks = _trouble_of_webhooks(gateway)
    for name, well in (
        ("store", store.ok),
        ("webhooks", of_webhooks is None),
        ("engine", not engine.cannot_start),
    ):
        Numbers.ready.labels(name).set(well)
    troubles = [] if store.ok else [_trouble("calls not stored", "Calls are rejected with 503", store.detail)]
    troubles += [] if of_webhooks is None else [of_webhooks]
    if engine.cannot_start:
        troubles.append(_trouble("engine cannot start", "No workflow is started", engine.detail))
    else:
        waits = engine.detail if _is_long_away(gateway, engine) else ""
        if not waits and store.ok:
            waits = await _starts_nothing(gateway) or await _starts_nothing_elsewhere(gateway)
        if waits:
            what = "Calls wait for their workflows to be started"
            troubles.append(_trouble("calls wait", what, waits))
    if engine.problems:
        why = "; ".join(engine.problems)
        troubles.append(_trouble("workflow files broken", "A workflow file cannot be loaded", why))
    if store.ok and (lost := await _lost(gateway)) is not None:
        troubles.append(lost)
    if kept := gateway.runtime.kept_for_now:
        troubles.append(_trouble("nothing deleted", "Old calls are kept for now", kept))
    if back := gateway.runtime.clock_set_back:
        why = "what came in before may bear a later time; it is counted, found and listed as received when this was noticed"
        troubles.append(_trouble("clock set back", f"The clock was set back by {back}", why))
    _log_what_changed(gateway, troubles)
    gateway.runtime.troubles = troubles
    for trouble in troubles:
        since, _ = gateway.runtime.troubles_seen.get(trouble.kind, (gateway.clock(), ""))
        gateway.runtime.troubles_seen[trouble.kind] = since, trouble.sentence


async def _lost(gateway: Gateway) -> GatewayTrouble | None:
    with suppress(StoreUnavailable):
        count = await gateway.store.endings.lost()
        Numbers.deliveries_lost.set(count)
        if count:
            many = f"{count:,} or more" if count == MOST_COUNTED else f"{count}"
            what = f"The engine does not know {many} started deliver{'y' if count == 1 else 'ies'}"
            why = "its database may be older than the gateway's, or new"
            return replace(_trouble("calls lost", what, why), status="lost")
    return None


def _log_what_changed(gateway: Gateway, now: list[GatewayTrouble]) -> None:
    runtime, moment = gateway.runtime, monotonic()
    known, present = {trouble.kind for trouble in runtime.troubles}, {trouble.kind for trouble in now}
    for trouble in now:
        if trouble.kind not in known:
            log.error("the gateway needs help", because=trouble.sentence)
    if now:
        # An engine that is back may have another database: it is asked about each started delivery before all is called well.
        asks = gateway.engine is not None and gateway.engine.asked_after is not None
        until_asked = LOST_KNOWN_AFTER if asks and present & {"engine cannot start", "calls wait"} else 0.0
        runtime.well_from = max(runtime.well_from or moment, moment + until_asked)
    is_well = not now and runtime.well_from is not None and moment >= runtime.well_from
    for trouble in runtime.troubles:
        if trouble.kind not in present and not is_well:
            log.info("this trouble is over", was=trouble.sentence)
    if is_well:
        log.info("everything is well again")
        runtime.well_from = None


def offer_writer_waiting(gateway: Gateway) -> None:
    """Reads the number whenever it is asked for: another worker reads it too, without a request to this process."""
    Numbers.writer_waiting.set_function(lambda: gateway.store.writer.waiting)
