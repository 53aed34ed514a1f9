"""A visit: one request to the console by somebody who is signed in, and what may answer it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route

from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.changes import may_have_changed, store_away
from postern.surfaces.console import pages
from postern.surfaces.console.labels import label, message
from postern.surfaces.session import COOKIE, SAFE, check_origin
from postern.surfaces.streaming import HEADERS, MEDIA_TYPE
from postern.usecases.access import accounts
from postern.usecases.access.idempotency import KeptAnswer, once
from postern.usecases.operations import engine
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.site import out_of_reach
from postern.usecases.webhooks import bin
from postern.usecases.webhooks.views import Binned

MOST_FIELDS = 2000
LARGEST_FORM = 4 * 1024 * 1024
LARGEST_FORM_OF_STRANGERS = 16 * 1024
LONGEST_NUMBER = 15

P = ParamSpec("P")
T = TypeVar("T")

PageValues = dict[str, Any]
"""The values that fill a template."""


@dataclass
class Visit:
    request: Request
    gateway: Gateway
    actor: Actor
    _sent: list[tuple[str, str]] | None = None

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    def ask(
        self, use_case: Callable[Concatenate[Gateway, Actor, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        """The answer of a use case to whoever visits."""
        return use_case(self.gateway, self.actor, *given, **named)

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
            base_url=self.gateway.site.base_url,
            out_of_reach=out_of_reach(self.gateway.site.base_url),
            troubles=self.gateway.runtime.troubles,
            incidents_open=self.gateway.runtime.incidents,
            writes_workflows=engine.runs_workflow_files(self.gateway),
            **context,
        )

    def again(self, refused: Refused, template: str, **context: Any) -> Response:
        """A form that was refused: what is wrong stands beside its fields, or above them all."""
        told = told_of(refused) | ({"problem": None} if refused.errors else {})
        return self.page(template, refused.problem.status, **context | told)

    def to(self, path: str, notice: str = "") -> Response:
        """The answer to every form that did something: a page of its own, so that reloading does not do it
        twice."""
        if notice:
            path += ("&" if "?" in path else "?") + "notice=" + notice
        path = quote(path, safe=":/%#?=@[]!$&'()*+,;")  # a form may name it, line breaks and all
        return _led_to(path, self.wants_part)

    async def pairs(self) -> list[tuple[str, str]]:
        """The fields as they were sent: a name may come more than once. They can be read once; whoever asks again is given the
        same."""
        if self._sent is None:
            self._sent = await read_pairs(self.request)
        return self._sent

    async def form(self) -> "Form":
        return Form(await self.pairs())


_is_number = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII).fullmatch


class Form(dict[str, str]):
    """The fields of a form, each once."""

    def text(self, name: str) -> str:
        return self.get(name, "").strip()

    def number(self, name: str, unit: int = 1) -> int | float | str | None:
        """The number; None if the field is empty. Other text stays as it is, to be refused by its name. ``unit``: how many of
        what is stored make one of what is written. The stored numbers are whole then."""
        text = self.text(name)
        if not _is_number(text):
            return text or None
        number = Decimal(text) * unit
        return int(number) if unit == 1 and number % 1 == 0 else float(number) if unit == 1 else round(number)

    def on(self, name: str) -> bool:
        return self.get(name) == "on"

    def given(self, name: str) -> str | None:
        """The text; None if it is empty: the setting goes back to its default."""
        return self.text(name) or None

    def as_typed(self, name: str) -> str | None:
        """The text with its blanks; None if it is empty. Browsers send each line break as two characters."""
        return self.get(name, "").replace("\r\n", "\n") or None

    def lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.get(name, "").splitlines() if line.strip()]

    def listed(self, name: str) -> list[str]:
        """The parts between commas."""
        return [part.strip() for part in self.get(name, "").split(",") if part.strip()]


def whole_number(text: str) -> int | None:
    """``isdigit`` alone would let through what ``int`` then refuses: superscripts, and thousands of
    digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


async def read_form(request: Request, largest: int = LARGEST_FORM) -> Form:
    return Form(await read_pairs(request, largest))


