"""The engine process: ``python -m postern.engines.embedded.process SOCKET FILE WORKFLOWS KEEP_SECONDS LOG``.

It answers the gateway over the inherited socket and lives exactly as long as that: when the other end is
gone, so is the gateway, and the process ends by itself.
"""

import fcntl
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from postern.core.deliveries.delivery import Workflow
from postern.engines.embedded import frames
from postern.workflows.load import Loaded, load

if TYPE_CHECKING:
    from postern.engines.embedded.runs import WorkflowRuns

log = logging.getLogger("postern.engine")

Asked = frames.Start | frames.Ended | frames.Runs | frames.Forget

GRACE_WITHOUT_GATEWAY = 3.0
WAIT_FOR_PREDECESSOR = 20.0


class Conversation:
    """The socket: replies come from several threads, questions are read by one."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sending = threading.Lock()

    def say(self, frame: frames.Reply) -> None:
        try:
            with self._sending:
                self._channel.sendall(frames.line(frame))
        except OSError:
            pass  # the gateway is gone; the reading side notices

    def hear(self, runs: "WorkflowRuns", awaited: "Awaited") -> float:
        """Answer questions until told to stop or left alone; how long the running workflows may still
        take."""
        pool = ThreadPoolExecutor(2, thread_name_prefix="questions")
        reader = self._channel.makefile("rb", 1 << 16)
        while text := _next_line(reader.readline):
            question = frames.read_question(text)
            match question:
                case frames.Stop(grace):
                    return grace
                case frames.Start():
                    # Here and not in the pool: one start after the other is what this database does best.
                    self._answer(question, runs, awaited)
                case _:
                    pool.submit(self._answer, question, runs, awaited)
        return GRACE_WITHOUT_GATEWAY

    def _answer(self, question: Asked, runs: "WorkflowRuns", awaited: "Awaited") -> None:
        try:
            match question:
                case frames.Start(id, trigger):
                    self.say(frames.Done(id, started=runs.start(trigger)))
                case frames.Ended(id, key):
                    awaited.add(key, id)
                    runs.await_end(key)
                case frames.Runs(id, limit, key):
                    self.say(frames.Done(id, runs=runs.runs(limit, key)))
                case frames.Forget(id, keys):
                    runs.forget(keys)
                    self.say(frames.Done(id))
        except Exception as error:
            log.exception("a question of the gateway could not be answered")
            self.say(frames.Done(question.id, failed=f"{type(error).__name__}: {error}"))


def _next_line(read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except OSError:
        return b""


class Awaited:
    """Which questions wait for the end of which delivery."""

    def __init__(self, say: Callable[[frames.Done], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._questions: dict[str, list[int]] = {}

    def add(self, key: str, question: int) -> None:
        with self._lock:
            self._questions.setdefault(key, []).append(question)

    def ended(self, key: str, outcome: str) -> None:
        with self._lock:
            questions = self._questions.pop(key, [])
        for question in questions:
            self._say(frames.Done(question, ended=outcome))


def main() -> None:
    descriptor, file, workflows, keep_seconds, log_style = sys.argv[1:]
    # Ctrl-C and a service manager's stop reach every process of the group; the gateway still drains then, and
    # stops us itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.set_inheritable(int(descriptor), False)
    _log_lines(log_style)
    conversation = Conversation(socket.socket(fileno=int(descriptor)))
    _wait_for_predecessor(Path(file).with_suffix(".lock"))
    loaded = load(Path(workflows))
    if loaded.error:
        conversation.say(frames.Ready(files=[str(path) for path in loaded.files], error=loaded.error))
        sys.exit(0)
    grace = _serve(conversation, loaded, Path(file), float(keep_seconds))
    log.info("the engine process ends (running workflows had %g seconds)", grace)
    os._exit(0)  # what still runs is taken up by the next process; Python would wait for its threads


def _serve(conversation: Conversation, loaded: Loaded, file: Path, keep_seconds: float) -> float:
    from postern.engines.embedded.runs import (
        WorkflowRuns,  # DBOS costs memory and time: not for a broken file
    )

    awaited = Awaited(conversation.say)
    runs = WorkflowRuns(file, loaded.workflows, keep_seconds, awaited.ended)
    runs.open()
    workflows = [Workflow(one.name, one.webhook_ids, one.help, one.source) for one in loaded.workflows]
    conversation.say(frames.Ready(workflows, [str(path) for path in loaded.files]))
    grace = conversation.hear(runs, awaited)
    runs.finish(grace)
    return grace


def _wait_for_predecessor(path: Path) -> None:
    """Two processes on one file would each take up the other's runs. The kernel lets go of the lock when its
    process is gone."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + WAIT_FOR_PREDECESSOR
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() > deadline:
                log.error("another engine process is using %s", path.parent)
                sys.exit(frames.IN_USE)
            time.sleep(0.05)


class _Json(logging.Formatter):
    """A line with the same words in it as the gateway's own, so that one reader understands both."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": "engine",
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log_lines(style: str) -> None:
    """``style`` is json, text, or off: only what went wrong, as text."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        _Json() if style == "json" else logging.Formatter("%(asctime)s [%(levelname)s] engine: %(message)s")
    )
    handler.setLevel(logging.WARNING if style == "off" else logging.INFO)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # DBOS would bring a handler of its own, and it says in its own words what runs.py has said of a failed
    # run already.
    dbos = logging.getLogger("dbos")
    dbos.addHandler(handler)
    dbos.propagate = False
    dbos.addFilter(
        lambda record: not record.getMessage().startswith("Exception encountered in background workflow")
    )


if __name__ == "__main__":
    main()
