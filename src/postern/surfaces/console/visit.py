"""A visit: one request to the console by somebody who is signed in, and what may answer it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from postern.core.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.core.records import Actor
from postern.surfaces.console import pages
from postern.surfaces.session import COOKIE, SAFE, check_origin
from postern.usecases import access
from postern.usecases.gateway import Gateway

MOST_FIELDS = 2000
LARGEST_FORM = 4 * 1024 * 1024


@dataclass
class Visit:
    request: Request
    gateway: Gateway
    actor: Actor

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    def at(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    @property
    def wants_part(self) -> bool:
        """htmx asks for a part of the page, which it will put where it belongs."""
        return self.request.headers.get("hx-request") == "true"

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        return pages.page(
            self.request,
            template,
            status,
            actor=self.actor,
            may_write=self.actor.may("write"),
            may_admin=self.actor.may("admin"),
            base_url=self.gateway.base_url,
            out_of_reach=self.gateway.out_of_reach,
            **context,
        )

    def to(self, path: str, said: str = "") -> Response:
        """The answer to every form that did something: a page of its own, so that reloading does not do it twice."""
        if said:
            path += ("&" if "?" in path else "?") + "said=" + said
        if self.wants_part:
            return Response(status_code=200, headers={"hx-redirect": path, "cache-control": "no-store"})
        return RedirectResponse(path, 303, {"cache-control": "no-store"})

    async def form(self) -> "Form":
        return await read_form(self.request)


class Form(dict[str, str]):
    """The fields of a form, each once; ``all`` has those that may be sent several times."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        super().__init__({name: values[-1] for name, values in fields.items()})
        self.all = fields

    def text(self, name: str) -> str:
        return self.get(name, "").strip()

    def on(self, name: str) -> bool:
        return self.get(name) == "on"

    def lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.get(name, "").splitlines() if line.strip()]


async def read_form(request: Request) -> Form:
    raw = b""
    try:
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > LARGEST_FORM:
                raise Refused("payload_too_large", "the form is larger than 4 MiB")
    except ClientDisconnect:
        raise Refused("malformed_request", "the form ended early") from None
    text = raw.decode("utf-8", "replace")
    try:
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refused("payload_too_large", f"the form has more than {MOST_FIELDS} fields") from None


View = Callable[[Visit], Awaitable[Response]]


def route(gateway: Gateway, method: str, path: str, view: View) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            check_origin(gateway, request)
            actor = await access.actor_of_session(gateway, request.cookies.get(COOKIE, ""))
        except Refused as refused:
            if refused.code == "access_denied":
                return pages.page(request, "stopped.html", 403, problem=problem_of(refused))
            return _sign_in_first(request)
        except StoreUnavailable:
            return pages.page(request, "stopped.html", 503, problem=problem_of(_STORE_AWAY))
        visit = Visit(request, gateway, actor)
        try:
            return await view(visit)
        except Refused as refused:
            return _refusal(visit, refused)
        except StoreUnavailable:
            return _refusal(visit, _STORE_AWAY)

    return Route(path, endpoint, methods=[method])


_STORE_AWAY = Refused("temporarily_unavailable", "The database cannot be reached now. Nothing was changed.")


def _sign_in_first(request: Request) -> Response:
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = "/sign-in?next=" + quote(path, safe="") if request.method in SAFE and path != "/" else "/sign-in"
    if request.headers.get("hx-request") == "true":
        return Response(status_code=200, headers={"hx-redirect": "/sign-in", "cache-control": "no-store"})
    return RedirectResponse(target, 303, {"cache-control": "no-store"})


def _refusal(visit: Visit, refused: Refused) -> Response:
    return visit.page("refusal.html", refused.problem.status, problem=problem_of(refused))


def problem_of(refused: Refused) -> dict[str, Any]:
    detail = refused.detail or refused.problem.help
    listed = [f"{error.field}: {error.message}" for error in refused.errors]
    return {
        "title": refused.problem.title,
        "detail": "; ".join(listed) or detail[:1].upper() + detail[1:],
        "status": refused.problem.status,
    }
