"""The engine process: ``python -m postern.engines.embedded.process SETUP``, which is a ``frames.Setup`` as JSON.

It answers the gateway over the inherited socket and lives exactly as long as that: when the other end is
gone, so is the gateway, and the process ends by itself.
"""

import faulthandler
import fcntl
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from postern.core.deliveries.delivery import Started, Workflow
from postern.core.visible import set_in
from postern.engines.embedded import frames
from postern.engines.embedded.conversation import Conversation
from postern.engines.embedded.journal import JournalUnavailable
from postern.engines.embedded.printing import Printed
from postern.engines.embedded.runs import WorkflowRuns
from postern.workflows.load import Loaded, folder_of, load

log = logging.getLogger("postern.engine")

GRACE_WITHOUT_GATEWAY = 3.0
WAIT_FOR_PREDECESSOR = 20.0


class Desk:
    """Has the gateway's questions answered."""

    def __init__(self, conversation: Conversation, runs: WorkflowRuns) -> None:
        self._conversation = conversation
        self._runs = runs
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="questions")

    def serve(self, questions: Iterator[frames.FromGateway]) -> float:
        """Answers questions until the gateway asks to stop or is gone. Returns how many seconds the working runs may
        still take."""
        for question in questions:
            match question:
                case frames.Stop(grace):
                    # Read on: a workflow that is let finish may still answer its caller.
                    threading.Thread(target=lambda: end(self._runs, grace), daemon=True).start()
                case frames.Start(id):
                    self._runs.start(question, partial(self._reply, id))
                case frames.Forget(id, keys):
                    self._runs.forget(keys, partial(self._reply, id))
                case frames.AskEnds() | frames.Runs():
                    self._readers.submit(self._look_up, question)
                case frames.Begin() | frames.AnsweredFrame():
                    pass  # it has begun; the conversation has handed it to the workflow that waits for it
        return GRACE_WITHOUT_GATEWAY

    def _reply(self, id: int, result: Any) -> None:
        done = frames.Done(id)
        if isinstance(result, Started):
            done.started = result
        elif isinstance(result, Exception):
            done.failed = str(result) if isinstance(result, JournalUnavailable) else repr(result)
        self._conversation.gather(done)

    def _look_up(self, question: frames.AskEnds | frames.Runs) -> None:
        try:
            match question:
                case frames.AskEnds(id, keys):
                    self._conversation.gather(frames.Done(id, ends=self._runs.ends(keys)))
                case frames.Runs(id, limit, key):
                    self._conversation.gather(frames.Done(id, runs=self._runs.shown(limit, key)))
        except Exception as error:
            if not isinstance(error, JournalUnavailable):
                log.exception("a question of the gateway could not be answered")
            self._reply(question.id, error)
        self._conversation.flush()


def main() -> None:
    setup = msgspec.json.decode(sys.argv[1], type=frames.SetupFrame)
    # Ctrl-C and a service manager's stop reach every process of the group; the gateway still drains then, and
    # stops us itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _interrupt_nobody()
    os.set_inheritable(setup.socket, False)
    _log_lines(setup.log)
    conversation = Conversation(socket.socket(fileno=setup.socket))
    beating = threading.Thread(
        target=_beat, args=(conversation, setup.hangs_after), name="heartbeat", daemon=True
    )
    beating.start()
    _wait_for_predecessor(Path(setup.file).with_suffix(".lock"))
    questions = conversation.read()
    begin = next(questions, None)
    loaded = load(Path(setup.workflows), begin.last_good if isinstance(begin, frames.Begin) else {})
    if loaded.failed:
        conversation.gather(_ready(loaded))
        conversation.finish()
        sys.exit(0)
    _serve(conversation, questions, loaded, setup)


def _ready(loaded: Loaded) -> frames.Ready:
    return frames.Ready(
        [
            Workflow(workflow.name, workflow.webhook_ids, workflow.help, workflow.source)
            for workflow in loaded.workflows
        ],
        [str(path) for path in loaded.files],
        [frames.BrokenFrame(str(fault), fault.error, fault.line) for fault in loaded.broken],
        not all(fault.goes_on for fault in loaded.broken),
        dict(loaded.sources),
    )


def _serve(
    conversation: Conversation,
    questions: Iterator[frames.FromGateway],
    loaded: Loaded,
    setup: frames.SetupFrame,
) -> None:
    file = Path(setup.file)
    try:
        runs = WorkflowRuns(
            file,
            loaded.workflows,
            keep_seconds=setup.keep_seconds,
            at_once=setup.at_once,
            hangs_after=setup.hangs_after,
            answer=conversation.answer,
            on_end=lambda key, end: conversation.gather(frames.RunsEndedFrame(key, end)),
            troubled=lambda detail: conversation.send(frames.Trouble(detail)),
            group_over=conversation.flush,
            lost=lambda: os._exit(frames.FILE_LOST),
            folder=folder_of(Path(setup.workflows)),
            on_run_over=conversation.gather if setup.reports_runs else None,
        )
    except Exception as error:
        log.error("the engine's file cannot be used: %s", error)
        conversation.gather(frames.Trouble(f"{file.name} cannot be used: {error}"))
        conversation.finish()
        os._exit(1)
    runs.open(after_crash=setup.after_crash)
    conversation.send(_ready(loaded))
    end(runs, Desk(conversation, runs).serve(questions))


def end(runs: WorkflowRuns, grace: float) -> None:
    runs.finish(grace)
    log.info("the engine process ends (running workflows had %g seconds)", grace)
    os._exit(0)  # what still runs is taken up by the next process; Python would wait for its threads


def _interrupt_nobody() -> None:
    """A thread that is woken waits until the one at work has paused or had its time. Nearly always that one is of this process and
    holds the interpreter: the woken one would take the core, find that out and give it back."""
    if sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER:
        with suppress(OSError):  # not allowed here
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _beat(conversation: Conversation, hangs_after: float) -> None:
    """A workflow that never lets go of the interpreter stops this too. The gateway then ends the process; should
    there be no gateway any more, the process ends itself, and says where it hangs."""
    while True:
        with suppress(ValueError, OSError):  # standard error is no file
            faulthandler.dump_traceback_later(hangs_after, exit=True, file=2)
        conversation.send(frames.Beat())
        time.sleep(frames.BEAT_EVERY)


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
            **getattr(record, "about", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _Text(logging.Formatter):
    """Shows control characters as text: a workflow's error may hold what a caller sent, and this stands on a
    terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return set_in(super().format(record))


def _log_lines(style: str) -> None:
    """``style`` is json, text, or off: only what went wrong, as text."""
    handler = logging.StreamHandler(sys.__stderr__)
    handler.setFormatter(
        _Json() if style == "json" else _Text("%(asctime)s [%(levelname)s] engine: %(message)s")
    )
    handler.setLevel(logging.WARNING if style == "off" else logging.INFO)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if style == "json":
        sys.stdout, sys.stderr = Printed("stdout", 1), Printed("stderr", 2)


if __name__ == "__main__":
    main()