async def read_pairs(request: Request, largest: int = LARGEST_FORM) -> list[tuple[str, str]]:
    raw = b""
    try:
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > largest:
                raise Refused("payload_too_large", f"the form is larger than {largest // 1024} KiB")
    except ClientDisconnect:
        raise Refused("malformed_request", "the form ended early") from None
    text = raw.decode("utf-8", "replace")
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused("payload_too_large", f"the form has more than {MOST_FIELDS} fields") from None


ViewFunction = Callable[[Visit], Awaitable[Response]]


def deed(
    use_case: Callable[[Gateway, Actor, str], Awaitable[object]], named: str, to: str, notice: str = ""
) -> ViewFunction:
    """A view that does one thing with what its address names. ``to``: where it leads, by the parts of its address."""

    async def act(visit: Visit) -> Response:
        await visit.ask(use_case, visit.at(named))
        return visit.to(to.format(**visit.request.path_params), notice)

    return act


def route(gateway: Gateway, method: str, path: str, view: ViewFunction) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            check_origin(gateway, request)
            actor = await accounts.actor_of_session(gateway, request.cookies.get(COOKIE, ""))
        except Refused as refused:
            if refused.code == "access_denied":
                return pages.page(request, "stopped.html", 403, problem=problem_of(refused))
            return _sign_in_first(request, gateway)
        except StoreUnavailable:
            if _asks_for_stream(request):
                return _later()
            is_form = request.method not in SAFE
            back = _page_before(request, gateway) if is_form else ""
            return pages.page(
                request,
                "stopped.html",
                503,
                headers=_again(request),
                problem=problem_of(store_away()),
                is_form=is_form,
                back=back,
                again=ASKED_AGAIN,
            )
        visit = Visit(request, gateway, actor)
        may_have_changed.set(False)
        try:
            return await _once(visit, view)
        except Refused as refused:
            return await _refusal(visit, refused)
        except StoreUnavailable:
            return (
                _later() if _asks_for_stream(request) else await _refusal(visit, store_away(), is_away=True)
            )

    return Route(path, endpoint, methods=[method])


_is_once = re.compile(r"[0-9a-f]{1,40}").fullmatch
"""As templates make it with ``token_hex``."""


async def _once(visit: Visit, view: ViewFunction) -> Response:
    """The view's answer. A form with a one-time value is done once: sent a second time by a double click, another
    try or a reload, it leads where the first one led."""
    key = (await visit.form()).get("once", "") if visit.request.method not in SAFE else ""
    if not _is_once(key):
        return await view(visit)
    answers: list[Response] = []

    async def work() -> KeptAnswer:
        answers.append(await view(visit))
        headers = answers[0].headers
        to = (
            headers.get("location")
            or headers.get("hx-redirect")
            or _page_before(visit.request, visit.gateway)
        )
        return answers[0].status_code, [("location", to)], b""

    # A form that was changed since is another one.
    content = f"{visit.request.url.path} {await visit.pairs()}".encode(errors="replace")
    (_, headers, _), _ = await visit.ask(once, f"{key} {sha256(content).hexdigest()}", content, work)
    return answers[0] if answers else visit.to(headers[0][1] or "/calls")


ASKED_AGAIN = 5
"""Seconds after which what could not be shown, because the database is away, is asked for again by the browser itself."""


def _again(request: Request) -> dict[str, str]:
    """A form is never sent a second time by itself."""
    return {"refresh": str(ASKED_AGAIN)} if request.method in SAFE else {}


def _asks_for_stream(request: Request) -> bool:
    return request.headers.get("accept", "") == "text/event-stream"


def _later() -> Response:
    """A browser never asks again for a stream that was refused; for one that has ended it does."""
    return Response(f"retry: {ASKED_AGAIN * 1000}\n\n", media_type=MEDIA_TYPE, headers=HEADERS)


def _sign_in_first(request: Request, gateway: Gateway) -> Response:
    is_part, is_form = request.headers.get("hx-request") == "true", request.method not in SAFE
    path = _with_query(request.url.path, request.url.query)
    if is_part or is_form:
        path = _page_before(request, gateway)
    parameters = {"next": path} if path not in ("", "/") else {}
    if is_form:
        parameters["ended"] = "unsaved"
    target = "/sign-in" + ("?" + urlencode(parameters, quote_via=quote, safe="") if parameters else "")
    return _led_to(target, is_part)


