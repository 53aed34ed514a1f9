"""Commands beside a running program, on the same data folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from beds.client import Client, admin_of
from beds.commands import typed
from beds.program import Program, run_postern
from beds.waiting import wait_until
from postern.surfaces.cli.run import CONFLICT, FAILED, NOT_FOUND, USAGE

NOWHERE = "0" * 32


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("commands"), {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off"})
    try:
        program.wait_until_ready()
        yield program
        program.stop()
    finally:
        program.kill()


@pytest.fixture
def folder(program: Program) -> Path:
    return program.data_dir.parent


def said(folder: Path, *words: str) -> Any:
    ran = typed(folder, *words, "--json")
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def refused(folder: Path, *words: str) -> int:
    ran = typed(folder, *words)
    assert "Traceback" not in ran.output and (ran.exception is None or isinstance(ran.exception, SystemExit)), ran.output
    return ran.exit_code


@pytest.fixture
def call(program: Program) -> tuple[dict[str, Any], str]:
    """A webhook of its own, and a recorded call to it."""
    document = {"name": "Orders", "authentication": {"method": "none"}, "fieldMapping": {"fieldOne": "number"}}
    webhook = admin_of(program).post("webhooks", document).json
    body = {"number": "1001", "items": [{"sku": "[red]A-1"}]}
    heard = httpx2.post(webhook["url"], json=body, headers={"X-Api-Key": "a secret"}, trust_env=False)
    return webhook, heard.json()["invocationId"]


def test_a_url_that_only_this_machine_can_reach_says_so(program: Program, folder: Path) -> None:
    wanted = "Only this machine can reach this address."
    assert wanted in program.output()
    assert wanted in typed(folder, "webhooks", "create", "Near").output
    public = run_postern(folder, "webhooks", "create", "Far", POSTERN_BASE_URL="https://hooks.example.com")
    assert "https://hooks.example.com/webhook/" in public.stdout and wanted not in public.stdout


def test_users_are_made_changed_and_deleted_and_their_sessions_ended(program: Program, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a password for maria\n")
    maria = said(folder, "users", "create", "Maria", "--level", "write", "--password", f"file:{file}")
    assert (maria["name"], maria["level"]) == ("maria", "write")
    assert refused(folder, "users", "create", "maria", "--password", f"file:{file}") == CONFLICT
    assert refused(folder, "users", "create", "other", "--level", "king", "--password", f"file:{file}") == USAGE
    assert refused(folder, "users", "create", "other") == USAGE  # no terminal to ask at
    signed_in = Client(program.port).post("sessions", {"name": "maria", "password": "a password for maria"})
    assert signed_in.status == 201
    (session,) = [one for one in said(folder, "sessions", "list")["items"] if one["user"] == "maria"]
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    assert Client(program.port, Cookie=cookie).get("me").status == 200
    said(folder, "sessions", "revoke", session["id"])
    assert Client(program.port, Cookie=cookie).get("me").status == 401
    assert refused(folder, "sessions", "revoke", session["id"]) == NOT_FOUND

    file.write_text("another password for maria")
    assert said(folder, "users", "change", maria["id"], "--level", "read", "--password", f"file:{file}")["level"] == "read"
    assert refused(folder, "users", "change", maria["id"]) == USAGE
    assert Client(program.port).post("sessions", {"name": "maria", "password": "a password for maria"}).status == 401
    assert Client(program.port).post("sessions", {"name": "maria", "password": "another password for maria"}).status == 201
    assert {one["name"] for one in said(folder, "users", "list")["items"]} == {"admin", "maria"}

    did = [one["action"] for one in said(folder, "audit", "--subject", maria["id"])["items"]]
    assert did == ["user changed", "user created"]
    shown = typed(folder, "audit", "--subject", maria["id"]).stdout
    assert 'level: "write" → "read"' in shown and "password" in shown and "for maria" not in shown
    assert typed(folder, "users", "delete", maria["id"], "--yes").stdout == "Deleted.\n"
    assert refused(folder, "users", "delete", maria["id"], "--yes") == NOT_FOUND
    (admin,) = said(folder, "users", "list")["items"]
    assert refused(folder, "users", "delete", admin["id"], "--yes") == CONFLICT
    assert refused(folder, "users", "change", admin["id"], "--level", "read") == CONFLICT


def test_a_recorded_call_as_curl_and_what_paths_find_in_it(folder: Path, call: tuple[dict[str, Any], str]) -> None:
    webhook, invocation = call
    command = typed(folder, "history", "curl", invocation).stdout
    assert command.startswith("curl -X POST") and webhook["url"].rpartition("/")[2] in command
    assert command.rstrip("\n") == said(folder, "history", "curl", invocation)["curl"]
    found = said(folder, "history", "preview", invocation, "fieldOne=number", "fieldTwo=items[0].sku", "fieldThree=nothing.there")
    assert found == {"fieldOne": "1001", "fieldTwo": "[red]A-1", "fieldThree": None}
    assert "[red]A-1" in typed(folder, "history", "preview", invocation, "fieldTwo=items[0].sku").stdout
    assert refused(folder, "history", "preview", invocation, "fieldFive=number") == USAGE
    assert refused(folder, "history", "preview", invocation, "fieldOne=a[") == USAGE
    for command in (("history", "curl"), ("history", "preview"), ("signatures", "explain")):
        assert refused(folder, *command, f"inv_{NOWHERE}", *(["fieldOne=number"] if "preview" in command else [])) == NOT_FOUND


def test_rest_offers_the_same_preview_and_the_beginning_of_a_workflow(program: Program, call: tuple[dict[str, Any], str]) -> None:
    webhook, invocation = call
    api = admin_of(program)
    assert api.get(f"invocations/{invocation}/preview?fieldOne=number&fieldFour=x").json == {"fieldOne": "1001", "fieldFour": None}
    wrong = api.get(f"invocations/{invocation}/preview?fieldOne=a%5B")
    assert (wrong.status, wrong.json["errors"][0]["field"]) == (422, "fieldMapping.fieldOne")
    assert api.get(f"invocations/inv_{NOWHERE}/preview?fieldOne=number").status == 404
    assert api.get(f"webhooks/{webhook['id']}/new-workflow?name=orders").status == 409
    api.post(f"webhooks/{webhook['id']}/record-events")
    assert api.post(f"invocations/{invocation}/replay").status == 202
    begun = api.get(f"webhooks/{webhook['id']}/new-workflow?name=orders")
    assert begun.status == 200 and begun.headers["content-type"].startswith("text/x-python")
    assert webhook["id"] in begun.text and compile(begun.text, "orders.py", "exec")
    assert api.get(f"webhooks/{webhook['id']}/new-workflow").status == 422


def test_many_are_replayed_with_progress_and_a_plan_can_be_cancelled(
    program: Program, folder: Path, call: tuple[dict[str, Any], str]
) -> None:
    webhook, _ = call
    for _ in range(24):
        assert httpx2.post(webhook["url"], json={"number": "1"}, trust_env=False).status_code == 200
    plan = said(folder, "replays", "plan", "--webhook", webhook["id"])
    assert (plan["count"], plan["state"]) == (25, "planned")
    ran = typed(folder, "replays", "run", plan["id"], "--watch")
    assert ran.exit_code == 0 and ran.stdout == "completed: 25 of 25 calls\n", ran.output
    assert ran.stderr.splitlines()[-1] == "25 of 25"
    assert refused(folder, "replays", "run", plan["id"]) == CONFLICT
    assert said(folder, "replays", "show", plan["id"])["done"] == 25
    found = said(folder, "history", "list", "--webhook", webhook["id"])["items"]
    wait_until(lambda: all(len(said(folder, "history", "show", one["id"])["deliveries"]) == 2 for one in found[:2]))

    other = said(folder, "replays", "plan", "--webhook", webhook["id"])
    assert said(folder, "replays", "cancel", other["id"])["state"] == "cancelled"
    assert refused(folder, "replays", "cancel", other["id"]) == CONFLICT
    assert refused(folder, "replays", "show", other["id"], "--watch") == FAILED
    assert refused(folder, "replays", "show", f"rpl_{NOWHERE}") == NOT_FOUND
    assert refused(folder, "replays", "plan", "--status", "lost") == USAGE
    assert [one["state"] for one in said(folder, "replays", "list")["items"]] == ["cancelled", "completed"]


def test_why_a_call_was_refused_and_who_may_have_sent_it(program: Program, folder: Path) -> None:
    authentication = {"method": "hmac", "provider": "stripe", "secret": "whsec_not_the_right_one"}
    webhook = admin_of(program).post("webhooks", {"name": "Payments", "authentication": authentication}).json
    headers = {"X-Hub-Signature-256": "sha256=" + "0" * 64, "X-GitHub-Event": "push", "X-GitHub-Delivery": "1"}
    assert httpx2.post(webhook["url"], json={}, headers=headers, trust_env=False).status_code == 401
    (refusal,) = said(folder, "history", "list", "--webhook", webhook["id"])["items"]
    told = said(folder, "signatures", "explain", refusal["id"])
    assert told["code"] == refusal["code"] and "github" in told["resembles"]
    shown = typed(folder, "signatures", "explain", refusal["id"])
    assert shown.exit_code == 0 and shown.stdout.startswith(f"{refusal['code']}: ") and "github" in shown.stdout
    assert said(folder, "signatures", "propose", "--invocation", refusal["id"])["items"][0]["name"] == "github"
    assert said(folder, "signatures", "propose", "stripe payments")["items"][0]["name"] == "stripe"
    assert "None that is known" in typed(folder, "signatures", "propose", "zzzzz").stdout
    assert refused(folder, "signatures", "propose") == USAGE


def test_the_commands_are_there_in_the_real_program(folder: Path) -> None:
    """One process for one of them: the others differ in nothing that a process would show."""
    ran = run_postern(folder, "audit", "--limit", "1")
    assert ran.returncode == 0 and len(ran.stdout.splitlines()) == 2, ran.stderr
