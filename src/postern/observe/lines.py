"""Log lines as structlog writes them."""

import sys
from typing import Any

# Where structlog finds Rich, it takes it along for a kind of traceback that is not written here: a twelfth of the start.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type] # None: an import of it fails
import structlog  # noqa: E402

if sys.modules["rich"] is None:
    del sys.modules["rich"]

from postern.core.visible import set_in, visible  # noqa: E402
from postern.observe.style import asked, log_style  # noqa: E402

LINES: Any = structlog.get_logger()


def set_up(style: str) -> None:
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


def _visible(_: Any, __: str, line: Any) -> Any:
    """A workflow's error may hold what a caller sent, and a library's warning too: it moves no terminal, and begins no
    line that looks like one of ours. Other values than texts are shown as Python writes them."""
    return {name: _shown(name, value) if isinstance(value, str) else value for name, value in line.items()}


def _shown(name: str, value: str) -> str:
    return "  " + set_in(value) if name == "exception" else visible(value, keep="")


for style in asked:
    set_up(style)
