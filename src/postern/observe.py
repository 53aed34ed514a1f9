"""What can be seen from outside: metrics, and one wide log line for each call."""

import asyncio
import logging
import sys
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, TextIO

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

# Where structlog finds Rich, it takes it along for a kind of traceback that is not written here: a twelfth of the start.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402

if sys.modules["rich"] is None:
    del sys.modules["rich"]

from postern.core.visible import visible  # noqa: E402

REGISTRY = CollectorRegistry()
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

unknown_codes = Counter(
    "postern_unknown_short_codes", "Calls to short codes that do not exist.", registry=REGISTRY
)
not_stored = Counter(
    "postern_not_stored", "Calls answered 503 because they could not be stored.", registry=REGISTRY
)
writer_waiting = Gauge(
    "postern_writer_waiting",
    "Writes that are not on disk yet: under way, or gathered for the next commit.",
    registry=REGISTRY,
)
deliveries_waiting = Gauge(
    "postern_deliveries_waiting",
    "Deliveries that wait to be started (counted up to 10,000).",
    registry=REGISTRY,
)
oldest_due_seconds = Gauge(
    "postern_oldest_due_seconds", "For how long the oldest waiting delivery has been due.", registry=REGISTRY
)
ready = Gauge(
    "postern_ready",
    "1 while this part is well, else 0: store (calls can be stored), webhooks (each is served, changes are followed), engine (the embedded one can be started).",
    ["part"],
    registry=REGISTRY,
)
engine_starts = Counter(
    "postern_engine_starts",
    "Starts asked of the engine, by how they went.",
    ["engine", "outcome"],
    registry=REGISTRY,
)
runs_ended = Counter(
    "postern_runs_ended",
    "Deliveries whose runs are all over, by how they ended, as far as the engine tells.",
    ["state"],
    registry=REGISTRY,
)
engine_start_seconds = Histogram(
    "postern_engine_start_seconds",
    "How long the engine took to take a trigger.",
    buckets=_SECONDS,
    registry=REGISTRY,
)


class CallCounts(Collector):
    """Counted with two dictionary steps a call, and put into the form of the metrics when somebody asks for
    them."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, str], int] = {}
        self._within = {False: [0] * (len(_SECONDS) + 1), True: [0] * (len(_SECONDS) + 1)}
        self._seconds = {False: 0.0, True: 0.0}

    def add(self, webhook_id: str, outcome: str, code: str, seconds: float, waited: bool) -> None:
        key = (webhook_id, outcome, code)
        self._calls[key] = self._calls.get(key, 0) + 1
        self._within[waited][bisect_left(_SECONDS, seconds)] += 1
        self._seconds[waited] += seconds

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "postern_calls", "Calls by webhook and outcome.", labels=["webhook", "outcome", "code"]
        )
        for key, count in self._calls.items():
            calls.add_metric(key, count)
        yield calls
        seconds = HistogramMetricFamily(
            "postern_answer_seconds", "From receiving a call to answering it.", labels=["kind"]
        )
        for waited, kind in ((False, "at once"), (True, "waited for the workflow")):
            bounds = [*map(str, _SECONDS), "+Inf"]
            seconds.add_metric(
                [kind],
                list(zip(bounds, accumulate(self._within[waited]), strict=True)),
                self._seconds[waited],
            )
        yield seconds


call_counts = CallCounts()
REGISTRY.register(call_counts)


def own_numbers() -> str:
    """This process's metrics, as text."""
    return generate_latest(REGISTRY).decode()


class CallLine(msgspec.Struct, tag_field="event", tag="call", gc=False):
    """What is worth knowing about one call, without anything of what it carried."""

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
    """Lines are gathered for a moment and written together: a write for each call would cost more than
    storing it does."""

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
    return f"call {visible(words)}\n"


def log_style(asked: str, stream: TextIO) -> str:
    """``auto``, decided: text on a terminal, JSON for whoever collects lines."""
    return ("text" if stream.isatty() else "json") if asked == "auto" else asked


def set_up_logs(style: str = "auto") -> None:
    """Everything else that is worth a line. ``off`` leaves what went wrong, as text for people."""
    style = log_style(style, sys.stderr)
    text: Any = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    shown: Any = [structlog.processors.JSONRenderer()] if style == "json" else [_visible, text]
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning" if style == "off" else "info"),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *shown,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Libraries()])


def _visible(_: Any, __: str, line: Any) -> Any:
    """A workflow's error may hold what a caller sent, and a library's warning too. Other values than texts are shown as
    Python writes them."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in line.items()}


class _Libraries(logging.Handler):
    """Their warnings as lines like all others; Python would print them as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        line = structlog.get_logger().bind(logger=record.name)
        line.log(
            min(record.levelno // 10 * 10, logging.CRITICAL),
            record.getMessage(),
            exc_info=record.exc_info or None,
        )
