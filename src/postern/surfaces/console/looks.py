"""How a reader likes lists: columns, density, the zone of times. Kept in a cookie, for each browser its own."""

from urllib.parse import parse_qs, urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

COOKIE = "looks"
COLUMNS = {
    "heard": "The answer, and after how long",
    "webhook": "Which webhook",
    "method": "Method",
    "address": "From which address",
    "size": "Size",
}
USUAL = ("heard", "webhook", "address")
A_YEAR = 31_536_000


class Looks(Struct, frozen=True):
    columns: tuple[str, ...] = USUAL
    dense: bool = True
    utc: bool = False
    """Times in UTC; otherwise in the browser's own zone."""
    folded: bool = True
    """Duplicates below the call that they repeat."""


def of(request: Request) -> Looks:
    """As the cookie says; what it does not say is as usual."""
    try:
        kept = parse_qs(request.cookies.get(COOKIE, ""), max_num_fields=20)
    except ValueError:
        return Looks()
    return made(kept) if kept else Looks()


def made(kept: dict[str, list[str]]) -> Looks:
    chosen = kept.get("column", [])
    return Looks(
        tuple(name for name in COLUMNS if name in chosen),
        dense=kept.get("rows") != ["roomy"],
        utc=kept.get("times") == ["utc"],
        folded=kept.get("duplicates") != ["all"],
    )


def remember(response: Response, looks: Looks) -> None:
    kept = [
        *(("column", name) for name in looks.columns),
        ("rows", "dense" if looks.dense else "roomy"),
        ("times", "utc" if looks.utc else "own"),
        ("duplicates", "folded" if looks.folded else "all"),
    ]
    response.set_cookie(COOKIE, urlencode(kept), max_age=A_YEAR, httponly=True, samesite="lax")
