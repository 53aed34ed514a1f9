"""The sources of a command's answers: a gateway over the network, the one that serves the data of this machine,
or the same API on the local database."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol
from urllib.parse import urlencode

PREFIX = "/api/v1"


class HttpQuestion(NamedTuple):
    method: str
    path: str
    """The path after the API's prefix."""
    query: dict[str, str]
    body: bytes | None

    @property
    def target(self) -> str:
        return PREFIX + self.path + (f"?{urlencode(self.query)}" if self.query else "")

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.body is None else {"Content-Type": "application/json"}


class HttpAnswer(NamedTuple):
    status: int
    body: bytes


class Away(Exception):
    """The gateway cannot be asked now, and may be in a moment. The text says why in a sentence."""


class Source(Protocol):
    def ask(self, question: HttpQuestion, within: float | None = None) -> HttpAnswer:
        """Waits ``within`` seconds for the answer. A source that cannot answer at all ends the command."""

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        """Yields, without end, the summary of each call that was recorded or has moved, as JSON; None where there may be
        something new, which only the history tells."""

    def close(self) -> None: ...
