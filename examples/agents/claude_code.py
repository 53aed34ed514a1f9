"""Gives the call to Claude Code by its command line. AGENT_FOLDER is the folder in which it works."""

import hashlib
import os
import subprocess
from uuid import UUID

from _told import subject, told

from postern.workflows import Event, step, workflow

TASK = "Read the event on standard input, look at the code it is about, and write down what you would answer."
MAY = ("--output-format", "json", "--allowedTools", "Read,Grep,Glob")


@step
def ask(session: str, text: str) -> str:
    missing = ""
    for begin in ("--resume", "--session-id"):
        command = ("claude", "-p", TASK, *MAY, begin, session)
        ran = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=1800, cwd=os.environ["AGENT_FOLDER"]
        )
        if ran.returncode == 0:
            return ran.stdout
        missing = ran.stderr
        if "No conversation found" not in missing:
            break
    raise RuntimeError(missing[-500:])


@workflow(at_once=1)
def claude_code(event: Event) -> None:
    session = UUID(bytes=hashlib.sha256(subject(event).encode()).digest()[:16], version=4)
    ask(str(session), told(event))
