"""Gives the call to Codex by its command line. AGENT_FOLDER is the Git repository in which it works."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

from _told import subject, told

from postern.workflows import Event, step, workflow

TASK = "Read the event below, look at the code it is about, and write down what you would answer."


@step
def ask(about: str, text: str) -> str:
    folder = Path(os.environ["AGENT_FOLDER"])
    thread = folder / ".git" / f"codex-{hashlib.sha256(about.encode()).hexdigest()}"
    words = ["codex", "exec", "--json", *(["resume", thread.read_text()] if thread.exists() else []), "-"]
    given = f"{TASK}\n\n{text}"
    ran = subprocess.run(words, input=given, capture_output=True, text=True, cwd=folder, timeout=1800)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr[-500:])
    thread.write_text(json.loads(ran.stdout.partition("\n")[0])["thread_id"])
    return ran.stdout[-20_000:]


@workflow(at_once=1)
def codex(event: Event) -> None:
    ask(subject(event), told(event))
