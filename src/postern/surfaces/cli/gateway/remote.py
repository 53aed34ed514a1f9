"""A gateway over the network."""

from collections.abc import Iterator
from http.client import HTTPResponse
from typing import NoReturn
from urllib.parse import urlencode, urlsplit

from postern.surfaces.cli.gateway.profiles import Login
from postern.surfaces.cli.gateway.source import PREFIX, Away, HttpAnswer, HttpQuestion
from postern.surfaces.cli.gateway.web import FAILURES, Web, body_of, reason
from postern.surfaces.cli.run import FAILED, NOT_ALLOWED, UNAVAILABLE, end

ANSWER_WITHIN = 120.0
"""Seconds. A schedule's source may take its time."""

SILENCE = 20.0
"""Seconds. A stream sends a sign of life every five; a silent one is cut."""

LARGEST_ANSWER = 256 * 1024 * 1024
LONGEST_LINE = 8 * 1024 * 1024
"""Bytes, several times what a gateway sends. Somebody else in its place might send without end."""

NO_SUCH_PATH = "There is nothing at this path."
"""The sentence of a gateway that lacks an operation (`surfaces/rest/framework/problems.py`)."""


class Remote:
    def __init__(self, login: Login) -> None:
        self._login = login
        try:
            self._web = Web(login.url, by_proxy=True)
        except OSError as error:  # what SSL_CERT_FILE names cannot be used
            end(f"The certificates to trust cannot be read: {error}")
        self._path = urlsplit(login.url).path
        self._key = {"Authorization": f"Bearer {login.key}"}

    def ask(self, question: HttpQuestion, within: float | None = None) -> HttpAnswer:
        target, headers = self._path + question.target, question.headers | self._key
        try:
            with self._web.ask(
                question.method, target, headers, question.body, within or ANSWER_WITHIN
            ) as response:
                body = body_of(response, LARGEST_ANSWER)
        except FAILURES as error:
            self._away(error)
        self._check(response, body)
        return HttpAnswer(response.status, body)

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        only = "" if webhook is None else "?" + urlencode({"webhookId": webhook})
        try:
            target = f"{self._path}{PREFIX}/live{only}"
            with self._web.ask("GET", target, self._key, None, SILENCE) as response:
                if response.status != 200:
                    self._check(response, body_of(response, LARGEST_ANSWER))
                    raise Away(f"{self._login.url} does not stream now ({response.status}).")
                while (line := response.readline(LONGEST_LINE)).endswith(b"\n"):
                    if line == b": live\n":
                        yield None
                    elif line.startswith(b"data: "):
                        yield line.removeprefix(b"data: ").rstrip(b"\n")
        except FAILURES as error:
            self._away(error)
        raise Away(f"{self._login.url} has closed the connection.")

    def _check(self, response: HTTPResponse, body: bytes) -> None:
        """Ends the command if this is no answer of a gateway's API. A refusal is one."""
        url, status = self._login.url, response.status
        kind = response.headers.get("content-type", "")
        if status == 401:
            again = f"`postern login {url}`" if self._login.profile else "POSTERN_API_KEY"
            end(
                f"{url} does not know this API key, or it was deleted: {again}",
                NOT_ALLOWED,
                "not_authenticated",
            )
        if 300 <= status < 400:
            where = response.headers.get("location", "another address")
            end(f"{url} sends one on to {where}. Log in to the gateway's own address.", FAILED)
        if status in (502, 503, 504) and "problem+json" not in kind:
            raise Away(f"{url} answers {status}: the gateway behind it is away.")
        if status >= 400 and "problem+json" not in kind:
            end(f"{url} answers {status}, and not as Postern does. Is it the gateway's address?", UNAVAILABLE)
        if status == 405 or (status == 404 and NO_SUCH_PATH in body.decode("utf-8", "replace")):
            end(
                f"The gateway at {url} cannot do this: it is older than this command. `postern status` tells both versions.",
                FAILED,
            )
        if len(body) > LARGEST_ANSWER:
            end(f"{url} answers without end. Is it the gateway's address?", FAILED)
        if status < 400 and body and not kind.startswith(("application/json", "text/plain", "text/x-python")):
            end(f"{url} does not answer as Postern does. Is it the gateway's address?", FAILED)

    def _away(self, error: Exception) -> NoReturn:
        raise Away(f"{self._login.url} cannot be reached: {reason(error)}") from error

    def close(self) -> None:
        self._web.close()
