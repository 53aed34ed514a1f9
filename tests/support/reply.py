"""The answer to a request, however it was sent."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HttpReply:
    status: int
    headers: dict[str, str]
    """The headers by their names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a refusal. Refusals are problem documents, each one whole."""
        assert self.headers.get("content-type") == "application/problem+json", (
            f"{self.status} {self.headers} {self.body!r}"
        )
        problem = self.json
        assert problem["status"] == self.status
        assert problem["title"] and problem["detail"] and problem["type"].endswith(problem["code"])
        return str(problem["code"])