def _led_to(path: str, is_part: bool) -> Response:
    if is_part:
        return Response(status_code=200, headers={"hx-redirect": path, "cache-control": "no-store"})
    return RedirectResponse(path, 303, {"cache-control": "no-store"})


def _page_before(request: Request, gateway: Gateway) -> str:
    """The page that a form or a part of a page was asked from, if it is one of ours and can be opened
    again."""
    try:
        before = urlsplit(request.headers.get("hx-current-url") or request.headers.get("referer", ""))
    except ValueError:  # not every text can be an address, and a stranger may send any
        return ""
    own = (urlsplit(gateway.site.base_url).netloc, request.headers.get("host", ""))
    if before.scheme not in ("http", "https") or before.netloc not in own:
        return ""
    if _opens(request, before.path):
        return _with_query(before.path, before.query)
    # A form that was refused stands at an address that only takes forms; its page is one step up.
    parent = before.path.rpartition("/")[0]
    return parent if _opens(request, parent) else ""


def _opens(request: Request, path: str) -> bool:
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
    return any(
        route.matches(scope)[0] is Match.FULL for route in request.app.routes if isinstance(route, Route)
    )


def _with_query(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


def trouble_page(request: Request, refused: Refused) -> Response:
    """The page for an address that leads nowhere. An address that only takes forms leads back to the form: somebody has
    reloaded a page that told what was wrong."""
    parent = request.url.path.rpartition("/")[0]
    if refused.code == "method_not_allowed" and request.method == "GET" and _opens(request, parent):
        return RedirectResponse(parent, 303, {"cache-control": "no-store"})
    return pages.page(request, "stopped.html", refused.problem.status, problem=problem_of(refused))


async def _refusal(visit: Visit, refused: Refused, is_away: bool = False) -> Response:
    """The page for a request that was refused. Typed text is given back where it was typed."""
    binned = await _in_the_bin(visit) if refused.code == "not_found" else None
    is_form = visit.request.method not in SAFE
    back = _page_before(visit.request, visit.gateway) if is_form and refused.code != "not_found" else ""
    problem = problem_of(refused)
    if binned is not None:
        problem = ShownProblem(
            f"{binned.name} is in the bin",
            "It was deleted, and can be restored as it was, with its URL, settings, secrets and history.",
            problem.status,
        )
    # The part to be put in place is not there: the page says so instead.
    whole = {"hx-retarget": "#main", "hx-reselect": "#main", "hx-reswap": "outerHTML"}
    return visit.page(
        "refusal.html",
        problem.status,
        headers=_again(visit.request) if is_away else whole if is_form and visit.wants_part else {},
        problem=problem,
        binned=binned,
        is_form=is_form,
        back=back,
        again=ASKED_AGAIN if is_away else 0,
    )


async def _in_the_bin(visit: Visit) -> Binned | None:
    """The webhook that this address is about, where it was deleted and can be had back."""
    webhook_id = visit.request.path_params.get("webhook")
    if webhook_id is None:
        return None
    with suppress(Refused, StoreUnavailable):
        for entry in (await visit.ask(bin.listing, only=webhook_id)).items:
            return entry
    return None


async def or_none(answer: Awaitable[T]) -> T | None:
    """The answer, or None where it is refused: the rest of the page is shown all the same."""
    try:
        return await answer
    except Refused:
        return None


class ShownProblem(Struct, frozen=True):
    title: str
    detail: str
    status: int


def messages_of(refused: Refused) -> dict[str, str]:
    """The error of each field, as it stands beside it."""
    said = {error.field: message(error.field, error.message) for error in refused.errors}
    return {field: text[:1].upper() + text[1:] for field, text in said.items()}


def told_of(refused: Refused) -> PageValues:
    """The errors of a form, beside its fields and above them all."""
    return {"errors": messages_of(refused), "problem": problem_of(refused)}


def problem_of(refused: Refused) -> ShownProblem:
    detail = refused.detail or refused.problem.help
    listed = [f"{label(error.field)}: {message(error.field, error.message)}" for error in refused.errors]
    return ShownProblem(
        refused.problem.title, "; ".join(listed) or detail[:1].upper() + detail[1:], refused.problem.status
    )
