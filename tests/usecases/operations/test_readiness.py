"""What balancers, the console, the metrics and the log are told about whether the gateway can do its work."""

import asyncio

import pytest
from starlette.requests import Request
from structlog.testing import capture_logs

from postern import __version__
from postern.core.deliveries.delivery import EngineHealth
from postern.core.webhooks.stored import UnreadableWebhook
from postern.observe.metrics import REGISTRY
from postern.surfaces.app import health_routes
from postern.usecases.history.endings import LONGEST_WAIT
from postern.usecases.operations import readiness
from postern.usecases.operations.readiness import LONGEST_START, MOST_NAMED, status, watch
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.process import EngineAway
from support.clock import later
from support.house import OWNER, House, NotingEngine
from support.waiting import until


class Sick(NotingEngine):
    """An engine with this health."""

    def __init__(self, health: EngineHealth, name: str = "embedded") -> None:
        super().__init__()
        self._health = health
        self.name = name
        self.asked = 0

    async def health(self) -> EngineHealth:
        self.asked += 1
        return self._health


def alarms_of(gateway: Gateway) -> list[str]:
    return [trouble.sentence for trouble in gateway.runtime.troubles]


async def state(house: House) -> tuple[bool, dict[str, tuple[bool, str]]]:
    now = await status(house.gateway, OWNER)
    return now.ready, {name: (part.ok, part.detail) for name, part in now.parts().items()}


def measured() -> dict[str, float | None]:
    return {
        part: REGISTRY.get_sample_value("postern_ready", {"part": part})
        for part in ("store", "webhooks", "engine")
    }


async def test_a_gateway_is_ready_unless_its_engine_cannot_be_started(house: House) -> None:
    await house.webhook()
    parts = {
        "store": (True, "calls are stored, schema up to date"),
        "webhooks": (True, "1 served"),
        "engine": (True, "noting"),
    }
    assert await state(house) == (True, parts)
    now = await status(house.gateway, OWNER)
    assert (now.version, now.base_url) == (__version__, "https://hooks.example.com")
    for engine, is_ready, is_well, detail in (
        (Sick(EngineHealth(False, "starting")), True, False, "starting"),
        (None, True, True, "none in this process"),
        (
            Sick(EngineHealth(False, "no file", cannot_start=True)),
            False,
            False,
            "it cannot be started: no file",
        ),
    ):
        house.gateway.engine = engine
        assert await state(house) == (is_ready, {**parts, "engine": (is_well, detail)})


async def test_only_an_engine_of_its_own_is_asked_each_second(house: House) -> None:
    other = house.gateway.engine = Sick(EngineHealth(False, "over the network", cannot_start=True), "http")
    await readiness._look(house.gateway)
    assert (other.asked, house.gateway.runtime.troubles) == (0, [])
    house.gateway.engine = None
    await readiness._look(house.gateway)
    assert (measured()["engine"], house.gateway.runtime.troubles) == (1, [])


async def test_all_who_ask_at_once_hear_of_one_look(house: House) -> None:
    engine = house.gateway.engine = Sick(EngineHealth(True, "running"))
    (readyz,) = (route.endpoint for route in health_routes(house.gateway) if route.path == "/readyz")
    for looks in (1, 2):
        answers = await asyncio.gather(*(readyz(Request({"type": "http"})) for _ in range(50)))
        assert ({answer.status_code for answer in answers}, engine.asked) == ({200}, looks)


async def test_a_file_of_workflows_that_cannot_run_is_an_alarm_and_the_rest_is_ready(house: House) -> None:
    problem = "b.py, line 3: invalid syntax; the last good version of b.py goes on"
    house.gateway.engine = Sick(EngineHealth(True, "running", problems=(problem,)))
    await readiness._look(house.gateway)
    assert alarms_of(house.gateway) == [f"A workflow file cannot be loaded: {problem}."]
    is_ready, parts = await state(house)
    assert is_ready
    assert parts["engine"] == (False, f"running; a workflow file cannot be loaded: {problem}")


async def test_webhooks_that_are_not_served_are_named_up_to_ten(house: House) -> None:
    directory = house.gateway.runtime.directory
    for number in range(MOST_NAMED + 2):
        id, why = f"wh_{number:02}", "its secret cannot be read"
        directory.not_served[id] = UnreadableWebhook(id, [f"code{number}"], "Orders", 1, why)
        is_ready, parts = await state(house)
        is_well, detail = parts["webhooks"]
        assert (is_ready, is_well) == (True, False)
        assert detail.count("wh_") == min(number + 1, MOST_NAMED)
        assert ("more" in detail) == (number >= MOST_NAMED)
    assert detail.endswith("wh_09 (its secret cannot be read), and 2 more")


