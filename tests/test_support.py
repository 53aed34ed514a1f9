"""The tests' helpers are as strict as they look."""

import itertools
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from postern import __version__
from support import forks
from support.browser import WINDOW, Notes, OnePage, new_context
from support.program import StartProgram, clean_environment, run_command, run_postern
from support.shells import postern_in_shells
from support.waiting import PATIENCE, free_port, wait_until


def test_a_port_is_given_once_although_nobody_listens_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    port, asked = free_port(), itertools.count()
    monkeypatch.setattr("random.randrange", lambda many: (port + next(asked) // 2) % many)  # each twice
    assert len({port, free_port(), free_port()}) == 3


HERE = "http://127.0.0.1:9/"


def shown(route: Route) -> None:
    route.fulfill(
        content_type="text/html", body="<title>Here</title><p onmouseenter='entered = true'>Here</p>"
    )


def test_a_page_that_is_lent_again_is_as_new(browser: Browser, notes: Notes) -> None:
    context = new_context(browser, viewport=WINDOW)
    context.route(f"{HERE}**", shown)
    one = OnePage(context)

    def lent(act: Callable[[Page], object]) -> Page:
        with one.lent(notes) as page:
            assert page.url == "about:blank"
            page.goto(HERE)
            assert page.viewport_size == WINDOW
            left = "sessionStorage.length || 'entered' in window || matchMedia('print').matches"
            assert not page.evaluate(left)
            act(page)
        assert len(context.pages) == 1
        return page

    first = lent(lambda page: page.evaluate("sessionStorage.setItem('kept', 'here')"))
    for act in (
        lambda page: page.set_viewport_size({"width": 360, "height": 740}),
        lambda page: page.get_by_text("Here").hover(),
        lambda page: page.context.new_page(),
        lambda page: page.goto(f"{HERE}elsewhere"),
        lambda page: page.evaluate("setInterval(() => console.error('still here'))"),
    ):
        assert lent(act) is first
    notes.errors.clear()
    before = lent(lambda page: None)
    notes.check()
    for act in (
        lambda page: page.emulate_media(media="print"),
        lambda page: page.add_init_script("sessionStorage.setItem('kept', 'here')"),
        lambda page: page.route("**/nowhere", shown),
        lambda page: page.on("dialog", lambda dialog: None),
        lambda page: page.close(),
    ):
        lasting = lent(act)
        assert lasting is before and lasting.is_closed()
        before = lent(lambda page: None)
        assert before is not lasting
    lent(lambda page: page.evaluate("location.assign('/elsewhere')"))  # it is on its way there
    lent(lambda page: None)


def test_a_request_that_would_leave_this_machine_is_noted_and_does_not(page: Page, notes: Notes) -> None:
    elsewhere = ["https://example.com/x.png", "http://192.0.2.1/x.png", "http://[2001:db8::1]/x.png"]
    for policy in ("*", "'self'"):
        page.set_content(
            f'<meta http-equiv="Content-Security-Policy" content="img-src {policy}">'
            + "".join(f'<img src="{one}">' for one in (*elsewhere, "http://127.0.0.1:9/y.png"))
        )
        assert sorted(notes.foreign_requests) == sorted(elsewhere)
        assert len([error for error in notes.errors if "NOT_RESOLVED" in error]) == (
            3 if policy == "*" else 0
        )
        notes.foreign_requests.clear()
        notes.errors.clear()


def test_a_fork_is_as_the_program_that_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given the same and ends in the same way."""
    commands = [
        ["--version"],
        ["webhooks", "lst"],
        ["webhooks", "create", "Orders", "--auth", "none", "--json"],
    ]
    commands.append(["webhooks", "list", "--json"])
    monkeypatch.setenv("POSTERN_ENGINE", "nonsense")  # nothing of this process's own settings is seen
    printed: dict[bool, list[tuple[int, str, str]]] = {}
    for allowed in (False, True):
        monkeypatch.setattr(forks, "allowed", allowed)
        folder = tmp_path / str(allowed)
        folder.mkdir()
        ran = [run_postern(folder, *words) for words in commands]
        printed[allowed] = [(one.returncode, one.stdout, one.stderr.replace(str(folder), "")) for one in ran]
    started, forked = (json.loads(printed[allowed][2][1]) for allowed in (False, True))
    assert (
        started.keys() == forked.keys() and started["id"] != forked["id"] and started["url"] != forked["url"]
    )
    for allowed, made in ((False, started), (True, forked)):
        printed[allowed] = [
            (code, re.sub(r'"\w+At": "[^"]*"', "", out.replace(made["id"], "").replace(made["url"], "")), err)
            for code, out, err in printed[allowed]
        ]
    assert printed[True] == printed[False]


def test_a_fork_takes_what_is_typed_into_a_shell(tmp_path: Path) -> None:
    script = """
        postern --version | tr a-z A-Z
        echo 'webhooks: [{name: 5}]' | postern apply - || echo "ended with $?"
        postern webhooks lst
    """
    with postern_in_shells() as bin:
        here = clean_environment({"PATH": f"{bin}:{os.environ['PATH']}", "POSTERN_DATA_DIR": "here"})
        ran = run_command("sh", "-c", script, folder=tmp_path, environment=here)
        zone = run_command(bin / "postern", "--version", environment={"TZ": "Asia/Tokyo"})
    assert (ran.returncode, ran.stdout) == (2, f"POSTERN {__version__.upper()}\nended with 2\n")
    assert "No such command 'lst'" in ran.stderr and (tmp_path / "here").exists()
    assert (zone.returncode, "start the executable" in zone.stderr) == (1, True)


def test_two_forks_have_nothing_random_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "allowed", True)
    made = []
    for name in "ab":
        (tmp_path / name).mkdir()
        program = run_postern(tmp_path / name, "webhooks", "create", "Orders", "--auth", "token", "--json")
        made.append(
            [json.loads(program.stdout)["url"], (tmp_path / name / "data" / "secret.key").read_text()]
        )
    assert not {*made[0]} & {*made[1]}


def test_a_forked_program_leaves_nothing_behind(
    start_program: StartProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "allowed", True)
    program = start_program()
    assert isinstance(program.process, forks.Fork)
    engine = program.processes_left()
    assert (
        len(engine) == 1
    )  # the fork itself bears no mark: its surroundings are those of the process it was forked from
    assert os.getpgid(program.process.pid) == program.process.pid
    assert program.stop() == 0 and not program.processes_left()
    again = start_program(POSTERN_DATA_DIR=str(program.data_dir))
    again.kill()
    assert again.process.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: not again.processes_left(), what="its engine process to end")
    with pytest.raises(AssertionError, match=r"(?s)ended with 2 before it was ready.*POSTERN_ENGINE"):
        start_program(POSTERN_ENGINE="nonsense")
