"""Signing in and out: the only pages for strangers."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.changes import store_away
from postern.surfaces import session
from postern.surfaces.console import pages
from postern.surfaces.console.visit import (
    LARGEST_FORM_OF_STRANGERS,
    problem_of,
    read_form,
    told_of,
)
from postern.surfaces.session import COOKIE, check_origin, forget, remember
from postern.usecases.access import accounts
from postern.usecases.runtime.gateway import Gateway

STILL_SIGNED_IN = Refused(
    "temporarily_unavailable", "The database cannot be used now. You are still signed in: try again."
)


def routes(gateway: Gateway) -> list[Route]:
    async def ask(request: Request) -> Response:
        return pages.page(request, "sign_in.html", next=_ours(request.query_params.get("next", "")), name="")

    async def sign_in(request: Request) -> Response:
        form = await read_form(request, LARGEST_FORM_OF_STRANGERS)
        name, onward = form.text("name"), _ours(form.text("next"))
        try:
            check_origin(gateway, request)
            secret = await session.sign_in(gateway, request, name, form.get("password", ""))
        except (Refused, StoreUnavailable) as trouble:
            refused = trouble if isinstance(trouble, Refused) else store_away()
            return pages.page(
                request,
                "sign_in.html",
                refused.problem.status,
                next=onward,
                name=name,
                problem=problem_of(refused),
            )
        response = RedirectResponse(onward, 303, {"cache-control": "no-store"})
        remember(gateway, response, name, secret)
        return response

    async def asked_to_join(request: Request, status: int = 200, **told: Any) -> Response:
        try:
            user = await accounts.invited(gateway, request.path_params["secret"])
        except (Refused, StoreUnavailable) as trouble:
            refused = trouble if isinstance(trouble, Refused) else store_away()
            return pages.page(request, "stopped.html", refused.problem.status, problem=problem_of(refused))
        return pages.page(request, "join.html", status, user=user, **({"errors": {}, "problem": None} | told))

    async def join(request: Request) -> Response:
        form = await read_form(request, LARGEST_FORM_OF_STRANGERS)
        password = form.get("password", "")
        try:
            check_origin(gateway, request)
            user = await accounts.join(gateway, request.path_params["secret"], password)
            secret = await session.sign_in(gateway, request, user.name, password)
        except (Refused, StoreUnavailable) as trouble:
            refused = trouble if isinstance(trouble, Refused) else store_away()
            return await asked_to_join(request, refused.problem.status, **told_of(refused))
        response = RedirectResponse("/webhooks", 303, {"cache-control": "no-store"})
        remember(gateway, response, user.name, secret)
        return response

    async def sign_out(request: Request) -> Response:
        response = RedirectResponse(
            "/sign-in", 303, {"cache-control": "no-store", "clear-site-data": '"cache"'}
        )
        check_origin(gateway, request)
        try:
            await accounts.sign_out(gateway, request.cookies.get(COOKIE, ""))
        except StoreUnavailable:
            return pages.page(request, "stopped.html", 503, problem=problem_of(STILL_SIGNED_IN))
        forget(response)
        return response

    async def theme(request: Request) -> Response:
        check_origin(gateway, request)
        form = await read_form(request, LARGEST_FORM_OF_STRANGERS)
        back = request.headers.get("referer", "")
        path = "/" + back.split("/", 3)[3] if back.count("/") >= 3 else "/webhooks"
        response = RedirectResponse(_ours(path), 303)
        for name, usual, others in (("theme", "system", ("light", "dark")), ("times", "own", ("utc",))):
            if chosen := form.get(name, ""):
                kept = chosen if chosen in others else usual
                response.set_cookie(name, kept, max_age=31_536_000, httponly=True, samesite="lax")
        return response

    return [
        Route("/sign-in", ask),
        Route("/sign-in", sign_in, methods=["POST"]),
        Route("/join/{secret}", asked_to_join),
        Route("/join/{secret}", join, methods=["POST"]),
        Route("/sign-out", sign_out, methods=["POST"]),
        Route("/theme", theme, methods=["POST"]),
    ]


def _ours(path: str) -> str:
    """The path if it leads to one of our own pages; else the list of webhooks."""
    is_ours = (
        path.startswith("/")
        and not path.startswith(("//", "/\\", "/sign-"))
        and path.isprintable()
        and "\\" not in path
    )
    return path if is_ours else "/webhooks"
