"""Gives the call to Claude Code by its command line. AGENT_FOLDER is the folder in which it works."""

import hashlib
import os
import subprocess
from functools import partial
from uuid import UUID

from _told import subject, told

from postern.workflows import Event, step, workflow

TASK = "Read the event on standard input, look at the code it is about, and write down what you would answer."
MAY = ("--output-format", "json", "--allowedTools", "Read,Grep,Glob")


@step
def ask(session: str, text: str) -> str:
    run = partial(subprocess.run, input=text, capture_output=True, text=True, cwd=os.environ["AGENT_FOLDER"])
    for begin in ("--resume", "--session-id"):
        ran = run(("claude", "-p", TASK, *MAY, begin, session), timeout=1800)
        if "No conversation found" not in ran.stderr:
            break
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr[-500:])
    return str(ran.stdout)


@workflow(at_once=1)
def claude_code(event: Event) -> None:
    session = UUID(bytes=hashlib.sha256(subject(event).encode()).digest()[:16], version=4)
    ask(str(session), told(event))
