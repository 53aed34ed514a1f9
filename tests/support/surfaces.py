"""The four surfaces, each as the one who uses it meets it: one set of verbs, so that one story can be played
through each.

A verb gives what the surface answers, or raises ``SurfaceProblem`` with the surface's own way of refusing. ``problem``
is what a problem looks like there: REST and MCP name code and fields, a command ends with a code and names
fields, a page has a status.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import httpx2

from postern.core.problems import PROBLEMS
from postern.surfaces.cli.run import CONFLICT, FAILED, NOT_FOUND, USAGE
from support.client import Client, HttpReply, admin_of, with_level
from support.commands import typed
from support.house import House, a_house
from support.over_mcp import over_http
from support.plain_http import WITHOUT_TLS, post
from support.program import Program
from support.waiting import PATIENCE

Patch = dict[str, Any]


class SurfaceProblem(Exception):
    """A refusal, as the surface gives it."""

    def __init__(self, what: Any) -> None:
        super().__init__(repr(what))
        self.what = what


class Surface(Protocol):
    """``as_reader`` is the same surface for somebody who may only read, or None where there are no levels."""

    name: str
    knows_versions: bool
    as_reader: "Surface | None"

    def problem(self, code: str, *fields: str) -> Any: ...
    def call(self, url: str, body: bytes) -> int: ...
    def create(self, name: str) -> dict[str, Any]: ...
    def show(self, webhook: str) -> dict[str, Any]: ...
    def change(self, webhook: str, patch: Patch, version: int | None = None) -> None: ...
    def switch(self, webhook: str, enabled: bool) -> None: ...
    def delete(self, webhook: str) -> None: ...
    def history(self, webhook: str) -> list[str]:
        """The ids of its invocations, the newest first."""
        ...

    def replay(self, invocation: str) -> None: ...


def call_served(url: str, body: bytes) -> int:
    return post(url, content=body, headers={"Content-Type": "application/json"}).status_code


class Rest:
    name = "rest"
    knows_versions = True

    def __init__(self, program: Program, client: Client | None = None) -> None:
        self._client = client or admin_of(program)
        self.as_reader: Surface | None = (
            Rest(program, with_level(program, "read")) if client is None else None
        )

    def problem(self, code: str, *fields: str) -> Any:
        return PROBLEMS[code].status, code, set(fields)

    call = staticmethod(call_served)

    def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        reply: HttpReply = self._client.ask(method, path, body, **headers)
        if reply.status >= 400:
            raise SurfaceProblem(
                (reply.status, reply.json["code"], {error["field"] for error in reply.json.get("errors", [])})
            )
        return reply.json if reply.text else None

    def create(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = self._ask(
            "POST", "webhooks", {"name": name, "authentication": {"method": "none"}}
        )
        return made

    def show(self, webhook: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", f"webhooks/{webhook}")
        return found

    def change(self, webhook: str, patch: Patch, version: int | None = None) -> None:
        self._ask(
            "PATCH", f"webhooks/{webhook}", patch, **({} if version is None else {"If_Match": f'"{version}"'})
        )

    def switch(self, webhook: str, enabled: bool) -> None:
        self._ask("POST", f"webhooks/{webhook}/{'enable' if enabled else 'disable'}")

    def delete(self, webhook: str) -> None:
        self._ask("DELETE", f"webhooks/{webhook}")

    def history(self, webhook: str) -> list[str]:
        return [item["id"] for item in self._ask("GET", f"invocations?webhookId={webhook}")["items"]]

    def replay(self, invocation: str) -> None:
        self._ask("POST", f"invocations/{invocation}/replay")


class Mcp:
    name = "mcp"
    knows_versions = True

    def __init__(self, program: Program, key: str | None = None) -> None:
        self._program, self._key = program, key or program.admin_key
        reader = (
            admin_of(program).post("api-keys", {"name": "reader", "level": "read"}).json["key"]
            if key is None
            else ""
        )
        self.as_reader: Surface | None = Mcp(program, reader) if key is None else None

    def problem(self, code: str, *fields: str) -> Any:
        return code, set(fields)

    call = staticmethod(call_served)

    def _ask(self, tool: str, **arguments: Any) -> Any:
        async def asked() -> Any:
            async with over_http(self._program, self._key, timeout=PATIENCE) as client:
                return await client.call_tool(tool, arguments)

        result = asyncio.run(asked())
        content = json.loads(result.content[0].text)
        if result.is_error:
            raise SurfaceProblem((content["code"], {error["field"] for error in content.get("errors", [])}))
        return content

    def create(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = self._ask("create_webhook", name=name, authentication={"method": "none"})
        return made

    def show(self, webhook: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("show_webhook", webhookId=webhook)
        return found

    def change(self, webhook: str, patch: Patch, version: int | None = None) -> None:
        self._ask("change_webhook", webhookId=webhook, changes=patch, version=version)

    def switch(self, webhook: str, enabled: bool) -> None:
        self._ask("set_webhook", action="enable" if enabled else "disable", webhookId=webhook)

    def delete(self, webhook: str) -> None:
        self._ask("set_webhook", action="delete", webhookId=webhook)

    def history(self, webhook: str) -> list[str]:
        return [item["id"] for item in self._ask("search_calls", webhookId=webhook)["items"]]

    def replay(self, invocation: str) -> None:
        self._ask("replay_call", action="again", invocationId=invocation)


class Cli:
    """No program runs beside the commands: each call is taken in by a gateway of its own on the same data
    folder."""

    name = "cli"
    knows_versions = False
    as_reader: Surface | None = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def problem(self, code: str, *fields: str) -> Any:
        return {404: NOT_FOUND, 409: CONFLICT, 422: USAGE}.get(PROBLEMS[code].status, FAILED), set(fields)

    def call(self, url: str, body: bytes) -> int:
        async def called() -> int:
            async with a_house(self._folder, POSTERN_BASE_URL="http://127.0.0.1:8080") as house:
                return (await house.call(SimpleNamespace(url=url), body)).status

        return asyncio.run(called())

    def _run(self, *arguments: str) -> Any:
        ran = typed(self._folder, *arguments, "--json")
        if ran.exit_code:
            raise SurfaceProblem(
                (ran.exit_code, {error["field"] for error in json.loads(ran.stderr)["errors"]})
            )
        return json.loads(ran.stdout)

    def create(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = self._run("webhooks", "create", name, "--auth", "none")
        return made

    def show(self, webhook: str) -> dict[str, Any]:
        found: dict[str, Any] = self._run("webhooks", "show", webhook)
        return found

    def change(self, webhook: str, patch: Patch, version: int | None = None) -> None:
        self._run(
            "webhooks", "set", webhook, *(f"{name}={json.dumps(value)}" for name, value in patch.items())
        )

    def switch(self, webhook: str, enabled: bool) -> None:
        self._run("webhooks", "enable" if enabled else "disable", webhook)

    def delete(self, webhook: str) -> None:
        self._run("webhooks", "delete", webhook)

    def history(self, webhook: str) -> list[str]:
        return [item["id"] for item in self._run("history", "list", "--webhook", webhook)["items"]]

    def replay(self, invocation: str) -> None:
        self._run("replay", invocation)


class Console:
    """Forms as a browser sends them. What a page says is read from its address and its links."""

    name = "console"
    knows_versions = True

    def __init__(self, program: Program, name: str = "admin", password: str = "") -> None:
        self._program = program
        self._headers = {"Sec-Fetch-Site": "same-origin"}
        password = password or program.environment["POSTERN_ADMIN_PASSWORD"]
        signed_in = self._ask("POST", "/sign-in", {"name": name, "password": password})
        assert signed_in.status_code == 303, signed_in.text
        self._headers["Cookie"] = f"postern_session={signed_in.cookies['postern_session']}"
        self.as_reader: Surface | None = None
        if name == "admin":
            reader = {"name": "rita", "password": "a password for reading", "level": "read"}
            assert admin_of(program).post("users", reader).status == 201
            self.as_reader = Console(program, reader["name"], reader["password"])

    def problem(self, code: str, *fields: str) -> Any:
        return PROBLEMS[code].status

    call = staticmethod(call_served)

    def _ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> httpx2.Response:
        return httpx2.request(
            method,
            self._program.url + path,
            data=fields,
            headers=self._headers,
            trust_env=False,
            verify=WITHOUT_TLS,
            timeout=PATIENCE,
        )

    def _page(self, path: str) -> str:
        page = self._ask("GET", path)
        if page.status_code >= 400:
            raise SurfaceProblem(page.status_code)
        assert page.status_code == 200, (path, page.status_code)
        return page.text

    def _send(self, path: str, **fields: str) -> str:
        """Where the form led."""
        sent = self._ask("POST", path, fields)
        if sent.status_code >= 400:
            raise SurfaceProblem(sent.status_code)
        assert sent.status_code == 303, (path, sent.status_code)
        return str(sent.headers["location"])

    def create(self, name: str) -> dict[str, Any]:
        found = re.search(r"wh_[0-9a-f]{32}", self._send("/webhooks/new/other", name=name, method="none"))
        assert found is not None
        return self.show(found[0])

    def show(self, webhook: str) -> dict[str, Any]:
        url = re.search(rf"{re.escape(self._program.url)}/webhook/\w+", self._page(f"/webhooks/{webhook}"))
        version = re.search(r'name="version" value="(\d+)"', self._page(f"/webhooks/{webhook}/mapping"))
        assert url is not None and version is not None
        return {"id": webhook, "url": url[0], "version": int(version[1])}

    def change(self, webhook: str, patch: Patch, version: int | None = None) -> None:
        seen = {} if version is None else {"version": str(version)}
        if "fieldMapping" in patch:
            self._send(f"/webhooks/{webhook}/mapping", **patch["fieldMapping"], **seen)
        else:
            self._send(f"/webhooks/{webhook}/authentication", **patch["authentication"], **seen)

    def switch(self, webhook: str, enabled: bool) -> None:
        self._send(f"/webhooks/{webhook}/{'enable' if enabled else 'disable'}")

    def delete(self, webhook: str) -> None:
        page = self._page(f"/webhooks/{webhook}/confirm/delete")
        name = re.search(r'data-repeats="([^"]*)"', page)
        assert name is not None
        self._send(f"/webhooks/{webhook}/delete", typed=name[1])

    def history(self, webhook: str) -> list[str]:
        return list(
            dict.fromkeys(re.findall(r"/calls/(inv_[0-9a-f]{32})", self._page(f"/calls?webhook={webhook}")))
        )

    def replay(self, invocation: str) -> None:
        self._send(f"/calls/{invocation}/replay")


async def in_a_house(folder: Path, look: Callable[[House], Awaitable[Any]]) -> Any:
    async with a_house(folder) as house:
        return await look(house)
