"""Lists over HTTP: what every one is asked with, and the shape of every answer."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import JSONResponse, Response

from postern.usecases.present import Page

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
# A page goes on where the last one ended: an id is all that takes, and callers need not know.
Cursor = Annotated[
    str | None, Query(pattern="^[a-z]{2,4}_[0-9a-f]{32}$", description="nextCursor of the page before.")
]


def one_page(page: Page) -> Response:
    return JSONResponse(page.told())


def whole(items: list[dict[str, Any]]) -> Response:
    """A list that fits on one page."""
    return one_page(Page(items))
