"""`postern dev`: the gateway, its engine and the reload of workflow files in one terminal."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from postern.surfaces.cli.run import NOT_FOUND, OK, USAGE
from support.client import call, made
from support.program import Program, run_postern
from support.reply import HttpReply
from support.waiting import wait_until

HEAD = "from postern.workflows import respond, sleep, step, workflow\n"
ANSWERS = HEAD + '@workflow\ndef greet(event):\n    respond({"hello": event["payload"]["name"]})\n'


class Desk:
    """Somebody who writes workflow files, and reads the terminal."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "workflows" / "flows.py"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(ANSWERS)
        self.program = Program(folder, {"NO_COLOR": "1"}, command="dev")
        self.program.wait_until_ready()
        self.waiting = made(self.program, name="Asks", synchronousResponse={"enabled": True})
        self.passing = made(self.program, name="Tells")

    def sees(self, pattern: str, after: int = 0) -> None:
        wait_until(
            lambda: re.search(pattern, self.program.output()[after:]) is not None,
            what=lambda: f"the line {pattern}; it said\n{self.program.output()}",
        )

    def edits(self, source: str, until: str) -> None:
        before = len(self.program.output())
        self.file.write_text(source)
        self.sees(until, before)

    def calls(self, webhook: dict[str, str], name: str = "Ada") -> HttpReply:
        return call(webhook["url"], {"name": name})


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    try:
        yield desk
    finally:
        desk.program.kill()


def test_a_file_is_edited_broken_and_mended_between_calls(desk: Desk, tmp_path: Path) -> None:
    desk.sees(r"\d\d:\d\d:\d\d  1 workflow: greet\n")
    assert desk.calls(desk.waiting).json == {"hello": "Ada"}
    desk.sees(r"Asks  POST  200  \d+ ms  inv_\w+\n +answered {\"hello\":\"Ada\"}\n")
    desk.sees(r"\d\d:\d\d:\d\d    greet completed\n")

    # It fails: the line of the file, and no traceback.
    desk.edits(
        ANSWERS.replace('"name"', '"nothing"'),
        r"flows.py changed\n\S+  1 workflow: greet \(after [\d.]+ s\)\n",
    )
    assert desk.calls(desk.waiting).status == 502
    desk.sees(r"Asks  POST  502  inv_\w+\n")
    desk.sees(
        r"greet failed: KeyError: 'nothing'\n +flows.py, line 4: respond\({\"hello\": event\[\"payload\"\]\[\"nothing\"\]}\)\n"
    )

    # A step that fails for good: the step's own line.
    failing = (
        HEAD
        + '@step\ndef charge():\n    raise OSError("no money")\n\n@workflow\ndef pays(event):\n    charge()\n'
    )
    desk.edits(failing, r"1 workflow: pays")
    desk.calls(desk.passing)
    desk.sees(
        r"pays failed: charge failed: OSError: no money\n +flows.py, line 4: raise OSError\(\"no money\"\)\n"
    )

    # It cannot be read: its line, and its last good version goes on.
    desk.edits(ANSWERS.replace('event["payload"]', 'event["payload"'), r"flows.py, line 4: .+\n +respond\(")
    desk.sees(r"The last good version of flows.py goes on\.\n\S+  1 workflow: pays")
    before = len(desk.program.output())
    assert desk.calls(desk.passing, "Linus").status == 200
    desk.sees("pays failed", before)
    before = len(desk.program.output())
    desk.edits(
        HEAD + 'print("read")\n@workflow\ndef greet(event):\n    print("hello", event["payload"]["name"])\n',
        "1 workflow: greet",
    )
    assert desk.calls(desk.passing, "Grace").status == 200
    desk.sees(r"hello Grace\n", before)
    desk.sees(r"greet completed\n", before)

    # Nobody wants it; a stranger is rejected with the reason.
    desk.edits(
        HEAD + '@workflow("wh_other")\ndef greet(event): pass\n',
        r"1 workflow: greet .*\n +flows.py:2: greet wants calls of wh_other, which is no webhook here\n",
    )
    desk.calls(desk.passing)
    desk.sees(r"no workflow wants it\n")
    call(desk.passing["url"], b"not json")
    desk.sees(r"Tells  POST  400 malformed_json .*\n +\S")

    # A run that sleeps over a change goes on, and does no step twice.
    noted = tmp_path / "noted"
    sleeps = (
        HEAD
        + f'@step\ndef note():\n    open({str(noted)!r}, "a").write("once\\n")\n\n'
        + "@workflow\ndef naps(event):\n    note()\n    sleep(2)\n"
    )
    desk.edits(sleeps, "1 workflow: naps")
    desk.calls(desk.passing)
    wait_until(lambda: noted.exists() and noted.read_text() == "once\n", what="the step")
    desk.edits(sleeps + "    print('awake')\n", "1 workflow: naps")
    desk.sees("awake\n")
    desk.sees("naps completed\n")
    assert noted.read_text() == "once\n"

    assert "Traceback" not in desk.program.output()
    desk.program.process.send_signal(signal.SIGINT)
    assert desk.program.process.wait(60) == OK
    wait_until(lambda: not desk.program.processes_left(), what="every process to be gone")
    listed = run_postern(tmp_path, "history", "list")
    assert "no workflow wants it" in listed.stdout, "other commands see the same calls"


def test_what_it_cannot_run_is_reported(tmp_path: Path) -> None:
    ran = run_postern(tmp_path, "dev", POSTERN_ENGINE="none")
    assert (ran.returncode, "runs none of them" in ran.stderr) == (USAGE, True)
    ran = run_postern(tmp_path, "dev", "nowhere.py")
    assert (ran.returncode, ran.stderr) == (NOT_FOUND, "nowhere.py does not exist\n")
    assert not (tmp_path / "data").exists()
