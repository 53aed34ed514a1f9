"""Log lines: everything that is worth one, besides the calls."""

import logging
import sys
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

from postern.core.visible import set_in, visible

log: FilteringBoundLogger = structlog.get_logger()


def log_style(style: str, stream: TextIO) -> str:
    """``auto``, decided: text on a terminal, JSON for whoever collects lines."""
    return ("text" if stream.isatty() else "json") if style == "auto" else style


def set_up_logs(style: str = "auto") -> None:
    """``off`` leaves what went wrong, as text for people."""
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
    # It warns of each form that a stranger has damaged; the call's own line says so.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


def _visible(_: Any, __: str, line: Any) -> Any:
    """A workflow's error may hold what a caller sent, and a library's warning too: it moves no terminal, and begins no
    line that looks like one of ours. Other values than texts are shown as Python writes them."""
    return {name: _shown(name, value) if isinstance(value, str) else value for name, value in line.items()}


def _shown(name: str, value: str) -> str:
    return "  " + set_in(value) if name == "exception" else visible(value, keep="")


class _Libraries(logging.Handler):
    """Their warnings as lines like all others; Python would print them as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(
            min(record.levelno // 10 * 10, logging.CRITICAL),
            record.getMessage(),
            logger=record.name,
            exc_info=record.exc_info or None,
        )
