"""A gateway over the network."""

import ssl
from collections.abc import Iterator
from typing import NoReturn

import httpx2

from postern.surfaces.cli.gateway.profiles import Login
from postern.surfaces.cli.gateway.source import PREFIX, Away, HttpAnswer, HttpQuestion
from postern.surfaces.cli.gateway.trust import reason, trusted
from postern.surfaces.cli.run import FAILED, NOT_ALLOWED, UNAVAILABLE, end

CONNECT_WITHIN = 10.0
ANSWER_WITHIN = 120.0
"""Seconds. A schedule's source may take its time."""

SILENCE = 20.0
"""Seconds. A stream sends a sign of life every five; a silent one is cut."""

NO_SUCH_PATH = "There is nothing at this path."
"""The sentence of a gateway that lacks an operation (`surfaces/rest/framework/problems.py`)."""


class Remote:
    def __init__(self, login: Login) -> None:
        self._login = login
        try:
            self.http = httpx2.Client(
                verify=trusted(login.url),
                headers={"Authorization": f"Bearer {login.key}"},
                timeout=httpx2.Timeout(ANSWER_WITHIN, connect=CONNECT_WITHIN),
            )
        except (OSError, ssl.SSLError) as error:  # what SSL_CERT_FILE names cannot be used
            end(f"The certificates to trust cannot be read: {error}")

    def ask(self, question: HttpQuestion, within: float | None = None) -> HttpAnswer:
        waits = httpx2.Timeout(within or ANSWER_WITHIN, connect=min(within or ANSWER_WITHIN, CONNECT_WITHIN))
        try:
            response = self.http.request(
                question.method,
                self._login.url + question.target,
                content=question.body,
                headers=question.headers,
                timeout=waits,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._away(error)
        self._check(response)
        return HttpAnswer(response.status_code, response.content)

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        only = {} if webhook is None else {"webhookId": webhook}
        waits = httpx2.Timeout(SILENCE, connect=CONNECT_WITHIN)
        try:
            with self.http.stream(
                "GET", f"{self._login.url}{PREFIX}/live", params=only, timeout=waits
            ) as response:
                if response.status_code != 200:
                    response.read()
                    self._check(response)
                    raise Away(f"{self._login.url} does not stream now ({response.status_code}).")
                for line in response.iter_lines():
                    if line == ": live":
                        yield None
                    elif line.startswith("data: "):
                        yield line.removeprefix("data: ").encode()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._away(error)
        raise Away(f"{self._login.url} has closed the connection.")

    def _check(self, response: httpx2.Response) -> None:
        """Ends the command if this is no answer of a gateway's API. A refusal is one."""
        url, status = self._login.url, response.status_code
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
        if status == 405 or (status == 404 and NO_SUCH_PATH in response.text):
            end(
                f"The gateway at {url} cannot do this: it is older than this command. `postern status` tells both versions.",
                FAILED,
            )
        if (
            status < 400
            and response.content
            and not kind.startswith(("application/json", "text/plain", "text/x-python"))
        ):
            end(f"{url} does not answer as Postern does. Is it the gateway's address?", FAILED)

    def _away(self, error: Exception) -> NoReturn:
        raise Away(f"{self._login.url} cannot be reached: {reason(error)}") from error

    def close(self) -> None:
        self.http.close()
