"""The form of log lines, and which of them `off` leaves."""

import json
import re
import sys
from pathlib import Path

import pytest

from support.client import call, made
from support.program import StartProgram, run_command, run_postern
from support.waiting import wait_until

SAYING = """
import sys
from postern.observe.logs import log, set_up_logs

set_up_logs(sys.argv[1])
log.info("went well", count=1)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("went wrong")
"""


def logged(style: str, saying: str = SAYING) -> str:
    ran = run_command(sys.executable, "-c", saying, style)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


def test_json_is_one_document_a_line() -> None:
    info, error = map(json.loads, logged("json").splitlines())
    assert (info["event"], info["level"], info["count"]) == ("went well", "info", 1)
    assert (error["event"], error["level"]) == ("went wrong", "error")
    assert "ZeroDivisionError" in error["exception"]
    assert logged("auto").count('"event"') == 2  # no terminal here


def test_text_in_a_file_is_without_colours() -> None:
    text = logged("text")
    assert "went well" in text and "went wrong" in text and "{" not in text and "\x1b" not in text


HOSTILE = r"""
import asyncio, logging, sys
from postern.observe.calls import CallLine, CallLog
from postern.observe.logs import log, set_up_logs

set_up_logs(sys.argv[1])
sent = "\x1b[2J\x9b31m\u202e\x07é\ud800"
log.error(sent, reason=sent, exc_info=ValueError(sent))
logging.getLogger("some.library").warning("heard %s", sent)
async def call():
    calls = CallLog(sys.stderr, sys.argv[1])
    calls.call(CallLine("wh_1", "inv_1", "", "", 200, "", sent, 0, 1, sent, 0.1))
    calls.flush()
if sys.argv[1] == "text":
    asyncio.run(call())
"""


FORGING = r"""
import asyncio, logging, sys
from postern.engines.embedded.process import _log_lines
from postern.observe.calls import CallLine, CallLog
from postern.observe.logs import log, set_up_logs

if sys.argv[1] == "engine":
    _log_lines("text")
else:
    set_up_logs("text")
sent = "no\nFORGED line"
try:
    raise ValueError(sent)
except ValueError:
    log.exception(sent, reason=sent)
    logging.getLogger("some.library").exception("heard %s", sent)
async def call():
    calls = CallLog(sys.stderr, "text")
    calls.call(CallLine("wh_1", "inv_1", "", "", 200, "", sent, 0, 1, sent, 0.1))
    calls.flush()
asyncio.run(call())
"""


@pytest.mark.parametrize("process", ["gateway", "engine"])
def test_what_strangers_sent_begins_no_line_of_the_log(process: str) -> None:
    shown = logged(process, FORGING)
    assert shown.count("FORGED") > 3
    assert [line for line in shown.splitlines() if line.startswith("FORGED")] == []


@pytest.mark.parametrize(("style", "lines"), [("text", 4), ("json", 2)])
def test_what_strangers_sent_moves_no_terminal_that_shows_the_log(style: str, lines: int) -> None:
    shown = logged(style, HOSTILE)
    assert all(char.isprintable() or char == "\n" for char in shown), repr(shown)
    assert "some.library" in shown and shown.count("31m") >= lines
    if style == "json":
        error, warning = map(json.loads, shown.splitlines())
        assert (warning["level"], warning["logger"]) == ("warning", "some.library")
        assert error["reason"].startswith("\x1b[2J")


def test_what_a_caller_sent_moves_no_terminal_by_a_workflow_that_failed(
    start_program: StartProgram, tmp_path: Path
) -> None:
    (tmp_path / "flows.py").write_text(
        "from postern.workflows import workflow\n@workflow\ndef look_up(event):\n    raise ValueError(event['payload']['number'])\n"
    )
    program = start_program(POSTERN_LOG="text", POSTERN_WORKFLOWS=str(tmp_path / "flows.py"))
    call(made(program)["url"], {"number": "1001\x1b[2J\x9b31m"})
    wait_until(lambda: "ValueError: 1001·[2J·31m" in program.output(), what="the workflow's error")
    assert "\x1b" not in program.output() and "\x9b" not in program.output()


def test_off_leaves_what_went_wrong_as_text() -> None:
    text = logged("off")
    assert "went well" not in text and "{" not in text
    assert "went wrong" in text and "ZeroDivisionError" in text


