"""What the other tests stand on must not be softer than it looks."""

import asyncio
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from hypothesis.configuration import storage_directory
from hypothesis.internal import charmap
from playwright.sync_api import Browser, Page, Route
from sqlalchemy import create_engine, literal, select

from engines.relay import Relay
from postern import __version__
from stand_in import Raw
from stand_in import stand_in as a_server
from support import forks, memory
from support.browser import WINDOW, Notes, OneBrowser, OnePage, new_context
from support.characters import know_characters
from support.postgres import PostgresServer, find_binaries, running, within_reach
from support.program import Program, StartProgram, clean_environment, run_postern
from support.shells import postern_in_shells
from support.waiting import PATIENCE, wait_until


def test_waiting_gives_up_with_words_that_help() -> None:
    with pytest.raises(AssertionError, match=r"waited 0 s for the moon; its last answer was \[\]"):
        wait_until(list, 0, what="the moon")
    with pytest.raises(AssertionError, match="the sun; it was late"):
        wait_until(list, 0, what=lambda: "the sun; it was late")
    with pytest.raises(AssertionError, match="it last raised ZeroDivisionError"):
        wait_until(lambda: 1 / 0, 0)


def test_waiting_returns_what_came() -> None:
    answers = iter([None, 0, "here"])
    assert wait_until(lambda: next(answers)) == "here"


def test_what_takes_long_is_asked_for_less_often_and_still_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = 0.0, list[float]()
    monkeypatch.setattr(
        "support.waiting.time", SimpleNamespace(monotonic=lambda: now, sleep=lambda of: go_on(of))
    )

    def go_on(seconds: float) -> None:
        nonlocal now
        now += seconds

    def came(at: float) -> bool:
        asked.append(now)
        return now >= at

    for at, least, most in ((0.3, 15, 17), (10.0, 80, 100)):
        now = 0.0
        asked.clear()
        wait_until(lambda at=at: came(at))
        assert least <= len(asked) <= most and at <= now <= at * 1.05 + 0.02
    now = 0.0
    asked.clear()
    with pytest.raises(AssertionError):
        wait_until(lambda: came(99.0), 5.0, every=0.5)
    assert asked == [one * 0.5 for one in range(12)]


