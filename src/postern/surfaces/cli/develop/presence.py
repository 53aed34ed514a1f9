"""A listener that is connected: others see its name, and the gateway hands calls to it.

This machine need not be reachable from outside. The command asks the gateway again and again, and the gateway
keeps each question for a few seconds while it has no call.
"""

import getpass
import socket
import threading
import time
from typing import Any

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.surfaces.cli.develop.target import LocalTarget, TargetAnswer
from postern.surfaces.cli.gateway.api import Declined, api
from postern.surfaces.cli.gateway.source import Away
from postern.surfaces.cli.run import CONFLICT, end, err, out, plain, show_json_line
from postern.surfaces.cli.terminal import Style
from postern.usecases.answers import UNSET, Time, UnsetType, View
from postern.usecases.history.views.calls import LocalRun
from postern.usecases.history.views.requests import RecordedRequest
from postern.usecases.listeners.views import Entered, HandedCall, HandedCalls

CALLS_AT_ONCE = 16
"""Calls at the program at the same time, so that a slow one does not hold up the others."""
ASK_WITHIN = 8.0
"""Seconds. The gateway answers within four, so a silent network is noticed before the lease ends."""
ANSWER_WITHIN = 10.0
ASK_DATABASE_EVERY = 0.4
"""Seconds between two questions to the database of this machine, which answers at once."""
AGAIN_AFTER = 0.5


class ListenedCall(View):
    """A line of ``--json``."""

    id: str
    webhook_id: str
    received_at: Time
    method: str
    outcome: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    """``replay``: somebody has sent it here again."""
    asked_by: str | UnsetType | None = UNSET
    local_status: int | UnsetType | None = UNSET
    local_ms: float | UnsetType = UNSET
    error: str | UnsetType = UNSET
    request: RecordedRequest | UnsetType = UNSET


def listened(call: RecordedRequest, **more: Any) -> ListenedCall:
    return ListenedCall(call.invocation_id, call.webhook_id, call.received_at, call.method, **more)


class Lines:
    """The line of `postern listen` for each call: text for people, JSON for programs."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def show(self, call: RecordedRequest, line: ListenedCall, answer: TargetAnswer) -> None:
        with self._turn:
            if out.as_json:
                line.local_status, line.local_ms = answer.status, round(answer.milliseconds, 1)
                line.error = answer.error or UNSET
                show_json_line(line)
                return
            style: Style = "green" if answer.status is not None and answer.status < 400 else "red"
            text = out.styled(plain(answer.error) if answer.status is None else str(answer.status), style)
            words = [
                *(str(line.received_at), line.id, line.webhook_id, plain(line.method)),
                *(text, f"{answer.milliseconds:.0f} ms"),
                *map(plain, [call.event, *(call.fields.get(name, "") for name in FIELD_NAMES)]),
                line.kind or "",
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
    def __init__(self, name: str, target: LocalTarget, shown: Lines) -> None:
        self._name = name
        self._target = target
        self.shown = shown
        self._known: set[str] = set()
        # Every command loads this file, and this takes `logging` along.
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="listener")
        self._ended = threading.Event()
        self._listener: Entered | None = None
        self.count = 0

    def enter(self) -> None:
        self._listener = api.post(Entered, "listeners", body={"name": self._name}, declines=True)

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
        """Ends the listener."""
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
                    self.enter()
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
            handed = api.post(
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
        if not kept and not handed.calls:
            self._ended.wait(ASK_DATABASE_EVERY)
        return handed.calls

    def _enter_again(self, why: Declined) -> None:
        """Enters anew after the lease ran out without a connection, or stops if somebody ended the listener."""
        if self._ended.is_set():
            return
        if why.code != "not_found":
            self._stop(str(why))
        try:
            self.enter()
        except Declined as refused:
            self._stop(str(refused))
        self.shown.say("It was not there for a moment, and is again.")

    def _stop(self, why: str) -> None:
        self._listener = None
        end(why, CONFLICT)

    def _take(self, call: HandedCall) -> None:
        try:
            line = listened(call.request, kind="replay", asked_by=call.asked_by)
            answer = self._target.send(call.request, is_replay=True)
            self._report_answer(call, answer)
            self.shown.show(call.request, line, answer)
        except SystemExit:
            pass
        finally:
            self._known.discard(call.id)

    def _report_answer(self, call: HandedCall, answer: TargetAnswer) -> None:
        listener = self._listener
        if listener is None:  # ended meanwhile
            return
        given = {"status": answer.status, "ms": answer.milliseconds, "error": answer.error[:1000]}
        until = time.monotonic() + ANSWER_WITHIN
        while True:
            try:
                api.post(
                    LocalRun,
                    "listeners",
                    listener.id,
                    "calls",
                    call.id,
                    body=given,
                    within=ANSWER_WITHIN,
                    declines=True,
                )
                return
            except Declined:
                return
            except Away:
                if time.monotonic() > until or self._ended.is_set():
                    return
                time.sleep(AGAIN_AFTER)
