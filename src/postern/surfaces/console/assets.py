"""What a page is made with beside its words: styles, scripts and icons.

Addresses are marked with the content, so a browser asks for each once. Styles are one file, made of those that they are written
in, and icons are in the page itself: each file that a page names takes time, also where a browser has it already."""

import hashlib
import re
from functools import cache
from pathlib import Path

from markupsafe import Markup
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"

STYLES = "css/console.css"
SHEETS = ("tokens", "base", "layout", "parts", "tables", "forms", "calls", "charts", "modes")
"""In this order: of two rules that weigh the same the later one holds."""


@cache
def asset(name: str) -> str:
    """The asset's address, with a mark of its content: a browser may keep it as long as it likes. Scripts name each other
    relative to their own address, so theirs has the mark of all of them in its path."""
    if name.startswith("js/"):
        return f"/static/js/{mark_of_scripts()}/{name.removeprefix('js/')}"
    file = STATIC / name
    content = styles() if name == STYLES else file.read_bytes() if file.exists() else b""
    return f"/static/{name}?v={_mark(content) if content else 'missing'}"


@cache
def mark_of_scripts() -> str:
    return _mark(b"".join(file.read_bytes() for file in sorted((STATIC / "js").iterdir())))


def _mark(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:10]


@cache
def styles() -> bytes:
    return b"".join((STATIC / "css" / f"{sheet}.css").read_bytes() for sheet in SHEETS)


class Assets(StaticFiles):
    """Addresses carry a mark of the content, so what was loaded once is never asked for again. Pages of before an update
    get the scripts of today, and ask for them again."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        marked = scope["query_string"].startswith(b"v=")
        match Path(path).parts:
            case ("js", mark, name):
                path, marked = str(Path("js", name)), mark == mark_of_scripts()
        if Path(path).as_posix() == STYLES and scope["method"] in ("GET", "HEAD"):
            response = Response(styles(), media_type="text/css")
        else:
            response = await super().get_response(path, scope)
        if response.status_code == 200:
            response.headers["cache-control"] = (
                "public, max-age=31536000, immutable" if marked else "no-cache"
            )
            response.headers["x-content-type-options"] = "nosniff"
        return response


@cache
def icon(name: str, look: str = "icon") -> Markup:
    """The drawing itself: one that is named in another file is asked for by each place that shows it."""
    worn = f' class="{look}"' if look else ""
    return Markup(f'<svg{worn} aria-hidden="true" {_drawings()[name]}</svg>')


@cache
def _drawings() -> dict[str, str]:
    symbol = re.compile(r'<symbol id="(\w+)" (viewBox="[^"]+">.*?)</symbol>')
    return dict(symbol.findall((FOLDER / "icons.svg").read_text()))
