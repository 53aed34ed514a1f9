"""Styles, scripts and icons of the pages.

Addresses are marked with the content, so a browser asks for each once. Styles are one file, made of those that they are written
in, and icons are in the page itself: each file that a page names takes time, also where a browser has it already."""

import re
from functools import cache
from pathlib import Path

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.static_files import content_of, file_response, mark_of

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"

STYLES = "css/console.css"
SHEETS = ("tokens", "base", "layout", "parts", "tables", "forms", "calls", "charts", "modes")
"""The order counts: of two rules that weigh the same the later one holds."""


@cache
def asset(name: str) -> str:
    """The asset's address, with a mark of its content: a browser may keep it as long as it likes. Scripts name each other
    relative to their own address, so theirs has the mark of all of them in its path."""
    if name.startswith("js/"):
        return f"/static/js/{mark_of_scripts()}/{name.removeprefix('js/')}"
    content = styles() if name == STYLES else content_of(STATIC / name)
    return f"/static/{name}?v={mark_of(content) if content else 'missing'}"


@cache
def mark_of_scripts() -> str:
    return mark_of(b"".join(file.read_bytes() for file in sorted((STATIC / "js").iterdir())))


@cache
def styles() -> bytes:
    written = b"".join((STATIC / "css" / f"{sheet}.css").read_bytes() for sheet in SHEETS)
    return written.replace(b"../vendor/inter.woff2", asset("vendor/inter.woff2").encode())


@cache
def _names() -> frozenset[str]:
    return frozenset(file.relative_to(STATIC).as_posix() for file in STATIC.rglob("*") if file.is_file())


async def answer_asset(request: Request) -> Response:
    """Addresses carry a mark of the content, so what was loaded once is never asked for again. Pages of before an update
    get the scripts of today, and ask for them again."""
    path, is_marked = request.path_params["path"], request.url.query.startswith("v=")
    if (parts := path.split("/"))[0] == "js" and len(parts) == 3:
        path, is_marked = f"js/{parts[2]}", parts[1] == mark_of_scripts()
    content = styles() if path == STYLES else content_of(STATIC / path) if path in _names() else None
    if content is None:
        raise Refused("not_found")
    return file_response(
        request, content, path, "public, max-age=31536000, immutable" if is_marked else "no-cache"
    )


@cache
def icon(name: str, look: str = "icon") -> Markup:
    """The drawing itself: one that is named in another file is asked for by each place that shows it."""
    worn = f' class="{look}"' if look else ""
    return Markup(f'<svg{worn} aria-hidden="true" {_drawings()[name]}</svg>')


@cache
def _drawings() -> dict[str, str]:
    symbol = re.compile(r'<symbol id="(\w+)" (viewBox="[^"]+">.*?)</symbol>')
    return dict(symbol.findall((FOLDER / "icons.svg").read_text()))
