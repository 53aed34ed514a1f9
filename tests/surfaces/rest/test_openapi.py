"""The API's description is true: a machine reads it, tries everything it promises, and finds nothing."""

import os
import re
import sys
import time
from hmac import HMAC
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from postern.surfaces.rest import table
from support import described
from support.characters import know_characters
from support.client import PASSWORD, Client, admin_of, call, made
from support.program import Program, StartProgram, run_command
from support.reply import HttpReply
from support.rest import problem
from support.stored import open_incident, overwrite


@pytest.fixture(scope="module")
def document(served: Program) -> dict[str, Any]:
    found: dict[str, Any] = Client(served.port).get("openapi.json").json
    return found


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]


def test_every_operation_says_who_may_and_what_may_be_refused(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    for name, operation in operations(document):
        assert operation["summary"] and operation["tags"] and operation["operationId"], name
        assert {"422", "503"} <= operation["responses"].keys(), name
        assert ("401" in operation["responses"]) or operation["x-access-level"] == "none", name
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert set(response["content"]) == {"application/problem+json"}, (name, status)


def test_no_two_answers_share_a_name(document: dict[str, Any]) -> None:
    """Two answers of one name would be told apart by their modules' names, and generated clients would be named
    after these."""
    assert [name for name in document["components"]["schemas"] if not name.isidentifier()] == []


# Where there is no engine these are not answered, or are not there: tests/wiring/test_program.py asks for
# them. Only Amazon's servers let a subscription be confirmed: tests/usecases/signatures/test_key_sets.py stands in for them.
OF_AN_ENGINE = {
    *("confirm-subscription", "list-workflows", "list-runs", "answer-invocation", "end-invocation"),
    *("Attempt.detail", "Attempt.runs", "Attempt.workflows"),
}


QUIET = {"newestAfterSeconds": 600}
LEAVES_NO_NOTE = {
    *("test-signature", "ask-for-calls", "answer-call", "enter-listener", "end-listener", "send-again"),
    *("test-channels", "try-conditions"),
}
"""Operations other than GET that write no audit note: they keep nothing, or concern only the one who asks. A
sender that is asked leaves one: tests/usecases/sending_again."""


def test_everything_that_is_described_is_answered_and_noted_and_nothing_else(served: Program) -> None:
    """The client refuses an answer that is not as described; here each operation is asked, each field that may be absent is
    seen, and whatever changes something says in the audit log who did it."""
    api = Telling(served)
    api.checked("GET", "me")
    who = f"teller{time.time_ns()}"
    user = api.checked("POST", "users", {"name": who, "password": PASSWORD, "level": "write"})["id"]
    api.checked("GET", f"users/{user}")
    api.checked("PATCH", f"users/{user}", {"level": "read"})
    api.checked("POST", "sessions", {"name": who, "password": PASSWORD})
    key = api.checked("POST", "api-keys", {"name": "Told", "level": "read"})["id"]
    lists = "users sessions api-keys audit providers providers/github custom-scheme proposals?description=stripe volumes"
    for path in lists.split():
        api.checked("GET", path)
    api.seen |= {"Problem.errors"} if api.post("webhooks", {"name": ""}).json["errors"] else set()

    schedule = {"url": "http://127.0.0.1:1/", "cron": "0 0 1 1 *", "pauseAfterFailures": 1}
    token = {"method": "token", "token": "the first token", "secondToken": "the second one"}
    webhook = api.checked("POST", "webhooks", {"name": "Told", "authentication": token, "schedule": schedule})
    of = f"webhooks/{webhook['id']}"
    api.checked("GET", f"{of}/test-calls")
    api.checked("POST", f"{of}/test-calls", {"changes": {"a": 1}})
    api.checked("POST", f"{of}/try-conditions", {"conditions": [{"of": "a", "is": "there"}]})
    actions = "schedule/run schedule/resume disable enable promote?now=true hold release drop record-events"
    for action in actions.split():
        api.checked("POST", f"{of}/{action}")
    api.checked("PATCH", of, {"schedule": None, "authentication": {"method": "none"}})
    together = {"action": "tag", "tags": ["told"], "webhookIds": [webhook["id"], "wh_absent"]}
    many = api.checked("POST", "webhooks/many", together)
    assert (many["done"], [one["id"] for one in many["reasons"]]) == (1, ["wh_absent"])
    accepted = api.call(webhook, b'{"number": "1001"}')
    for path in (of, f"{of}/sample", f"{of}/readmissible", "webhooks", "invocations", accepted):
        api.checked("GET", path)
    bursts = api.checked(
        "POST", "webhooks", {"name": "Bursts", "authentication": {"method": "none"}, "turns": QUIET}
    )
    waiting = api.call(bursts, b"{}")
    assert api.checked("GET", waiting)["deliveries"][0]["waitsFor"]
    api.checked("POST", f"{waiting}/start-now")
    api.checked("GET", f"{accepted}/preview?fieldOne=number&fieldTwo=a&fieldThree=b&fieldFour=c")
    api.checked("GET", f"{accepted}/request")
    api.checked("POST", f"{accepted}/replay")
    api.checked("GET", f"{accepted}/fixture")
    api.checked("GET", f"{of}/payload-types")
    changed = {"body": '{"number": "1002"}', "values": {"fieldTwo": "by hand"}}
    edited = api.checked("POST", f"{accepted}/edited-replays", changed)["invocationId"]
    assert api.checked("GET", f"invocations/{edited}")["edited"]["changed"]
    comparison = api.checked("GET", f"{accepted}/comparison?to={edited}")
    assert comparison["body"]["items"] and comparison["values"]["items"]
    api.checked("PUT", f"{accepted}/bookmark")
    note = api.checked("POST", f"{accepted}/notes", {"text": "Told"})["id"]
    marked = api.checked("GET", accepted)
    assert marked["bookmark"] and marked["notes"] and marked["editedReplays"]
    assert api.checked("GET", "invocations/count?bookmarked=true")["calls"] == 1
    api.checked("GET", "invocations/failures")
    listener = f"listeners/{api.checked('POST', 'listeners', {'name': 'ada@laptop'})['id']}"
    api.checked("GET", "listeners")
    wanted = {"invocationId": accepted.partition("/")[2]}
    handed = api.checked("POST", f"{listener}/replays", wanted)["id"]
    api.checked("POST", f"{listener}/calls", {})
    api.checked("POST", f"{listener}/calls/{handed}", {"status": 200})
    api.delete(listener)
    replay = f"replays/{api.checked('POST', 'replays', {'filter': {'webhookId': webhook['id']}})['id']}"
    api.checked("POST", f"{replay}/run")
    api.checked("GET", replay)
    api.checked("GET", "replays")
    api.checked("POST", f"replays/{api.checked('POST', 'replays', {'filter': {}})['id']}/cancel")

    notion = {"signature": ["header:X-Notion-Signature"], "handshake": "notion"}
    hmac = {"method": "hmac", "provider": "custom", "scheme": notion}
    hmac |= {"secret": "not known yet", "secondSecret": "nor this"}
    signed = api.checked("POST", "webhooks", {"name": "Signed", "authentication": hmac})
    api.call(signed, b'{"verification_token": "secret_announced"}')
    api.checked("POST", f"webhooks/{signed['id']}/adopt-secret")
    refused = api.call(signed, b"{}", X_Notion_Signature="0" * 64)
    for invocation in (accepted, refused):
        api.checked("GET", f"{invocation}/explanation")
    tested = {"webhookId": signed["id"], "invocationId": refused.partition("/")[2]}
    api.checked("POST", "signature-tests", tested)
    linear = {"method": "hmac", "provider": "linear", "secret": "of a repository"}
    mistaken = api.checked("POST", "webhooks", {"name": "Mistaken", "authentication": linear})
    of_github = "sha256=" + HMAC(b"of a repository", b"{}", "sha256").hexdigest()
    rejected = api.call(mistaken, b"{}", X_Hub_Signature_256=of_github)
    incident = f"incidents/{open_incident(served.data_dir, mistaken['id'], 'signature_missing')}"
    assert len(api.checked("GET", "incidents")["items"]) == 1
    told = api.checked("GET", incident)
    assert [one["action"] for one in told["nextActions"]] == ["fix"]
    assert len(told["samples"]) == 1 and told["samples"][0]["wouldVerifyIf"]
    api.checked("POST", f"{incident}/acknowledge")
    assert not api.checked("POST", "channel-tests")["items"][0]["taken"]
    channel = api.checked("POST", "channels", {"address": "ntfy+http://127.0.0.1:9/orders"})["id"]
    assert channel in [one["id"] for one in api.checked("GET", "channels")["items"]]
    assert api.checked("GET", f"webhooks/{mistaken['id']}/rhythm")["rows"] == []
    fixed = api.checked("POST", f"{rejected}/fix", {"number": 0})
    assert fixed["authentication"]["provider"] == "github"
    elsewhere = {"authentication": {"scheme": {**notion, "signature": ["header:X-Other"]}}}
    api.patch(f"webhooks/{signed['id']}", elsewhere)
    for body in (b'{"n": 2}', b'{"n": 3}'):
        proof = HMAC(b"secret_announced", body, "sha256").hexdigest()
        passing = api.call(signed, body, X_Notion_Signature=proof)
    api.patch(f"webhooks/{signed['id']}", {"authentication": {"scheme": notion}})
    readmissible = f"webhooks/{signed['id']}/readmissible"
    assert len(api.checked("GET", readmissible)["wouldPass"]) == 2
    admitted = api.checked("POST", "readmissions", {"invocationIds": [passing.partition("/")[2]]})
    assert admitted["admitted"] == 1
    assert api.checked("POST", readmissible, {"expected": 1})["admitted"] == 1

    shop = {"method": "hmac", "provider": "shopify", "secret": "a" * 32}
    asked = api.post("webhooks", {"name": "Shop", "authentication": shop}).json["id"]
    api.checked("POST", f"webhooks/{asked}/send-again", {"since": "2h"})
    newer = api.post("webhooks", {"name": "Newer", "authentication": {"method": "none"}}).json["id"]
    overwrite(served.data_dir, newer)
    assert [one["id"] for one in api.checked("GET", "webhooks")["unreadable"]] == [newer]
    api.delete(f"webhooks/{newer}")
    api.delete(f"webhooks/{signed['id']}")
    assert [one["id"] for one in api.checked("GET", "bin")["items"][:1]] == [signed["id"]]
    api.checked("POST", f"bin/{signed['id']}/restore")
    for path in ("settings", "status"):
        api.checked("GET", path)
    for method in ("POST", "DELETE"):
        api.checked(method, "record-events")
    document = api.checked("GET", "configuration")
    document["webhooks"] = [one | {"name": f"{one['name']} again"} for one in document["webhooks"][:1]]
    assert api.checked("POST", "configuration", {"document": document, "dryRun": True})["changes"]

    assert api.checked("POST", "configuration", {"document": document})["changes"]

    person = api.post("sessions", {"name": who, "password": PASSWORD}, Sec_Fetch_Site="same-origin")
    mine = Telling(served, who, Cookie=person.headers["set-cookie"].partition(";")[0])
    changed = {"oldPassword": PASSWORD, "newPassword": "another long password"}
    assert mine.post("me/password", changed, Sec_Fetch_Site="same-origin").status == 204
    (session,) = [one["id"] for one in api.get("sessions").json["items"] if one["user"] == who]
    for path in (
        *(f"sessions/{session}", f"api-keys/{key}", f"channels/{channel}", f"users/{user}"),
        *(f"{accepted}/notes/{note}", f"{accepted}/bookmark", f"{of}/sample", f"{of}/record-events"),
        *(f"webhooks/{signed['id']}", f"bin/{signed['id']}"),
    ):
        assert api.delete(path).status == 204, path
    changing = {one.id for one in table.operations() if one.method != "GET"} - OF_AN_ENGINE
    assert changing - api.noted - mine.noted == LEAVES_NO_NOTE

    asked = {one.id for one in table.operations() if described.answer_types(one)}
    assert asked - api.checked_codes - OF_AN_ENGINE == set()
    absent = {name for name, may_be_absent in described.fields_described() if may_be_absent}
    assert absent - api.seen - OF_AN_ENGINE == set()


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"}


def test_a_method_that_is_not_described_is_refused_and_told_which_are(
    document: dict[str, Any], api: Client
) -> None:
    for path, item in document["paths"].items():
        described_here = {method.upper() for method in item}
        answered = described_here | ({"HEAD"} if "GET" in described_here else set())
        for method in METHODS - answered:
            reply = api.ask(method, re.sub(r"{\w+}", "some_id", path))
            assert reply.status == 405, (method, path)
            assert set(reply.headers["allow"].split(", ")) == answered, (method, path)
            assert method == "HEAD" or problem(reply) == (405, "method_not_allowed"), (method, path)


def test_no_path_hides_another() -> None:
    for path in {one.path for one in table.operations()}:
        asked = re.sub(r"{\w+}", "some_id", path)
        assert next(one.path for one, form in described.PATHS if form.match(asked)) == path


class Telling(Client):
    """Notes which operations were answered, and which fields were in the answers."""

    def __init__(self, served: Program, who: str = "POSTERN_ADMIN_KEY", **headers: str) -> None:
        super().__init__(served.port, None if headers else served.admin_key, **headers)
        self._who, self._admin = who, admin_of(served)
        self.checked_codes: set[str | None] = set()
        self.seen: set[str] = set()
        self.noted: set[str] = set()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> HttpReply:
        found = None if method == "GET" else described.operation_of(method, f"/api/v1/{path}")
        before = self._notes() if found else {}
        reply = super().ask(method, path, body, **headers)
        if found and (new := {id: one for id, one in self._notes().items() if id not in before}):
            who = body["name"] if found.id == "sign-in" else self._who
            assert all(one["actor"] == who and one["action"] and one["subject"] for one in new.values()), new
            assert PASSWORD not in str(new)
            self.noted.add(found.id)
        return reply

    def _notes(self) -> dict[str, Any]:
        return {one["id"]: one for one in self._admin.get("audit?limit=20").json["items"]}

    def checked(self, method: str, path: str, body: Any = None) -> Any:
        reply = self.ask(method, path, body)
        answer = described.as_described(method, f"/api/v1/{path}", reply.status, reply.text)
        self.seen |= set(described.fields_in(answer))
        assert reply.status < 300 and answer is not None, reply.text
        found = described.operation_of(method, f"/api/v1/{path}")
        self.checked_codes.add(found and found.id)
        return reply.json

    def call(self, webhook: dict[str, Any], body: bytes, **headers: str) -> str:
        """The path of its invocation."""
        call(webhook["url"], body, **headers)
        newest = self.get(f"invocations?webhookId={webhook['id']}").json["items"][0]
        return f"invocations/{newest['id']}"


def test_the_page_to_read_it_on_loads_nothing_from_elsewhere(served: Program) -> None:
    page = Client(served.port).get("/docs")
    assert page.status == 200 and "default-src 'self'" in page.headers["content-security-policy"]
    assert "http://" not in page.text and "https://" not in page.text
    assert Client(served.port).get("/docs/start.js").status == 200
    assert Client(served.port).get("/docs/secret.key").status == 404


def test_a_person_reads_it_in_a_browser(served: Program, page: Page) -> None:
    refused = list[str]()
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    page.goto(f"{served.url}/docs")
    page.get_by_text("List webhooks", exact=True).click()
    page.get_by_role("button", name="Try it out").click()
    assert refused == []


HOOKS = """
import gc

import schemathesis

gc.freeze()
gc.set_threshold(50_000, 20, 100)  # as everywhere in the tests: what it has loaded stays, and looking through it was a twentieth

@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path.endswith("/listeners/{listener_id}/calls") and isinstance(case.body, dict):
        seconds = case.body.get("waitSeconds", 4)
        if type(seconds) in (int, float) and 0 < seconds <= 4:
            case.body = case.body | {"waitSeconds": 0.01}
"""
"""Listeners may wait for a call, and none comes."""

OPTIONS = """--max-examples 3 --phases coverage,fuzzing --seed 1 --request-timeout 60 --no-color
    --suppress-health-check all --workers 1"""
"""The examples of the description are among what the first phase sends."""

WITHOUT_A_PROXY = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
"""Else its client looks through all variables for a proxy, twice for each of three thousand requests."""


@pytest.mark.parametrize("half", ["include", "exclude"])
def test_a_machine_that_tries_everything_finds_nothing(
    start_program: StartProgram, tmp_path: Path, half: str
) -> None:
    # Its own program: what it tries may also succeed, and change a password.
    served = start_program(POSTERN_ENGINE="none")
    invocation = call(made(served)["url"], {"tried": True}).json["invocationId"]
    know_characters(tmp_path)
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "schemathesis.toml").write_text(
        f"""
hooks = "hooks"

[parameters]
invocation_id = "{invocation}"

[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422]
positive_data_acceptance.enabled = false  # a name may be reserved, a webhook absent: a schema cannot say so

# It would guess rules from the errors that it gets. An error that names every wrong field has it guess rules that exclude each other.
[phases.fuzzing]
error-feedback.enabled = false

[phases.coverage]
unexpected-methods = []  # each of them is asked above

[[operations]]
include-path = "/api/v1/live"
enabled = false  # it never ends

# Three operations have a webhook's settings. Wrong ones are tried where one is made, right ones where it is changed: with versions
# that never were, none of these was looked at.
[[operations]]
include-path = "/api/v1/webhooks"
include-method = "POST"
generation = {{ mode = "negative" }}

[[operations]]
include-path = "/api/v1/webhooks/{{webhook_id}}"
include-method = "PATCH"
parameters = {{ "header.If-Match" = "*" }}
generation = {{ mode = "positive" }}

[[operations]]
include-path = "/api/v1/signature-tests"
generation = {{ mode = "positive" }}
"""
    )
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/api/v1/openapi.json"]
    command += ["--header", f"Authorization: Bearer {served.admin_key}", *OPTIONS.split()]
    # Each has time enough on a busy machine.
    command += [f"--{half}-path-regex", "/webhooks|/signature-tests"]
    run = run_command(*command, folder=tmp_path, environment=WITHOUT_A_PROXY)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
