"""Where the answers of a command come from: a gateway over the network, the one that serves the data of this machine, or the
same API on the local database."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec


class HttpQuestion(msgspec.Struct):
    method: str
    path: str
    """What follows the API's prefix."""
    query: dict[str, str]
    body: bytes | None


class HttpAnswer(NamedTuple):
    status: int
    body: bytes


class Away(Exception):
    """The gateway cannot be asked now, and may be in a moment. Says why in a sentence."""


class Source(Protocol):
    def ask(self, question: HttpQuestion, within: float | None = None) -> HttpAnswer:
        """``within``: seconds for the answer. Whoever cannot answer at all ends the command."""

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        """Never ends by itself. The summary of a call that was recorded or has moved, as JSON; None: look into the
        history, for there may be something new."""

    def close(self) -> None: ...
