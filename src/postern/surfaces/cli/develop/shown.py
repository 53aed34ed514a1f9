"""What `postern listen` shows of each call: lines in a pipe, JSON lines for programs, a table on a terminal."""

import shutil
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.surfaces.cli.develop.target import TargetAnswer
from postern.surfaces.cli.run import counted, err, out, plain, show_json_line
from postern.surfaces.cli.terminal import Style, cells
from postern.usecases.answers import UNSET, Time, UnsetType, View
from postern.usecases.history.views.requests import RecordedRequest

ROWS = 200
"""Kept, where a terminal is that high."""
AROUND = 4
"""Lines of a terminal that are left for what stands around the rows."""


class ListenedCall(View):
    """A line of ``--json``."""

    id: str
    webhook_id: str
    received_at: Time
    method: str
    outcome: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    """``answer``: the caller waits for this program. ``replay``: somebody had it sent here again."""
    asked_by: str | UnsetType | None = UNSET
    local_status: int | UnsetType | None = UNSET
    local_ms: float | UnsetType = UNSET
    caller_heard: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    request: RecordedRequest | UnsetType = UNSET


@dataclass
class ShownRow:
    """One call at the program, and how that went as far as it is known."""

    call: RecordedRequest
    outcome: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    asked_by: str | UnsetType | None = UNSET
    answer: TargetAnswer | None = None
    caller_heard: bool | UnsetType = UNSET
    detail: str = ""

    @property
    def status(self) -> str:
        """What came of the answer, in a word."""
        if self.answer is None:
            return "at work"
        if self.kind == "replay":
            return "replay"
        if self.kind == "answer":
            return "answered the caller" if self.caller_heard is True else self.detail or "not heard"
        return "done" if self.answer.status is not None else "not taken"

    def as_line(self, **more: Any) -> ListenedCall:
        return ListenedCall(
            id=self.call.invocation_id,
            webhook_id=self.call.webhook_id,
            received_at=self.call.received_at,
            method=self.call.method,
            outcome=self.outcome,
            code=self.code,
            kind=self.kind,
            asked_by=self.asked_by,
            caller_heard=self.caller_heard,
            **more,
        )

    @property
    def event(self) -> str:
        values = [self.call.fields[name] for name in FIELD_NAMES if self.call.fields.get(name)]
        return plain("  ".join(filter(None, [self.call.event, *values])))


class CallLines(Protocol):
    def begin(self, row: ShownRow) -> None:
        """It is sent to the program now."""

    def end(self, row: ShownRow) -> None:
        """The program has answered, or has not."""

    def say(self, text: str, style: Style = "yellow") -> None:
        """Something else, on standard error."""


class Lines:
    def __init__(self) -> None:
        self._turn = threading.Lock()

    def begin(self, row: ShownRow) -> None:
        pass

    def end(self, row: ShownRow) -> None:
        call, answer = row.call, row.answer
        assert answer is not None
        text, style = _in_words(answer)
        what = f"{call.received_at}  {call.invocation_id}  {call.webhook_id}  {plain(call.method)}"
        more = f"  {plain(row.status)}" if row.kind else ""
        with self._turn:
            out.print(f"{what}  {out.styled(text, style)}  {answer.milliseconds:.0f} ms{more}")
            out.stream.flush()

    def say(self, text: str, style: Style = "yellow") -> None:
        err.print(text, style)


class JsonLines(Lines):
    def end(self, row: ShownRow) -> None:
        answer = row.answer
        assert answer is not None
        line = row.as_line(
            local_status=answer.status,
            local_ms=round(answer.milliseconds, 1),
            error=answer.error or row.detail or UNSET,
        )
        with self._turn:
            show_json_line(line)


class LiveTable:
    """Drawn anew over itself whenever something has changed. What is written to standard error meanwhile appears above
    it."""

    HEAD = ("TIME", "WEBHOOK", "EVENT, VALUES", "ANSWER", "TOOK", "STATUS")

    def __init__(self, title: str) -> None:
        self._title = title
        self._rows: deque[ShownRow] = deque(maxlen=ROWS)
        self._count = 0
        self._drawn = 0
        self._turn = threading.Lock()
        with self._turn:
            self._draw()

    def begin(self, row: ShownRow) -> None:
        with self._turn:
            self._rows.append(row)
            self._count += 1
            self._draw()

    def end(self, row: ShownRow) -> None:
        with self._turn:
            self._draw()

    def say(self, text: str, style: Style = "yellow") -> None:
        with self._turn:
            self._erase()
            err.print(text, style)
            err.stream.flush()
            self._draw()

    def _erase(self) -> None:
        if self._drawn:
            out.stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        room = max(1, size.lines - AROUND)
        rows = list(self._rows)[-room:]
        lines = [
            _cut(f"{plain(self._title)} · {counted(self._count, 'call')} · Ctrl-C ends it", size.columns),
            *_table(rows, size.columns),
        ]
        self._erase()
        out.stream.write("\n".join(lines) + "\n")
        out.stream.flush()
        self._drawn = len(lines)


_PLAIN: Style = ""


def _table(rows: list[ShownRow], width: int) -> list[str]:
    """Each row on one line: what is too long is cut, the values first."""
    texts = [_cells(row) for row in rows]
    all_texts = [LiveTable.HEAD, *(tuple(text for text, _ in row) for row in texts)]
    widths = [max(cells(row[place]) for row in all_texts) for place in range(len(LiveTable.HEAD))]
    for place in (2, 5, 3, 1):
        too_much = sum(widths) + 2 * (len(widths) - 1) - width
        widths[place] -= min(max(too_much, 0), max(widths[place] - 8, 0))
    head = "  ".join(_fill(text, room) for text, room in zip(LiveTable.HEAD, widths, strict=True))
    lines = [out.styled(_cut(head.rstrip(), width), "bold")]
    for row in texts:
        parts = [
            out.styled(_fill(text, room), style) for (text, style), room in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def _cells(row: ShownRow) -> list[tuple[str, Style]]:
    call, answer = row.call, row.answer
    text, style = _in_words(answer) if answer is not None else ("…", _PLAIN)
    took = "" if answer is None else f"{answer.milliseconds:.0f} ms"
    status_style: Style = "red" if row.caller_heard is False else ""
    return [
        (str(call.received_at)[11:23], ""),
        (
            call.webhook_id[:11] + "…" + call.webhook_id[-4:]
            if len(call.webhook_id) > 16
            else call.webhook_id,
            "",
        ),
        (row.event, ""),
        (text, style),
        (took, ""),
        (plain(row.status), status_style),
    ]


def _in_words(answer: TargetAnswer) -> tuple[str, Style]:
    if answer.status is None:
        return plain(answer.error), "red"
    return str(answer.status), "green" if answer.status < 400 else "red"


def _fill(text: str, room: int) -> str:
    text = _cut(text, room)
    return text + " " * (room - cells(text))


def _cut(text: str, room: int) -> str:
    if cells(text) <= room:
        return text
    while text and cells(text) > room - 1:
        text = text[:-1]
    return text + "…" if room > 0 else ""
