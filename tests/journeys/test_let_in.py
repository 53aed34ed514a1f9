"""Letting in what was turned away, with the real program: each event starts once, whoever admits and whatever is killed."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from journeys.cluster import CountingEngine, ask, make_webhook
from journeys.cluster import an_engine as an_engine
from support.client import Client
from support.program import Program, run_postern
from support.waiting import wait_until

WRONG, RIGHT = "whk_before_the_rotation_0123456789", "whk_after_the_rotation_9876543210"

DIES_WITHIN = """
import os, signal
from postern.stores.deliveries.emissions import Emissions

admit, begun = Emissions.admit, []

async def dying(self, *given):
    begun.append(given)
    if len(begun) == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    return await admit(self, *given)

Emissions.admit = dying
"""


def at_work(folder: Path, engine: CountingEngine, **more: str) -> Program:
    return Program(
        folder, {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url, "POSTERN_LOG": "off", **more}
    )


def attempts(program: Program, path: str, orders: int, times: int, status: int) -> None:
    """A sender whose token is not the webhook's: it sends each order again, as it hears no 2xx."""
    sender = Client(program.port)
    for _ in range(times):
        for order in range(orders):
            assert sender.post(path, {"order": order}, X_Api_Key=RIGHT).status == status


def turned_away(program: Program, orders: int, times: int, **settings: Any) -> tuple[str, str]:
    """A webhook whose token is wrong while a sender tries, and right afterwards."""
    webhook, path = make_webhook(program, authentication={"method": "token", "token": WRONG}, **settings)
    attempts(program, path, orders, times, 401)
    return webhook, path


def correct(program: Program, webhook: str) -> None:
    change = {"authentication": {"token": RIGHT}}
    assert ask(program, "PATCH", f"/api/v1/webhooks/{webhook}", change)[0] == 200


def orders_of(engine: CountingEngine) -> list[int]:
    """Of each delivery that was started, however often that was asked for."""
    by_key = {one["invocationId"]: one["payload"]["order"] for one in list(engine.triggers)}
    return sorted(by_key.values())


@pytest.mark.parametrize("protection", [False, True])
def test_after_hours_of_a_wrong_token_each_order_starts_once(
    tmp_path: Path, engine: CountingEngine, protection: bool
) -> None:
    with at_work(tmp_path, engine) as program:
        webhook, path = turned_away(program, 17, 6, duplicateProtection={"enabled": protection})

        def says(*options: str) -> str:
            connected = {"POSTERN_URL": program.url, "POSTERN_API_KEY": program.admin_key}
            done = run_postern(tmp_path, "history", "recheck", webhook, *options, **connected)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "102 calls would still be rejected: credential does not match (102)" in says()
        correct(program, webhook)
        assert "102 calls, 17 events would start now" in says()
        assert "17 admitted" in says("--admit")
        wait_until(lambda: len(engine.keys) >= 17, what="the orders to start")
        after = says()
        assert "0 calls would start now" in after and "85 calls came again" in after
        assert orders_of(engine) == list(range(17))
        if protection:  # the sender's next attempts
            attempts(program, path, 17, 1, 200)
            assert orders_of(engine) == list(range(17))


def test_who_is_killed_while_admitting_goes_on_and_starts_each_event_once(
    tmp_path: Path, engine: CountingEngine
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(DIES_WITHIN)
    dying = {"PYTHONPATH": os.pathsep.join([str(planted), os.environ.get("PYTHONPATH", "")])}
    program = at_work(tmp_path, engine, **dying)
    try:
        program.wait_until_ready()
        webhook, _ = turned_away(program, 90, 2)
        correct(program, webhook)
        with pytest.raises(OSError):
            ask(program, "POST", f"/api/v1/webhooks/{webhook}/readmissible", {})
        assert program.process.wait(60) == -signal.SIGKILL
    finally:
        program.kill()
    with at_work(tmp_path, engine) as program:
        status, done = ask(program, "POST", f"/api/v1/webhooks/{webhook}/readmissible", {})
        assert status == 200 and 0 < done["admitted"] < 90, "some were admitted before, and some were not"
        wait_until(lambda: len(engine.keys) >= 90, what="all to start")
        assert ask(program, "POST", f"/api/v1/webhooks/{webhook}/readmissible", {})[1]["admitted"] == 0
        assert orders_of(engine) == list(range(90))


def test_two_gateways_that_admit_the_same_start_each_event_once(
    tmp_path: Path, engine: CountingEngine, migrated_url: str
) -> None:
    shared = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "one key for both of them"}
    with (
        at_work(tmp_path / "one", engine, **shared) as one,
        at_work(tmp_path / "two", engine, **shared) as two,
    ):
        webhook, _ = turned_away(one, 60, 3)
        correct(one, webhook)
        check = f"/api/v1/webhooks/{webhook}/readmissible"
        wait_until(lambda: ask(two, "GET", check)[1]["events"] == 60, what="both to know the token")
        with ThreadPoolExecutor(4) as people:
            done = list(people.map(lambda program: ask(program, "POST", check, {}), [one, two, one, two]))
        assert {status for status, _ in done} == {200}, json.dumps(done)
        assert sum(said["admitted"] for _, said in done) == 60
        wait_until(lambda: len(engine.keys) >= 60, what="all to start")
        assert orders_of(engine) == list(range(60))
