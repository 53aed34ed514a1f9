"""A listener that is connected: others see its name, and the gateway hands calls to it.

This machine need not be reachable from outside. The command asks the gateway again and again, and the gateway
keeps each question for a few seconds while it has no call.
"""

import getpass
import socket
import threading
import time
from base64 import b64encode
from typing import Any

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.surfaces.cli.develop.target import LARGEST_ANSWER, LocalTarget, TargetAnswer
from postern.surfaces.cli.gateway.api import Declined, api
from postern.surfaces.cli.gateway.source import Away
from postern.surfaces.cli.run import CONFLICT, end, err, out, plain, show_json_line
from postern.surfaces.cli.terminal import Style
from postern.usecases.answers import UNSET, Time, UnsetType, View
from postern.usecases.history.views.requests import RecordedRequest
from postern.usecases.listeners.views import Entered, HandedCall, HandedCalls, Taken

AT_ONCE = 16
"""Calls at the program at the same time, so that a slow one does not hold up the others."""
ASK_WITHIN = 8.0
"""Seconds. The gateway answers within four, so a silent network is noticed before the lease ends."""
ANSWER_WITHIN = 10.0
LOOK_EVERY = 0.4
"""Seconds between two questions to the database of this machine, which answers at once."""
AGAIN_AFTER = 0.5
READABLE = {"", "identity", "gzip", "x-gzip", "deflate"}
"""Compressions that are undone before the caller gets the answer."""


class ListenedCall(View):
    """A line of ``--json``."""

    id: str
    webhook_id: str
    received_at: Time
    method: str
    outcome: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    """``answer``: the caller waits for this program. ``replay``: somebody has sent it here again."""
    asked_by: str | UnsetType | None = UNSET
    local_status: int | UnsetType | None = UNSET
    local_ms: float | UnsetType = UNSET
    caller_heard: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    request: RecordedRequest | UnsetType = UNSET


def listened(call: RecordedRequest, **more: Any) -> ListenedCall:
    return ListenedCall(call.invocation_id, call.webhook_id, call.received_at, call.method, **more)


class Lines:
    """The line of `postern listen` for each call: text for people, JSON for programs."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def show(self, call: RecordedRequest, line: ListenedCall, answer: TargetAnswer, detail: str = "") -> None:
        """``detail`` says why the caller has not heard the program's answer."""
        with self._turn:
            if out.as_json:
                line.local_status, line.local_ms = answer.status, round(answer.milliseconds, 1)
                line.error = answer.error or detail or UNSET
                show_json_line(line)
                return
            style: Style = "green" if answer.status is not None and answer.status < 400 else "red"
            text = out.styled(plain(answer.error) if answer.status is None else str(answer.status), style)
            became = "answered the caller" if line.caller_heard is True else detail or "not heard"
            words = [
                *(str(line.received_at), line.id, line.webhook_id, plain(line.method)),
                *(text, f"{answer.milliseconds:.0f} ms"),
                *map(plain, [call.event, *(call.fields.get(name, "") for name in FIELD_NAMES)]),
                {"replay": "replay", "answer": plain(became)}.get(line.kind or "", ""),
            ]
            out.print("  ".join(filter(None, words)))
            out.stream.flush()

    def say(self, text: str, style: Style = "yellow") -> None:
        err.print(text, style)


def own_name() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # no name for this user's number
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:80]


