"""The line of `postern listen` for each call: text for people, JSON for programs."""

import threading
from typing import Any

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.surfaces.cli.develop.target import TargetAnswer
from postern.surfaces.cli.run import err, out, plain, show_json_line
from postern.surfaces.cli.terminal import Style
from postern.usecases.answers import UNSET, Time, UnsetType, View
from postern.usecases.history.views.requests import RecordedRequest


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