@pytest.mark.parametrize("style", ["json", "off"])
def test_the_engine_process_is_spoken_of_in_the_style_that_was_asked_for(
    start_program: StartProgram, tmp_path: Path, style: str
) -> None:
    (tmp_path / "flows.py").write_text("this is not Python")
    program = start_program(POSTERN_LOG=style, POSTERN_WORKFLOWS=str(tmp_path / "flows.py"))
    wait_until(lambda: "flows.py, line 1" in program.output(), what="the workflow file's error")
    (tmp_path / "flows.py").write_text("")
    program.wait_for_engine()
    assert program.stop() == 0
    # The greeting stands somewhere among them.
    told = re.compile("the engine process|flows.py, line 1")
    lines = [line for line in program.output().splitlines() if told.search(line)]
    if style == "json":
        levels = {line["event"]: line["level"] for line in map(json.loads, lines)}
        assert levels["the workflows file has an error"] == "error"
        assert levels["the engine process is ready"] == "info"
        assert any(event.startswith("the engine process ends") for event in levels)
    else:
        (line,) = lines
        assert "the workflows file has an error" in line and "{" not in line


PRINTING = """
import sys
from postern.workflows import step, workflow

print("loaded")

@step
def look_up(number):
    print("looked up", number, end="")

@workflow
def orders(event):
    print("order", event["payload"]["number"])
    print("in two\\nlines", file=sys.stderr)
    sys.stdout.buffer.write(b"bytes\\n")
    look_up(event["payload"]["number"])
"""


def printing(start_program: StartProgram, folder: Path, style: str) -> tuple[str, str]:
    """What a gateway says until a workflow that prints has run and all is at its end, and the call's id."""
    (folder / "flows.py").write_text(PRINTING)
    program = start_program(
        POSTERN_LOG=style, POSTERN_WORKFLOWS=str(folder / "flows.py"), POSTERN_ADMIN_PASSWORD=""
    )
    called = call(made(program)["url"], {"number": 7})
    wait_until(lambda: "looked up 7" in program.output(), what="what the step prints")
    assert program.stop() == 0
    return program.output(), called.json["invocationId"]


def test_with_json_all_that_a_gateway_says_is_one_document_a_line(
    start_program: StartProgram, tmp_path: Path
) -> None:
    output, call = printing(start_program, tmp_path, "json")
    lines = [json.loads(line) for line in output.splitlines()]
    (greeting,) = [line for line in lines if line["event"].startswith("Postern is serving on http://")]
    assert (greeting["level"], greeting["workflows"]) == ("info", str(tmp_path / "flows.py"))
    assert greeting["admin_password"] and "once" in greeting["about_the_password"]
    of_the_run = {"workflow": "orders", "run": f"{call}.1/orders"}
    printed = [
        {name: line[name] for name in ("text", "stream", "workflow", "run") if name in line}
        for line in lines
        if line["event"] == "printed"
    ]
    assert printed == [
        {"text": "loaded", "stream": "stdout"},
        {"text": "order 7", "stream": "stdout", **of_the_run},
        {"text": "in two", "stream": "stderr", **of_the_run},
        {"text": "lines", "stream": "stderr", **of_the_run},
        {"text": "bytes", "stream": "stdout", **of_the_run},
        {"text": "looked up 7", "stream": "stdout", **of_the_run},
    ]


def test_where_json_is_not_asked_for_people_are_greeted_and_workflows_print_as_they_do(
    start_program: StartProgram, tmp_path: Path
) -> None:
    output, _ = printing(start_program, tmp_path, "text")
    assert "Postern is serving on http://" in output and "\n  Console   http://" in output
    assert re.search(r"^Sign in to the console as admin with the password \S+$", output, re.MULTILINE)
    assert {"loaded", "order 7"} <= set(output.splitlines()) and "{" not in output


def test_with_json_what_keeps_a_gateway_from_starting_is_a_line_too(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    ended = run_postern(
        tmp_path, "serve", POSTERN_LOG="json", POSTERN_ENGINE="none", POSTERN_DATA_DIR=str(tmp_path / "taken")
    )
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert (ended.returncode, line["event"], line["level"]) == (2, "the gateway cannot start", "error")
    assert line["because"].startswith(f"{tmp_path / 'taken'} cannot be used: ")
