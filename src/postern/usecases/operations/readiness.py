"""Whether the gateway can do its work: asked by balancers, and watched for the console, the metrics and the log."""

import asyncio
from contextlib import suppress
from time import monotonic

from msgspec import Struct
from msgspec.structs import asdict, replace

from postern import __version__
from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import EngineHealth
from postern.core.history.invocation import StoreUnavailable
from postern.observe.logs import Log
from postern.observe.metrics import Numbers
from postern.stores.history.endings import MOST_COUNTED
from postern.usecases.operations.views import Part, Status
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop
from postern.usecases.runtime.process import GatewayTrouble, TroubleKind

LOOK_EVERY = 1.0
MOST_NAMED = 10
ASK_EVERY = 5.0
ASK_WITHIN = 3.0
LONGEST_START = 15.0
"""Seconds that an engine takes to be started, or to take over a changed file, where nothing is wrong."""

NO_ENGINE = EngineHealth(True, "none in this process")
"""Well: that nothing is started here is what was set."""

log = Log()


class Readiness(Struct, frozen=True):
    ready: bool
    """Calls are taken and stored, and nothing stands in the way of starting their workflows for good. An engine
    that is away makes them wait, not fail, and a webhook that cannot be served costs no other one anything: both
    are shown and do not count."""
    store: Part
    webhooks: Part
    engine: Part


async def readiness(gateway: Gateway) -> Readiness:
    """Answers within a few seconds, whatever the store does."""
    store, webhooks = await _store(gateway), _webhooks(gateway)
    engine = await gateway.engine.health() if gateway.engine is not None else NO_ENGINE
    waiting = [trouble for trouble in gateway.runtime.troubles if trouble.kind == "calls wait"]
    if waiting and engine.ok:  # it is there, and takes no start
        engine = EngineHealth(False, waiting[0].detail)
    partly = [
        trouble
        for trouble in gateway.runtime.troubles
        if trouble.kind in ("calls lost", "workflow files broken")
    ]
    if engine.ok and partly:
        said = (trouble.sentence[:1].lower() + trouble.sentence[1:].removesuffix(".") for trouble in partly)
        engine = EngineHealth(False, "; ".join([engine.detail, *said]))
    return Readiness(
        ready=store.ok and gateway.runtime.directory.trouble is None and not engine.cannot_start,
        store=store,
        webhooks=webhooks,
        engine=Part(
            ok=engine.ok,
            detail=f"it cannot be started: {engine.detail}" if engine.cannot_start else engine.detail,
        ),
    )


async def status(gateway: Gateway, actor: Actor) -> Status:
    """Which version this is, its public address, and whether it can do its work."""
    require(actor, "read")
    now = await readiness(gateway)
    return Status(version=__version__, base_url=gateway.site.base_url, **asdict(now))


def _trouble(kind: TroubleKind, what: str, why: str) -> GatewayTrouble:
    """What others say, databases for example, may have its own end."""
    detail = why if why.endswith((".", "?", "!")) else f"{why}."
    return GatewayTrouble(kind, f"{what}: {detail}", detail)


def _is_long_away(gateway: Gateway, engine: EngineHealth) -> bool:
    """A file with an error, or a process that does not come up: calls wait, and who waits for an answer hears that there is none.
    Not a word of an engine that is just being started, or that nobody asks here."""
    runtime, now = gateway.runtime, monotonic()
    if engine.ok or runtime.engine_ran_at is None:
        runtime.engine_ran_at = now
    return now - runtime.engine_ran_at >= LONGEST_START


async def _starts_nothing(gateway: Gateway) -> str | None:
    """What the starts of this process have found for a while, as long as any waits. One that succeeds ends it: where only
    one address of several is away, its calls say so."""
    away = gateway.runtime.engine_away
    if away is None or monotonic() - away.since < LONGEST_START:
        return None
    with suppress(StoreUnavailable):
        waiting, _ = await gateway.store.deliveries.backlog(gateway.clock())
        if not waiting:  # it was dropped, or another process has started it
            gateway.runtime.engine_away = None
            return None
    return away.detail


async def _starts_nothing_elsewhere(gateway: Gateway) -> str:
    """Another process, or this one before it was started anew, could not start what waits. Only then is an engine
    elsewhere asked how it is, and not each second."""
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
    """Other engines are not asked each second: that would be a request over the network."""
    engine = gateway.engine
    return await engine.health() if engine is not None and engine.name == "embedded" else NO_ENGINE


async def _store(gateway: Gateway) -> Part:
    trouble = await gateway.store.trouble()
    kept = gateway.runtime.kept_for_now
    well = "calls are stored, schema up to date" + (f"; old ones are kept for now: {kept}" if kept else "")
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
    named = [f"{one.id} ({one.reason})" for one in directory.not_served.values()]
    more = f", and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    what = "Some webhooks are not served and their callers hear 503"
    return _trouble("webhooks not served", what, ", ".join(named[:MOST_NAMED]) + more)


async def watch(gateway: Gateway) -> None:
    """Runs as long as the gateway serves."""
    loop = Loop("readiness", lambda: _look(gateway), lambda: loop.rest(LOOK_EVERY))
    await loop.run()


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
    elif _is_long_away(gateway, engine):
        troubles.append(_calls_wait(engine.detail))
    elif store.ok and (detail := await _starts_nothing(gateway) or await _starts_nothing_elsewhere(gateway)):
        troubles.append(_calls_wait(detail))
    if engine.problems:
        why = "; ".join(engine.problems)
        troubles.append(_trouble("workflow files broken", "A workflow file cannot be loaded", why))
    if store.ok and (lost := await _lost(gateway)) is not None:
        troubles.append(lost)
    if kept := gateway.runtime.kept_for_now:
        troubles.append(_trouble("nothing deleted", "Old calls are kept for now", kept))
    _log_what_changed(gateway.runtime.troubles, troubles)
    gateway.runtime.troubles = troubles
    for one in troubles:
        since, _ = gateway.runtime.troubles_seen.get(one.kind, (gateway.clock(), ""))
        gateway.runtime.troubles_seen[one.kind] = since, one.sentence


async def _lost(gateway: Gateway) -> GatewayTrouble | None:
    """As long as any is neither replayed nor known again."""
    with suppress(StoreUnavailable):
        count = await gateway.store.endings.lost()
        Numbers.deliveries_lost.set(count)
        if count:
            many = f"{count:,} or more" if count == MOST_COUNTED else f"{count}"
            what = f"The engine does not know {many} started deliver{'y' if count == 1 else 'ies'}"
            why = "its database may be older than the gateway's, or new"
            return replace(_trouble("calls lost", what, why), status="lost")
    return None


def _calls_wait(detail: str) -> GatewayTrouble:
    return _trouble("calls wait", "Calls wait for their workflows to be started", detail)


def _log_what_changed(before: list[GatewayTrouble], now: list[GatewayTrouble]) -> None:
    known, present = {trouble.kind for trouble in before}, {trouble.kind for trouble in now}
    for trouble in now:
        if trouble.kind not in known:
            log.error("the gateway needs help", because=trouble.sentence)
    for trouble in before if now else ():
        if trouble.kind not in present:
            log.info("this is well again", was=trouble.sentence)
    if before and not now:
        log.info("everything is well again")


def offer_writer_waiting(gateway: Gateway) -> None:
    """Read from the store each time: another worker reads this process's numbers too, and asks no route of it."""
    Numbers.writer_waiting.set_function(lambda: gateway.store.waiting)
