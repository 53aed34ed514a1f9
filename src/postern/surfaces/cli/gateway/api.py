"""The client of the REST API that all commands use, over the network, on this machine's gateway or on its
database."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

import msgspec

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import PROBLEMS, FieldError, Refused
from postern.surfaces.cli.gateway.machine import Local, Machine
from postern.surfaces.cli.gateway.profiles import Login, chosen
from postern.surfaces.cli.gateway.remote import Remote
from postern.surfaces.cli.gateway.source import Away, HttpAnswer, HttpQuestion, Source
from postern.surfaces.cli.run import CONFLICT, FAILED, NOT_ALLOWED, NOT_FOUND, UNAVAILABLE, USAGE, end
from postern.usecases.answers import MOST_ON_A_PAGE, UNSET, Listing, UnsetType, View, as_json, read_json

T = TypeVar("T")

PLACE = re.compile(r"(?!\.\.?$)[A-Za-z0-9_.-]{1,80}")
"""A part of a path. Nothing else can be an id."""

MANY = ("webhooks", "many")
"""A path with one operation, POST. Similar paths have an id there."""

STATUSES = {
    USAGE: (400, 413, 422),
    NOT_FOUND: (404,),
    CONFLICT: (409, 412),
    UNAVAILABLE: (502, 503, 504),
    NOT_ALLOWED: (401, 403),
}
EXIT_CODES = {status: code for code, statuses in STATUSES.items() for status in statuses}


class GatewayProblem(View):
    detail: str
    code: str
    errors: list[FieldError] | UnsetType = UNSET


class Declined(Exception):
    """A refusal, for commands that go on after one."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


class Api:
    """Asks the API. Connections stay open until the command ends."""

    def __init__(self) -> None:
        self.open_local: Callable[[], Local]
        """The program sets it before it runs a command."""
        self.profile: str | None = None
        """The value of --profile."""
        self._given: Login | None = None
        self.patient = False
        """The caller waits for a gateway that is away, so ``Away`` is raised instead of ending the command."""
        self._local: Local | None = None
        self._remote: tuple[Login, Source] | None = None

    def get(self, answer: type[T], /, *path: str, within: float | None = None, **query: Any) -> T:
        """Waits ``within`` seconds for the answer."""
        return self._read(self.ask("GET", path, query, within=within), answer, "GET")

    def every(self, page: type[Listing[T]], /, *path: str, **query: Any) -> Iterator[T]:
        cursor: str | None = None
        while True:
            listing = self.get(page, *path, limit=MOST_ON_A_PAGE, cursor=cursor, **query)
            yield from listing.items
            cursor = listing.next_cursor
            if cursor is None:
                return

    def text(self, *path: str, **query: Any) -> str:
        return self.ask("GET", path, query).decode()

    def post(
        self,
        answer: type[T],
        /,
        *path: str,
        body: Any = None,
        within: float | None = None,
        declines: bool = False,
        **query: Any,
    ) -> T:
        """``declines``: a refusal is raised as ``Declined`` instead of ending the command."""
        return self._read(self.ask("POST", path, query, body, within, declines), answer, "POST")

    def put(self, answer: type[T], /, *path: str) -> T:
        return self._read(self.ask("PUT", path, {}), answer, "PUT")

    def patch(self, answer: type[T], /, *path: str, body: Any) -> T:
        return self._read(self.ask("PATCH", path, {}, body), answer, "PATCH")

    def delete(self, *path: str) -> bytes:
        return self.ask("DELETE", path, {})

    def ask(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, object],
        body: Any = None,
        within: float | None = None,
        declines: bool = False,
    ) -> bytes:
        """``query`` has names in snake case; None leaves a parameter out."""
        if not all(PLACE.fullmatch(part) for part in path) or (path == MANY and method != "POST"):
            end(PROBLEMS["not_found"].help, NOT_FOUND, "not_found")
        parameters = {camel(name): _text(value) for name, value in query.items() if value is not None}
        given = None if body is None else as_json(body)
        try:
            answer = self.source().ask(
                HttpQuestion(method, "/" + "/".join(map(quote, path)), parameters, given), within
            )
        except StoreUnavailable as trouble:
            end(f"The database cannot be used: {trouble}", UNAVAILABLE)
        except Away as away:
            if self.patient:
                raise
            end(str(away), UNAVAILABLE)
        if self.patient and answer.status == 503:
            raise Away("The gateway cannot answer now.")
        if answer.status >= 400:
            _refuse(answer, declines)
        return answer.body

    def login(self) -> Login | None:
        """Returns the login of the gateway over the network, or None if commands go to this machine."""
        return self._given or chosen(self.profile)

    def is_served(self) -> bool:
        """Whether a gateway gave the last answer, and not a database that was opened for the command."""
        return self.login() is not None or self.local().is_served

    def use(self, login: Login) -> None:
        """Goes to this gateway, whatever is chosen."""
        self._given = login

    def source(self) -> Source:
        login = self.login()
        if login is None:
            return self.local()
        if self._remote is None or self._remote[0] != login:
            self._remote = login, Remote(login)
        return self._remote[1]

    def local(self) -> Local:
        if self._local is None:
            self._local = self.open_local()
        return self._local

    def here(self) -> Machine:
        return self.local().machine()

    def machine(self, command: str) -> Machine:
        """Returns the machine for a command that makes no sense over the network."""
        login = self.login()
        if login is not None:
            end(
                f"`postern {command}` works on the database itself, and commands go to {login.url} now. Type it on "
                "that gateway's machine; for a database of this machine, add --profile local."
            )
        return self.here()

    def close(self) -> None:
        for opened in (self._local, self._remote and self._remote[1]):
            if opened is not None:
                opened.close()
        self._local = self._remote = self._given = None
        self.patient = False

    def _read(self, body: bytes, answer: type[T], method: str) -> T:
        text = body or b"null"
        while True:
            try:
                return read_json(text, answer)
            except msgspec.DecodeError as error:
                understood = _without_unknown(text, str(error))
                if understood is None or understood == text:
                    self._not_understood(error, method)
                text = understood

    def _not_understood(self, error: msgspec.DecodeError, method: str) -> NoReturn:
        login = self.login()
        done = "" if method == "GET" else "It has done what was asked, and "
        end(
            f"{done}{login.url if login else 'the API'} answers what this version of the command does not understand "
            f"({error}). `postern status` tells both versions.",
            FAILED,
        )


