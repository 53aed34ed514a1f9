"""The counts and the log line of each call."""

import asyncio
import sys
from bisect import bisect_left
from typing import TextIO

import msgspec

from postern.core.visible import visible
from postern.observe.logs import log_style

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class CallCounts:
    """Counts a call with two dictionary steps. `metrics.py` makes metrics of the counts when somebody asks."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str, str], int] = {}
        self.within = {False: [0] * (len(SECONDS) + 1), True: [0] * (len(SECONDS) + 1)}
        self.seconds = {False: 0.0, True: 0.0}

    def add(self, webhook_id: str, outcome: str, code: str, seconds: float, waited: bool) -> None:
        key = (webhook_id, outcome, code)
        self.calls[key] = self.calls.get(key, 0) + 1
        self.within[waited][bisect_left(SECONDS, seconds)] += 1
        self.seconds[waited] += seconds

    @property
    def answered(self) -> int:
        return sum(map(sum, self.within.values()))


call_counts = CallCounts()


class CallLine(msgspec.Struct, tag_field="event", tag="call", gc=False):
    """The log line of one call, without anything that it carried."""

    webhook: str
    invocation: str
    outcome: str
    code: str
    status: int
    matched: str
    address: str
    bytes: int
    version: int
    detail: str
    ms: float


class CallLog:
    """Lines are written together: a write for each call would cost more than storing it does."""

    def __init__(self, stream: TextIO = sys.stderr, style: str = "auto") -> None:
        self._stream = stream
        self._off = style == "off"
        self._pretty = log_style(style, stream) == "text"
        self._lines: list[CallLine] = []

    def call(self, line: CallLine) -> None:
        if self._off:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(0.1, self.flush)
        self._lines.append(line)

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            try:
                self._stream.write(
                    "".join(map(_in_words, lines))
                    if self._pretty
                    else _encode_lines(lines).decode("utf-8", "replace")
                )
                self._stream.flush()
            except (OSError, ValueError):  # whoever read the log has gone; calls go on
                pass


_encode_lines = msgspec.json.Encoder().encode_lines


def _in_words(line: CallLine) -> str:
    words = " ".join(
        f"{name}={value}" for name, value in msgspec.structs.asdict(line).items() if value not in ("", None)
    )
    return f"call {visible(words, keep='')}\n"
