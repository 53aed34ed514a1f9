"""Log lines: everything that is worth one, besides the calls. What writes them is loaded with the first one, for most
commands write none."""

import logging
import sys
from typing import Any

from postern.observe.style import asked


class Log:
    def info(self, event: str, **about: object) -> None:
        _lines().info(event, **about)

    def warning(self, event: str, **about: object) -> None:
        _lines().warning(event, **about)

    def error(self, event: str, **about: object) -> None:
        _lines().error(event, **about)

    def exception(self, event: str, **about: object) -> None:
        """With the exception that is being handled."""
        _lines().exception(event, **about)


def set_up_logs(style: str = "auto") -> None:
    """``off`` leaves what went wrong, as text for people."""
    asked[:] = [style]
    if "postern.observe.lines" in sys.modules:
        from postern.observe.lines import set_up

        set_up(style)
    logging.basicConfig(level=logging.WARNING, handlers=[_Libraries()])


def _lines() -> Any:
    from postern.observe.lines import LINES

    return LINES


class _Libraries(logging.Handler):
    """Their warnings as lines like all others; Python would print them as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        _lines().log(
            min(record.levelno // 10 * 10, logging.CRITICAL),
            record.getMessage(),
            logger=record.name,
            exc_info=record.exc_info or None,
        )