def _without_unknown(text: bytes, trouble: str) -> bytes | None:
    """Removes a field that this version does not know, or returns None if the trouble is another one.

    A newer gateway has more settings. The types of settings refuse unknown fields, because in a stored webhook
    one could matter; here it is only shown.
    """
    match = re.fullmatch(r"Object contains unknown field `([^`]+)`(?: - at `\$(.*)`)?", trouble)
    if match is None:
        return None
    places = [msgspec.json.decode(text)]
    whole = places[0]
    for name, each in re.findall(r"\.(\w+)|(\[)", match[2] or ""):
        inner = [place[name] for place in places if name in place] if name else places
        places = [element for place in inner for element in place] if each else inner
    for place in places:
        place.pop(match[1], None)
    return msgspec.json.encode(whole)


def _refuse(answer: HttpAnswer, declines: bool) -> NoReturn:
    status = EXIT_CODES.get(answer.status, FAILED)
    try:
        problem = msgspec.json.decode(answer.body, type=GatewayProblem)
    except msgspec.DecodeError:
        end(f"The gateway answers {answer.status} and does not say why.", status)
    fields = {error.field: error.message for error in problem.errors or ()}
    if declines:
        raise Declined(answer.status, problem.code, problem.detail)
    end(problem.detail, status, problem.code, fields)


def end_refused(refused: Refused) -> NoReturn:
    """Ends the command as the API's refusal would."""
    fields = {error.field: error.message for error in refused.errors}
    status = EXIT_CODES.get(refused.problem.status, FAILED)
    end(refused.detail or refused.problem.help, status, refused.code, fields)


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others)) if others else name


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


api = Api()
