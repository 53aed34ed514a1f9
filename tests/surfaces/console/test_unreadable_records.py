"""Whatever bytes stand in the record of a call, every surface shows it, and the other calls beside it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from postern.surfaces.console.routes import VIEWS
from postern.surfaces.rest.table import operations
from support.client import Client, admin_of, call
from support.commands import typed
from support.over_mcp import over_http
from support.program import Program
from support.unreadable import write_anything
from support.waiting import wait_until
from surfaces.console.test_hostile_records import METHODS, NO_PAGE, addresses, done

SEED = 40


@pytest.fixture(scope="module")
def known(program: Program) -> dict[str, list[str]]:
    api = admin_of(program)
    mapping = {"fieldMapping": {"fieldOne": "n", "fieldTwo": "a[0].b"}}
    made = [
        done(api.post("webhooks", {"name": "Orders", "authentication": method, **mapping})).json
        for method in (METHODS[0], METHODS[3])
    ]
    done(api.post("record-events"))
    for one in made:
        for number in range(12):
            call(one["url"], {"n": str(number), "a": {"b": 1}})
    calls = [one["id"] for one in done(api.get("invocations?limit=200")).json["items"]]
    done(api.post(f"invocations/{calls[-1]}/edited-replays", {"body": '{"n":"edited"}'}))
    replay = done(api.post("replays", {"filter": {"code": "accepted"}})).json["id"]
    write_anything(program.data_dir / "postern.db", SEED)
    done(api.post(f"replays/{replay}/run"))
    return {"webhook": [one["id"] for one in made], "invocation": calls, "replay": [replay]}


def test_every_page_shows_them(visitor: Client, known: dict[str, list[str]]) -> None:
    for method, path, _ in VIEWS:
        if method == "GET" and path not in NO_PAGE:
            for address in addresses(path, known):
                reply = visitor.get(address)
                assert reply.status in (200, 303, 404, 409, 422), (address, reply.status)
    assert "is damaged" in "".join(visitor.get(f"/calls/{one}").text for one in known["invocation"])


def test_the_api_answers_about_them(program: Program, known: dict[str, list[str]]) -> None:
    api = admin_of(program)
    for operation in operations():
        for address in addresses(operation.path.replace("_id}", "}"), known):
            if operation.method == "GET" and "{" not in address and not address.endswith("/live"):
                assert api.get(address).status < 500, address
    assert len(api.get("invocations?limit=200").json["items"]) >= 25


async def test_assistants_and_commands_show_them(
    program: Program, known: dict[str, list[str]], tmp_path: Path
) -> None:
    async with over_http(program, program.admin_key) as client:
        listed: Any = await client.call_tool("search_calls", {"limit": 50})
        assert len(json.loads(listed.content[0].text)["items"]) >= 24
        for one in known["invocation"]:
            shown: Any = await client.call_tool("show_call", {"invocationId": one})
            assert "internal_error" not in shown.content[0].text

    def commands() -> None:
        for words in (
            ["list"],
            ["list", "--search", "a"],
            ["count"],
            *(["show", one] for one in known["invocation"]),
        ):
            ran = typed(tmp_path, "history", *words, to=program)
            assert ran.exit_code == 0, (words, ran.output)

    await asyncio.to_thread(commands)


def test_no_loop_stops_at_them(program: Program, known: dict[str, list[str]]) -> None:
    api = admin_of(program)
    url = done(api.get(f"webhooks/{known['webhook'][0]}")).json["url"]
    last = call(url, {"n": "the last"}).json["invocationId"]
    found = wait_until(lambda: api.get("invocations?value=the%20last").json["items"])
    assert [one["id"] for one in found] == [last]
    assert "exception" not in program.output().lower() and "Traceback" not in program.output()
