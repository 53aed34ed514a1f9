"""A client of the API, as somebody else's program is one: over the socket, by the standard library."""

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from support.described import as_described
from support.program import Program
from support.reply import HttpReply
from support.waiting import PATIENCE

PASSWORD = "correct horse battery"


class Client:
    def __init__(self, port: int, key: str | None = None, **headers: str) -> None:
        self.port = port
        self.headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **_named(headers)}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> HttpReply:
        """A body that is bytes goes as it is; any other one as JSON. ``If_Match="…"`` becomes the header
        If-Match."""
        given = _named(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        path = path if path.startswith("/") else f"/api/v1/{path}"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {**self.headers, **given})
            response = connection.getresponse()
            reply = HttpReply(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()
        if path.startswith("/api/"):
            as_described(method, path, reply.status, reply.text)
        return reply

    def get(self, path: str, **headers: str) -> HttpReply:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpReply:
        return self.ask("POST", path, body, **headers)

    def submit(self, path: str, form: dict[str, str], **headers: str) -> HttpReply:
        """As a page sends a form."""
        kind = "application/x-www-form-urlencoded"
        return self.post(path, urlencode(form).encode(), **{"Content_Type": kind, **headers})

    def patch(self, path: str, body: Any, **headers: str) -> HttpReply:
        return self.ask("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> HttpReply:
        return self.ask("DELETE", path, **headers)


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def admin_of(program: Program) -> Client:
    return Client(program.port, program.admin_key)


def call(url: str, body: Any = None, **headers: str) -> HttpReply:
    """As a sender calls a webhook."""
    parts = urlsplit(url)
    target = parts.path + ("?" + parts.query if parts.query else "")
    return Client(parts.port or 0).post(target, {} if body is None else body, **headers)


def made(program: Program, **settings: Any) -> dict[str, Any]:
    """A new webhook."""
    asked = {"name": "Orders", "authentication": {"method": "none"}, **settings}
    return dict(admin_of(program).post("webhooks", asked).json)


def with_level(program: Program, level: str) -> Client:
    return Client(
        program.port, admin_of(program).post("api-keys", {"name": level, "level": level}).json["key"]
    )
