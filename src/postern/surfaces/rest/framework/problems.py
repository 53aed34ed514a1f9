"""Refusals over HTTP: each is a problem document (RFC 9457), whose type is the address of a page about it."""

from collections.abc import Callable
from html import escape

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from postern.core.problems import PROBLEMS, FieldError, Refused
from postern.observe.changes import store_away
from postern.usecases.answers import UNSET, UnsetType, View, as_json

MEDIA_TYPE = "application/problem+json"


class Problem(View):
    """A problem document (RFC 9457). ``code`` is stable; ``detail`` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] | UnsetType = UNSET


def problem_of(refused: Refused) -> Problem:
    problem = PROBLEMS[refused.code]
    return Problem(
        type=f"/problems/{problem.code}",
        title=problem.title,
        status=problem.status,
        detail=refused.detail or problem.help,
        code=problem.code,
        errors=refused.errors or UNSET,
    )


def problem_response(refused: Refused) -> Response:
    problem = PROBLEMS[refused.code]
    wait = refused.retry_after or problem.retry_after
    headers = {"retry-after": str(wait)} if wait else {}
    if problem.status == 401:
        headers["www-authenticate"] = 'Bearer realm="postern"'
    return Response(as_json(problem_of(refused)), problem.status, headers, MEDIA_TYPE)


def response_for(request: Request, refused: Refused) -> Response:
    """Answers a page to a browser, if there is a console, and else a problem document."""
    page: Callable[[Request, Refused], Response] | None = getattr(request.app.state, "trouble_page", None)
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
    return page(request, refused) if page is not None and wants_page else problem_response(refused)


async def on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return response_for(request, error)


async def on_store_trouble(_: Request, __: Exception) -> Response:
    return problem_response(store_away())


async def on_defect(_: Request, __: Exception) -> Response:
    """Answers a defect. Starlette raises the error again afterwards, and ``surfaces/app.py`` logs it."""
    return problem_response(Refused("internal_error"))


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Answers an unknown path or method, which the framework refuses by itself."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = ", ".join(allowed_methods(request.app.routes, request.scope))
        response = response_for(request, Refused("method_not_allowed", f"This path answers {allowed}."))
        response.headers["allow"] = allowed
        return response
    if error.status_code == 404:
        return response_for(request, Refused("not_found", "There is nothing at this path."))
    return problem_response(Refused("malformed_request", str(error.detail)))


def allowed_methods(routes: list[BaseRoute], scope: Scope) -> list[str]:
    methods: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.methods:
            match = route.matches(scope)[0]
            methods |= route.methods if match is not Match.NONE else set()
            if match is Match.FULL:
                break
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


async def problem_page(request: Request) -> Response:
    problem = PROBLEMS.get(request.path_params["code"])
    if problem is None:
        raise Refused("not_found", "There is no problem of this name.")
    text = f"<h1>{escape(problem.title)}</h1><p>{escape(problem.help)}</p><p><code>{problem.code}</code>, HTTP {problem.status}</p>"
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(problem.title)}</title><main>{text}</main></html>'
    )
