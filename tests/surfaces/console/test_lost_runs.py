"""An engine that no longer knows what it has taken: its database was deleted, or an older one was put in its place."""

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from support.client import PASSWORD, Client
from support.forks import impatient
from support.program import Program, StartProgram, run_postern
from support.waiting import wait_until
from surfaces.console.conftest import Console, sign_in

SLEEPING = """
from postern.workflows import sleep, workflow

@workflow
def patient(event):
    sleep(event["payload"]["for"])
"""
SOON = impatient(
    **{
        "postern.engines.embedded.engine.EmbeddedEngine.asked_after": 0.5,
        "postern.usecases.history.endings.LOST_AFTER": 0.5,
        "postern.usecases.history.endings.LOST_ASKED_EVERY": 0.5,
        "postern.usecases.operations.readiness.LOOK_EVERY": 0.1,
    }
)


def statuses(api: Client) -> list[str]:
    return [one["status"] for one in api.get("invocations").json["items"]]


def is_ready(program: Program) -> tuple[str, bool, str]:
    now = Client(program.port).get("/readyz").json
    return now["status"], now["engine"]["ok"], now["engine"]["detail"]


def lost_of(program: Program) -> str:
    found = re.search(r"^postern_deliveries_lost (\S+)$", Client(program.port).get("/metrics").text, re.M)
    assert found is not None
    return found[1]


def test_started_calls_that_the_engine_does_not_know_are_lost_until_they_are_replayed(
    start_program: StartProgram, page: Page, tmp_path: Path
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "patient.py").write_text(SLEEPING)
    settings = {"POSTERN_ADMIN_PASSWORD": PASSWORD, "POSTERN_WORKFLOWS": str(tmp_path / "flows"), **SOON}
    program = start_program(**settings)
    console = Console(page, program)
    wait_until(lambda: is_ready(program)[1], what="the engine")
    webhook = console.webhook()
    for seconds in (3600, 3601, 0):
        assert console.call(webhook["url"], {"for": seconds})[0] == 200
    wait_until(
        lambda: statuses(console.api) == ["completed", "started", "started"],
        5,
        what=lambda: str(statuses(console.api)) + program.output()[-1500:],
    )
    program.stop()

    kept = tmp_path / "kept.db"
    (program.data_dir / "engine.db").rename(kept)
    program = start_program(**settings)
    console = Console(page, program, console.notes)
    wait_until(lambda: lost_of(program) == "2.0", what="what the engine does not know to be noticed")
    assert statuses(console.api) == ["completed", "lost", "lost"]
    sentence = (
        "The engine does not know 2 started deliveries: its database may be older than the gateway's, or new"
    )
    assert is_ready(program) == ("ready", False, f"running, 1 workflow in flows; t{sentence[1:]}")
    assert program.output().count(sentence) == 1
    listed = run_postern(tmp_path, "history", "list", "--status", "lost", "--json")
    assert [one["runState"] for one in json.loads(listed.stdout)["items"]] == ["unknown"] * 2
    program.stop()

    (program.data_dir / "engine.db").unlink()
    kept.rename(program.data_dir / "engine.db")
    program = start_program(**settings)
    console = Console(page, program, console.notes)
    wait_until(
        lambda: statuses(console.api) == ["completed", "started", "started"], what="the right database"
    )
    wait_until(lambda: is_ready(program) == ("ready", True, "running, 1 workflow in flows"), what="the end")
    program.stop()

    (program.data_dir / "engine.db").unlink()
    program = start_program(**settings)
    console = Console(page, program, console.notes)
    wait_until(lambda: lost_of(program) == "2.0", what="what the engine does not know to be noticed")
    sign_in(page.context, program)
    console.open("/webhooks")
    alarm = page.get_by_role("alert").filter(has_text=sentence)
    alarm.get_by_role("link", name="These calls").click()
    rows = page.locator("table.calls tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("patient was started, and the engine does not know it any more")
    alarm.get_by_role("button", name="Replay these…").click()
    console.click("Replay 2 calls")
    wait_until(lambda: lost_of(program) == "0.0", what="the replay")
    wait_until(lambda: is_ready(program)[1], what="the end of the alarm")
    console.open("/webhooks")
    expect(alarm).to_have_count(0)
    console.nothing_went_wrong()