class Presence:
    def __init__(self, name: str, answers: str | None, target: LocalTarget, shown: Lines) -> None:
        self._wanted = {"name": name, "answers": answers}
        self._target = target
        self.shown = shown
        self._known: set[str] = set()
        # Every command loads this file, and this takes `logging` along.
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="listener")
        self._ended = threading.Event()
        self._listener: Entered | None = None
        self.count = 0

    def enter(self, declines: bool = False) -> None:
        """Ends the command if it is refused; with ``declines`` the refusal is raised."""
        self._listener = api.post(Entered, "listeners", body=self._wanted, declines=declines)

    def follow(self) -> None:
        away = False
        while not self._ended.is_set():
            try:
                calls = self._asked()
                if away:
                    self.shown.say("Connected again.")
                    away = False
            except Away as trouble:
                if self._ended.is_set():
                    return  # the command has closed the connection under the question
                if not away:
                    self.shown.say(f"{trouble} It goes on as soon as it can.")
                away = True
                self._ended.wait(AGAIN_AFTER)
                continue
            for call in calls:
                self._known.add(call.id)
                self.count += 1
                self._pool.submit(self._take, call)

    def in_background(self) -> None:
        """Runs beside a command, which goes on without it if the gateway refuses."""
        threading.Thread(target=self._quietly, name="presence", daemon=True).start()

    def close(self) -> None:
        """Ends the listener. Callers that wait for it hear so at once."""
        self._ended.set()
        listener = self._listener
        if listener is not None:
            try:
                api.patient = True
                api.ask("DELETE", ("listeners", listener.id), {}, within=ANSWER_WITHIN, declines=True)
            except (Away, Declined, SystemExit):
                pass  # its lease runs out, or it was ended before
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _quietly(self) -> None:
        while not self._ended.is_set():
            try:
                if self._listener is None:
                    self.enter(declines=True)
                self.follow()
            except Away:
                self._ended.wait(AGAIN_AFTER)
            except Declined as why:
                self.shown.say(f"Calls cannot be replayed to here: {why}")
                return
            except SystemExit:
                return

    def _asked(self) -> list[HandedCall]:
        assert self._listener is not None
        kept = api.is_served()
        try:
            found = api.post(
                HandedCalls,
                "listeners",
                self._listener.id,
                "calls",
                body={"known": sorted(self._known), **({} if kept else {"waitSeconds": 0})},
                within=ASK_WITHIN,
                declines=True,
            )
        except Declined as why:
            self._enter_again(why)
            return []
        except SystemExit:
            # The key is gone: asked to end this listener, the gateway would say so once more.
            self._listener = None
            raise
        if not kept and not found.calls:
            self._ended.wait(LOOK_EVERY)
        return found.calls

    def _enter_again(self, why: Declined) -> None:
        """Enters anew after the lease ran out without a connection, or stops if somebody ended the listener."""
        if self._ended.is_set():
            return
        if why.code != "not_found":
            self._stop(str(why))
        try:
            self.enter(declines=True)
        except Declined as refused:
            self._stop(str(refused))
        self.shown.say("It was not there for a moment, and is again.")

    def _stop(self, why: str) -> None:
        self._listener = None
        end(why, CONFLICT)

    def _take(self, call: HandedCall) -> None:
        try:
            if call.kind == "answer":
                line = listened(call.request, kind="answer", outcome="accepted", code="accepted")
            else:
                line = listened(call.request, kind="replay", asked_by=call.asked_by)
            answer = self._target.send(call.request, is_replay=call.kind == "replay")
            taken = self._report_answer(call, answer)
            if call.kind == "answer":
                line.caller_heard = taken.heard
            self.shown.show(call.request, line, answer, taken.detail)
        except SystemExit:
            pass
        finally:
            self._known.discard(call.id)

    def _report_answer(self, call: HandedCall, answer: TargetAnswer) -> Taken:
        listener = self._listener
        if listener is None:  # ended meanwhile
            return Taken(heard=False, detail="too late: the listener was ended")
        cannot_be_sent = _why_not(answer) if call.kind == "answer" else ""
        given = {
            "status": answer.status,
            "headers": [[name, value] for name, value in answer.headers][:200],
            # The console does not show the body of a replay's answer.
            "bodyBase64": b64encode(answer.body).decode()
            if call.kind == "answer" and not cannot_be_sent
            else "",
            "ms": answer.milliseconds,
            "error": f"its answer cannot be sent: {cannot_be_sent}"
            if cannot_be_sent
            else answer.error[:1000],
        }
        until = time.monotonic() + ANSWER_WITHIN
        while True:
            try:
                return api.post(
                    Taken,
                    "listeners",
                    listener.id,
                    "calls",
                    call.id,
                    body=given,
                    within=ANSWER_WITHIN,
                    declines=True,
                )
            except Declined as why:
                return Taken(heard=False, detail=str(why))
            except Away as away:
                if time.monotonic() > until or self._ended.is_set():
                    return Taken(heard=False, detail=str(away))
                time.sleep(AGAIN_AFTER)


def _why_not(answer: TargetAnswer) -> str:
    """Says why an answer cannot be sent, before the gateway looks at it."""
    if len(answer.body) > LARGEST_ANSWER:
        return "the body may have 1 MiB"
    named = ",".join(value for name, value in answer.headers if name.lower() == "content-encoding")
    unreadable = [one for coding in named.split(",") if (one := coding.strip().lower()) not in READABLE]
    return f"it is compressed as {plain(unreadable[0])}; gzip and deflate can be undone" if unreadable else ""