async def test_what_is_wrong_is_an_alarm_and_a_metric_until_it_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "CHECK_STORE_EVERY", 0.01)
    gateway, trouble = house.gateway, "the disk is full"

    async def full() -> str | None:
        return trouble or None

    monkeypatch.setattr(gateway.store, "trouble", full)
    well, gateway.engine = gateway.engine, Sick(EngineHealth(False, "no file", cannot_start=True))
    gateway.runtime.directory.trouble = "no such table"
    with capture_logs() as lines:
        watching = asyncio.create_task(watch(gateway))
        await until(lambda: len(gateway.runtime.troubles) == 3)
        assert alarms_of(gateway) == [
            "Calls are rejected with 503: the disk is full.",
            "Changes to webhooks are not followed: no such table.",
            "No workflow is started: no file.",
        ]
        assert measured() == {"store": 0, "webhooks": 0, "engine": 0}
        trouble, gateway.engine, gateway.runtime.directory.trouble = "", well, None
        await until(lambda: not gateway.runtime.troubles)
        assert measured() == {"store": 1, "webhooks": 1, "engine": 1}
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    logged = [line["event"] for line in lines if line["log_level"] in ("error", "info")]
    assert logged == ["the gateway needs help"] * 3 + ["everything is well again"]


async def test_the_end_of_each_alarm_is_logged_also_while_another_one_goes_on(house: House) -> None:
    gateway = house.gateway
    well = gateway.engine
    with capture_logs() as lines:
        gateway.engine = Sick(EngineHealth(False, "no file", cannot_start=True))
        gateway.runtime.directory.trouble = "no such table"
        await readiness._look(gateway)
        gateway.engine = well
        await readiness._look(gateway)
        await readiness._look(gateway)
        gateway.runtime.directory.trouble = None
        await readiness._look(gateway)
    assert [(line["event"], line.get("was")) for line in lines[2:]] == [
        ("this trouble is over", "No workflow is started: no file."),
        ("everything is well again", None),
    ]


async def test_all_is_called_well_only_after_an_engine_that_is_back_was_asked_about_its_runs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database may be another one, and what is lost with the former is known up to two minutes later."""
    now = 1000.0
    monkeypatch.setattr(readiness, "monotonic", lambda: now)
    gateway, well = house.gateway, house.gateway.engine
    sick = gateway.engine = Sick(EngineHealth(False, "no file", cannot_start=True))
    sick.asked_after = 10.0
    with capture_logs() as lines:
        await readiness._look(gateway)
        gateway.engine = well
        for later in (1.0, LONGEST_WAIT, 10.0, 1.0):
            now += later
            await readiness._look(gateway)
            if later == 1.0:
                assert alarms_of(gateway) == []
                told = [line["event"] for line in lines]
                assert ("everything is well again" in told) == (now > 1000.0 + LONGEST_WAIT)
    assert told == ["the gateway needs help", "this trouble is over", "everything is well again"]


async def test_an_engine_that_stays_away_is_an_alarm_and_one_that_is_just_being_started_is_none(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, now = house.gateway, 1000.0
    monkeypatch.setattr(readiness, "monotonic", lambda: now)
    well = gateway.engine
    away = Sick(EngineHealth(False, "orders.py, line 1: no module"))
    alarm = "Calls wait for their workflows to be started: orders.py, line 1: no module."
    for engine, after, troubles in (
        (away, 0.0, []),
        (away, LONGEST_START - 0.1, []),
        (away, 0.1, [alarm]),
        (well, 0.1, []),
        (away, 0.1, []),
        (away, LONGEST_START, [alarm]),
    ):
        gateway.engine, now = engine, now + after
        await readiness._look(gateway)
        assert alarms_of(gateway) == troubles
        assert measured()["engine"] == 1, "calls are taken all the same"


async def test_starts_that_find_the_engine_away_for_long_are_an_alarm_as_long_as_any_waits(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine elsewhere is not asked each second, but its starts say how they went."""
    gateway, now, waiting = house.gateway, 1000.0, 1
    monkeypatch.setattr(readiness, "monotonic", lambda: now)

    async def backlog(_: float, lane: str) -> tuple[int, float]:
        return waiting, 0.0

    monkeypatch.setattr(gateway.store.deliveries, "backlog", backlog)

    async def troubles() -> list[str]:
        await readiness._look(gateway)
        return alarms_of(gateway)

    gateway.runtime.engine.away = EngineAway(now, "connection refused")
    now += LONGEST_START - 0.1
    assert await troubles() == []
    now += 0.1
    assert await troubles() == ["Calls wait for their workflows to be started: connection refused."]
    assert measured()["engine"] == 1, "calls are taken all the same"
    is_ready, parts = await state(house)
    assert (is_ready, parts["engine"]) == (True, (False, "connection refused."))
    waiting = 0
    assert await troubles() == []
    assert (await state(house))[1]["engine"] == (True, "noting")
    waiting = 1
    assert await troubles() == [], "one that comes then begins anew"
    gateway.runtime.engine.away = EngineAway(now - LONGEST_START, "refused. Is the server running?")
    assert await troubles() == [
        "Calls wait for their workflows to be started: refused. Is the server running?"
    ]


async def test_what_another_process_could_not_start_is_an_alarm_here_too(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the engine itself says that it is away."""
    gateway, now = house.gateway, 1000.0
    monkeypatch.setattr(readiness, "monotonic", lambda: now)

    async def troubles() -> list[str]:
        nonlocal now
        now += readiness.ASK_EVERY
        await readiness._look(gateway)
        return alarms_of(gateway)

    house.engine.down = True
    await house.call(await house.webhook())
    await house.deliver()
    gateway.runtime.engine.away = None  # it was another one that tried
    assert await troubles() == [], "it may just be started"
    later(gateway, LONGEST_START + 1)
    assert await troubles() == ["Calls wait for their workflows to be started: noting."]
    house.engine.down = False
    assert await troubles() == []