def test_each_database_is_new_and_a_template_is_copied(postgres: PostgresServer, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE things AS SELECT 7 AS number")
    with postgres.database(template=postgres_url) as copied, psycopg.connect(copied) as connection:
        assert connection.execute("SELECT number FROM things").fetchone() == (7,)
    with postgres.database() as empty, psycopg.connect(empty) as connection:
        assert connection.execute("SELECT to_regclass('things')").fetchone() == (None,)


def test_a_server_ends_with_its_test() -> None:
    binaries = find_binaries()
    assert binaries is not None
    with running(binaries) as url, psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    assert not Path(row[0]).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as somebody else")
def test_binaries_in_a_closed_folder_are_copied_and_the_folder_stays_closed(tmp_path: Path) -> None:
    closed, home = tmp_path / "closed", tmp_path / "home"
    (closed / "package" / "install" / "bin").mkdir(parents=True)
    home.mkdir()
    program = closed / "package" / "install" / "bin" / "postgres"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    closed.chmod(0o700)
    reachable = within_reach(program.parent, home, {"user": "nobody"})
    assert reachable == home / "package" / "install" / "bin"
    assert (reachable / "postgres").stat().st_mode & 0o777 == 0o755
    assert closed.stat().st_mode & 0o777 == 0o700
    subprocess.run([reachable / "postgres"], check=True)


def test_a_server_of_a_test_closes_also_what_its_peer_does_not_read() -> None:
    async def story() -> bool:
        written: list[asyncio.StreamWriter] = []

        async def much(writer: asyncio.StreamWriter) -> None:
            writer.write(b"x" * 20_000_000)
            written.append(writer)

        async with a_server(lambda _: Raw(much)) as server, asyncio.timeout(PATIENCE):
            _, asking = await asyncio.open_connection("127.0.0.1", server.port)
            asking.write(b"GET / HTTP/1.1\r\n\r\n")
            while not written:
                await asyncio.sleep(0.01)
        asking.close()
        return bool(written[0].get_extra_info("socket").fileno() == -1)

    assert asyncio.run(story())


def test_a_connection_that_comes_while_a_test_ends_is_left_open_by_no_server_of_it() -> None:
    async def come_and_end(port: int, end: Callable[[], Awaitable[None]], rounds: int) -> None:
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(rounds):
                await asyncio.sleep(0)
            await end()

    async def relayed(rounds: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as target:
            relay = Relay(target.getsockname()[1])
            await relay.open()
            await come_and_end(relay.port, relay.cut, rounds)

    async def answered(rounds: int) -> None:
        ending = AsyncExitStack()
        server = await ending.enter_async_context(a_server(lambda _: Raw(nothing)))
        await come_and_end(server.port, ending.aclose, rounds)

    async def nothing(writer: asyncio.StreamWriter) -> None: ...

    for story in (relayed, answered):
        with warnings.catch_warnings(record=True) as left:
            warnings.simplefilter("always")
            for rounds in range(8):
                asyncio.run(story(rounds))
            gc.collect()  # once: it looks through all that the tests before this one have left
        assert [str(one.message) for one in left if one.category is ResourceWarning] == [], story.__name__


def test_a_page_speaks_english_and_its_errors_are_noted(page: Page, notes: Notes) -> None:
    page.set_content(
        "<script>document.title = new Intl.NumberFormat().resolvedOptions().locale; nothing.there</script>"
    )
    assert page.title() == "en-US"
    assert notes.errors == ["nothing is not defined"]
    notes.errors.clear()


def test_a_browser_that_was_put_back_leaves_room_for_loops_and_is_taken_again_with_nothing_open(
    one_browser: OneBrowser,
) -> None:
    browser = one_browser.take()
    new_context(browser).new_page()
    one_browser.put_back()
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"
    assert one_browser.take() is browser and browser.contexts == []
    new_context(browser).close()


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


def test_what_is_called_off_because_its_page_is_left_is_no_error_and_what_fails_is(
    page: Page, notes: Notes
) -> None:
    asked: list[Route] = []
    page.route(f"{HERE}**", shown)
    page.route("**/held", lambda route: asked.append(route))
    page.route("**/failing", lambda route: route.abort())
    page.route("**/missing", lambda route: route.fulfill(status=404))
    ask = "asked => void fetch(asked).catch((error) => console.error(String(error)))"
    page.goto(HERE)
    page.evaluate(ask, "/held")
    page.evaluate("void fetch('/held')")
    wait_until(lambda: page.evaluate("1") and len(asked) == 2, what="the requests")
    page.goto(HERE)
    notes.check()
    for wrong, said in (
        (f"({ask})('/failing')", "ERR_FAILED"),
        ("void import('/missing')", "dynamically imported"),
    ):
        page.evaluate(wrong)
        wait_until(lambda said=said: page.evaluate("1") and said in str(notes.errors), what=said)
        with pytest.raises(AssertionError, match=said):
            notes.check(but="a status of 404")


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


def test_temporary_folders_are_where_programs_can_run_and_as_much_is_free_as_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory.has_room(tmp_path, 0)
    assert not memory.has_room(tmp_path, 1024**6)
    assert not memory.has_room(tmp_path / "missing", 0)
    here = os.statvfs(tmp_path)
    for closed in (os.ST_NOEXEC, os.ST_RDONLY):
        told = SimpleNamespace(f_bavail=here.f_bavail, f_frsize=here.f_frsize, f_flag=here.f_flag | closed)
        monkeypatch.setattr(os, "statvfs", lambda _, told=told: told)
        assert not memory.has_room(tmp_path, 0)


@pytest.mark.skipif(not memory.has_room(memory.MEMORY), reason="not enough of it here")
def test_what_tests_write_is_in_memory_unless_somebody_says_where() -> None:
    there = "import os, tempfile; from support.memory import write_to_memory; write_to_memory(); print(tempfile.gettempdir())"
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    for given, expected in (({}, memory.MEMORY), ({"TMPDIR": "/var/tmp"}, Path("/var/tmp"))):
        told = subprocess.run(
            [sys.executable, "-c", there],
            env={**environment, **given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(told.stdout.strip()) == expected


def test_sql_is_made_once_for_all_databases_and_each_is_asked_what_it_is_asked(tmp_path: Path) -> None:
    """With a query that no other test makes, so that the first one finds nothing made."""
    heard = []
    for number in (1, 2):
        engine = create_engine(f"sqlite:///{tmp_path}/{number}.db")
        with engine.connect() as connection:
            result = connection.execute(select(literal(number).label("asked_by_a_test_of_tests")))
            assert result.context is not None
            heard.append((result.scalar_one(), result.context.cache_hit.name))
        engine.dispose()
    assert heard == [(1, "CACHE_MISS"), (2, "CACHE_HIT")]


def test_forks_begin_with_what_all_of_them_would_do_first() -> None:
    assert forks.what_is_frozen() > 100_000


STAND_IN = """
import os, signal, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Ready(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

print("serving on", os.environ["POSTERN_PORT"], "with", os.environ.get("POSTERN_ENGINE"))
if "BREAKS" in os.environ:
    sys.exit("the setting is wrong")
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: ("FORGETS" in os.environ or (child.kill(), child.wait())) and os._exit(0))
HTTPServer(("127.0.0.1", int(os.environ["POSTERN_PORT"])), Ready).serve_forever()
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    """A program of the same name that can misbehave; the value of PYTHONPATH that puts it first."""
    package = tmp_path / "stand-in" / "postern"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STAND_IN)
    return str(package.parent)


def test_the_program_is_ready_when_it_is_handed_over(start_program: StartProgram, stand_in: str) -> None:
    program = start_program(PYTHONPATH=stand_in, POSTERN_ENGINE="none")
    assert program.is_ready()
    assert program.output().startswith(f"serving on {program.port} with none")
    assert program.stop() == 0
    assert not program.processes_left()


def test_a_program_that_ends_at_its_start_tells_why(start_program: StartProgram, stand_in: str) -> None:
    with pytest.raises(AssertionError, match=r"(?s)ended with 1 before it was ready.*the setting is wrong"):
        start_program(PYTHONPATH=stand_in, BREAKS="yes")


def test_a_program_that_leaves_a_process_behind_fails_its_test(
    tmp_path: Path, stand_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path, {"PYTHONPATH": stand_in, "FORGETS": "yes"})
    program.wait_until_ready()
    monkeypatch.setattr("support.program.CHILDREN_END_WITHIN", 1.0)
    with pytest.raises(AssertionError, match="did not end cleanly"):
        program.stop()
    wait_until(lambda: not program.processes_left())


def test_a_fork_is_as_the_program_that_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In what it is given and in how it ends."""
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
        ran = subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env=clean_environment({"PATH": f"{bin}:{os.environ['PATH']}", "POSTERN_DATA_DIR": "here"}),
            capture_output=True,
            text=True,
            check=False,
        )
        zone = subprocess.run(
            [bin / "postern", "--version"], env={"TZ": "Asia/Tokyo"}, capture_output=True, check=False
        )
    assert (ran.returncode, ran.stdout) == (2, f"POSTERN {__version__.upper()}\nended with 2\n")
    assert "No such command 'lst'" in ran.stderr and (tmp_path / "here").exists()
    assert (zone.returncode, b"start the executable" in zone.stderr) == (1, True)


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
    assert again.process.wait(10) == -signal.SIGKILL
    wait_until(lambda: not again.processes_left(), what="its engine process to end")
    with pytest.raises(AssertionError, match=r"(?s)ended with 2 before it was ready.*POSTERN_ENGINE"):
        start_program(POSTERN_ENGINE="nonsense")


def test_the_real_program_serves_from_postgres_and_ends_cleanly(
    start_program: StartProgram, migrated_url: str, tmp_path: Path
) -> None:
    program = start_program(POSTERN_DATABASE_URL=migrated_url)
    assert len(program.processes_left()) == 2  # the gateway, and the engine beside it
    listed = run_postern(tmp_path, "webhooks", "list", "--json", POSTERN_DATABASE_URL=migrated_url)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert program.stop() == 0


def test_characters_are_where_hypothesis_looks_for_them(tmp_path: Path) -> None:
    know_characters(tmp_path)
    for asked in ("charmap", "codec-v2-utf-8"):
        looked_for = charmap.charmap_file(asked).relative_to(storage_directory().path)
        assert (tmp_path / ".hypothesis" / looked_for).exists(), asked
