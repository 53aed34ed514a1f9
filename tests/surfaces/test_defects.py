"""A defect of ours: told as a problem wherever it is met, and logged once with its trace and without what the
caller sent."""

import asyncio
import json
import os
from contextlib import closing
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from support.client import PASSWORD, Client, admin_of
from support.over_mcp import over_http
from support.program import Program, StartProgram
from support.waiting import wait_until

PLANTED = """
import postern.stores.access.api_keys, postern.stores.webhooks.webhooks, postern.usecases.history.live


async def broken(self, *_, **__):
    raise LookupError("planted")


async def broken_stream(self):
    raise LookupError("planted")
    yield


async def broken_for_one(self, secret, was=postern.stores.access.api_keys.ApiKeys.of_secret):
    if secret.endswith("_broken"):
        raise LookupError("planted")
    return await was(self, secret)


postern.stores.webhooks.webhooks.WebhookStore.some = broken
postern.stores.access.api_keys.ApiKeys.of_secret = broken_for_one
postern.usecases.history.live.Stream.events = broken_stream
"""


@pytest.fixture
def program(tmp_path: Path, start_program: StartProgram) -> Program:
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return start_program(
        POSTERN_ENGINE="none", POSTERN_LOG="json", POSTERN_ADMIN_PASSWORD=PASSWORD, PYTHONPATH=path
    )


def test_a_defect_is_reported_as_a_problem_and_logged_once(program: Program) -> None:
    api = admin_of(program)

    def defect(path: str) -> dict[str, Any]:
        """The line of the log, the only new one."""

        def of_the_path() -> list[dict[str, Any]]:
            return [one for one in logged(program) if one.get("path") == path or path in str(one.get("tool"))]

        lines = wait_until(of_the_path)
        assert len(lines) == 1 and lines[0]["level"] == "error", lines
        assert "LookupError: planted" in lines[0]["exception"] and "Traceback" in lines[0]["exception"]
        return dict(lines[0])

    asked = api.get("webhooks?search=what-the-caller-sent")
    assert (asked.status, asked.code) == (500, "internal_error")
    assert defect("/api/v1/webhooks")["method"] == "GET"

    stranger = Client(program.port, Sec_Fetch_Site="same-origin")
    entered = stranger.submit("/sign-in", {"name": "admin", "password": PASSWORD})
    page = stranger.get("/webhooks", Cookie=entered.headers["set-cookie"].partition(";")[0])
    assert (page.status, page.code) == (500, "internal_error")
    defect("/webhooks")

    refused = Client(program.port, "pk_broken").post("/mcp", {})
    assert (refused.status, refused.code) == (500, "internal_error")
    defect("/mcp")
    assert asyncio.run(a_tool(program))["code"] == "internal_error"
    defect("list_webhooks")

    with closing(HTTPConnection("127.0.0.1", program.port, timeout=15)) as connection:
        connection.request("GET", "/api/v1/live", headers={"Authorization": f"Bearer {program.admin_key}"})
        with closing(connection.getresponse()) as response, pytest.raises(IncompleteRead):
            response.read()
    defect("/api/v1/live")

    assert api.get("api-keys").status == 200, "it goes on"
    for secret in ("what-the-caller-sent", "pk_broken", program.admin_key, PASSWORD):
        assert secret not in program.output()


def logged(program: Program) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in program.output().splitlines()
        if line.startswith("{") and '"exception"' in line
    ]


async def a_tool(program: Program) -> dict[str, Any]:
    async with over_http(program, program.admin_key) as client:
        result: Any = await client.call_tool("list_webhooks", {})
        return dict(json.loads(result.content[0].text))


def test_what_a_stranger_posts_as_a_form_is_no_defect(served: Program) -> None:
    many = Client(served.port).post("/sign-in", b"&".join([b"a=1"] * 2001), Content_Type="")
    assert (many.status, many.code) == (413, "payload_too_large")


@pytest.mark.parametrize("name", ["Referer", "HX-Current-URL"])
def test_a_page_that_cannot_be_is_no_defect(served: Program, name: str) -> None:
    sent = {"Origin": served.url, name: "http://[not/a/page"}
    reply = Client(served.port, **sent).submit("/webhooks/wh_1/settings", {})
    assert (reply.status, reply.headers.get("location")) == (303, "/sign-in?ended=unsaved")


def test_of_a_stranger_little_is_read(served: Program) -> None:
    def problem_of(path: str, kind: str, size: int = 17 * 1024) -> tuple[int, str]:
        stranger = Client(served.port, Sec_Fetch_Site="same-origin")
        answer = stranger.post(path, b" " * size, Content_Type=kind)
        return answer.status, answer.code

    form, text = "application/x-www-form-urlencoded", "application/json"
    for path, kind in (("/sign-in", form), ("/theme", form), ("/api/v1/sessions", text)):
        assert problem_of(path, kind) == (413, "payload_too_large"), path
    # Who holds an invocation's response token may send a large answer; who does not is refused before it is
    # read.
    large = problem_of("/api/v1/invocations/inv_1/response", text, 3 * 1024 * 1024)
    assert large == (401, "not_authenticated")
