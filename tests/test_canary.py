"""No secret is told to anybody: planted ones are driven through the whole program, and then searched for in
everything it said and everything it wrote."""

import asyncio
import base64
import hmac
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest

from postern.surfaces.mcp.table import TOOLS
from support.canaries import canary, files_in, forms, leaks
from support.client import admin_of
from support.over_mcp import over_http
from support.plain_http import WITHOUT_TLS
from support.program import Program, StartProgram, clean_environment, run_command
from support.server import Answer, Asked, serving
from support.stored import open_incident
from support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
BODY = b'{"orderNumber": "1001"}'
MOST_OF_A_KIND = 2


class Everything:
    """What the program said, to whomever, and where."""

    def __init__(self, program: Program) -> None:
        self.written: list[tuple[str, bytes]] = []
        self.program = program

    def note(self, where: str, what: str | bytes) -> None:
        self.written.append((where, what.encode() if isinstance(what, str) else what))

    def ask(self, method: str, url: str, *, silently: bool = False, **given: Any) -> httpx2.Response:
        response = httpx2.request(
            method,
            url if "://" in url else self.program.url + url,
            trust_env=False,
            verify=WITHOUT_TLS,
            timeout=20,
            **given,
        )
        if not silently:
            headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
            self.note(f"{method} {url.split('?')[0]}", headers.encode() + b"\n" + response.content)
        return response


@contextmanager
def a_source(key: str) -> Iterator[str]:
    """Where a schedule fetches from; only with the right key does it tell anything."""

    def answer(asked: Asked) -> Answer:
        right = asked.headers["X-Source-Key"] == key
        return 200 if right else 401, "application/json", BODY if right else b"{}"

    with serving(answer) as url:
        yield f"{url}/orders"


@contextmanager
def receivers(heard: list[Asked]) -> Iterator[str]:
    """What incidents are told to. That of Slack refuses, and says back what it was asked."""

    def answer(asked: Asked) -> Answer:
        heard.append(asked)
        return 404 if asked.path.startswith("/slack") else 200, "text/plain", asked.path.encode()

    with serving(answer) as url:
        yield url


def channels(receiver: str) -> dict[str, str]:
    def secret(name: str) -> str:
        return quote(PLANTED[name], safe="")

    own = base64.b64encode(PLANTED["secret of the own one"].encode()).decode()
    addresses = [
        f"slack+{receiver}/slack/{secret('address of slack')}",
        f"teams+{receiver}/teams?sig={secret('address of slack')}",
        f"discord+{receiver}/discord/{secret('address of slack')}",
        f"ntfy+{receiver}/ntfy#{PLANTED['token of ntfy']}",
        f"telegram+{receiver}/telegram/{secret('address of slack')}#{PLANTED['chat of telegram']}",
        f"webhook+{receiver}/own#whsec_{own}",
        "mailto:ops@shop.example",
    ]
    server = receiver.replace("http://", f"smtp://ops%40shop.example:{secret('password of mail')}@")
    return {"POSTERN_TELL": " ".join(addresses), "POSTERN_SMTP_URL": server}


NAMES = """header token, second header token, url token, basic password, signing secret, second signing secret, verify token,
    schedule header, wrong token, admin password, user password, token by file, address of slack, token of ntfy, chat of telegram,
    secret of the own one, password of mail"""
PLANTED = {name: canary(name).replace(" ", "-") for name in re.split(r",\s+", NAMES)}
PLANTED["admin key"] = "pk_" + canary("admin-key")
KEY = {"Authorization": f"Bearer {PLANTED['admin key']}"}


def test_no_secret_comes_out_anywhere(start_program: StartProgram, tmp_path: Path) -> None:
    heard: list[Asked] = []
    with a_source(PLANTED["schedule header"]) as source, receivers(heard) as receiver:
        program = start_program(
            POSTERN_ADMIN_KEY=PLANTED["admin key"],
            POSTERN_ADMIN_PASSWORD=PLANTED["admin password"],
            POSTERN_WORKFLOWS=str(ROOT / "src/postern/workflows/example"),
            POSTERN_OUTBOUND_ALLOWED="127.0.0.1/32",
            POSTERN_LOG="json",
            **channels(receiver),
        )
        program.wait_for_engine()
        everything = Everything(program)
        planted = dict(PLANTED)
        webhooks = made(everything, source)
        planted |= {"api key": a_key(everything, "write"), "session": signed_in(everything)}
        stop = listening(everything, planted["api key"])
        called(everything, webhooks)
        told_of_an_incident(everything, webhooks, heard)
        settled(program, webhooks)
        refused(everything, webhooks)
        asked_over_rest(everything, webhooks)
        asked_over_mcp(everything, planted["api key"], webhooks)
        looked_at(everything, planted["session"], webhooks)
        typed(everything, tmp_path, webhooks)
        stop()
    running = [(f"data/{name}", content) for name, content in files_in(program.data_dir)]
    program.stop()
    at_rest = [(f"data/{name}", content) for name, content in files_in(program.data_dir)]
    everything.note("standard output and error", program.output())
    assert len(everything.written) > 100 and any(name.endswith("postern.db") for name, _ in at_rest)
    found = leaks([*everything.written, *running, *at_rest], planted)
    assert not found, "\n".join(found)


# --- driving ---------------------------------------------------------------------------------------------------------


def made(everything: Everything, source: str) -> dict[str, dict[str, Any]]:
    """Webhooks of every kind that keeps a secret."""

    def one(name: str, authentication: dict[str, Any], **settings: Any) -> dict[str, Any]:
        document = {"name": name, "authentication": authentication, **settings}
        document["fieldMapping"] = {"fieldOne": "orderNumber"}
        answer = everything.ask("POST", "/api/v1/webhooks", json=document, headers=KEY)
        assert answer.status_code == 201, answer.text
        described: dict[str, Any] = answer.json()
        return described

    def token(name: str, **more: str) -> dict[str, Any]:
        return {"method": "token", "token": PLANTED[name], **more}

    schedule = {"url": source, "every": "1h", "headers": {"X-Source-Key": PLANTED["schedule header"]}}
    signing = {"secret": PLANTED["signing secret"], "secondSecret": PLANTED["second signing secret"]}
    return {
        "header": one(
            "Header",
            token("header token", secondToken=PLANTED["second header token"]),
            synchronousResponse={"enabled": True},
        ),
        "url": one("Url", token("url token", placement="url"), cors={"enabled": True, "origins": ["*"]}),
        "basic": one("Basic", token("basic password", placement="basic", username="shop")),
        "github": one("Signed", {"method": "hmac", "provider": "github", **signing}),
        "meta": one(
            "Meta", {"method": "hmac", "provider": "meta", **signing, "verifyToken": PLANTED["verify token"]}
        ),
        "poll": one("Poll", {"method": "token", "token": {"generate": True}}, schedule=schedule),
    }


def a_key(everything: Everything, level: str) -> str:
    """The creation answer is the one place where a key is told."""
    asked = {"name": level, "level": level}
    answer = everything.ask("POST", "/api/v1/api-keys", json=asked, headers=KEY, silently=True)
    return str(answer.json()["key"])


def signed_in(everything: Everything) -> str:
    """The cookie is told to the browser that signs in, and to nobody else."""
    user = {"name": "edgar", "password": PLANTED["user password"], "level": "write"}
    assert everything.ask("POST", "/api/v1/users", json=user, headers=KEY).status_code == 201

    def tried(password: str, silently: bool = False) -> httpx2.Response:
        own, form = {"Sec-Fetch-Site": "same-origin"}, {"name": "admin", "password": PLANTED[password]}
        return everything.ask("POST", "/sign-in", data=form, headers=own, silently=silently)

    tried("wrong token")
    tried("user password")
    return str(tried("admin password", silently=True).cookies["postern_session"])


def listening(everything: Everything, key: str) -> Callable[[], None]:
    """To the live stream, until told to stop."""
    connection = HTTPConnection("127.0.0.1", everything.program.port, timeout=30)
    connection.request("GET", "/api/v1/live", headers={"Authorization": f"Bearer {key}"})
    stream = connection.getresponse()
    assert stream.status == 200
    lines: list[bytes] = []

    def listen() -> None:
        try:
            while line := stream.readline():
                lines.append(line)
        except OSError:
            pass

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()

    def stop() -> None:
        wait_until(
            lambda: sum(line.startswith(b"event: ") for line in list(lines)) > 10,
            what="events in the live stream",
        )
        everything.note("the live stream", b"".join(lines))
        if connection.sock is not None:
            connection.sock.shutdown(2)
        thread.join(5)
        connection.close()

    return stop


def signature(name: str) -> str:
    return "sha256=" + hmac.new(PLANTED[name].encode(), BODY, sha256).hexdigest()


def called(everything: Everything, webhooks: dict[str, dict[str, Any]]) -> None:
    """With every secret where it belongs."""

    def call(
        name: str, headers: dict[str, str], query: str = "", status: int = 200, method: str = "POST"
    ) -> None:
        url = webhooks[name]["url"] + (f"?{query}" if query else "")
        answer = everything.ask(
            method, url, content=BODY, headers={"Content-Type": "application/json", **headers}
        )
        assert answer.status_code == status, (name, answer.status_code, answer.text)

    basic = base64.b64encode(f"shop:{PLANTED['basic password']}".encode()).decode()
    call("header", {"X-Api-Key": PLANTED["header token"]})
    call("header", {"X-Api-Key": PLANTED["second header token"]})
    call(
        "url",
        {"Referer": f"https://shop.example/?token={quote(PLANTED['url token'], safe='')}"},
        urlencode({"token": PLANTED["url token"]}),
    )
    call("basic", {"Authorization": f"Basic {basic}"})
    call("github", {"X-Hub-Signature-256": signature("signing secret")})
    call("github", {"X-Hub-Signature-256": signature("second signing secret")})
    hello = {"hub.mode": "subscribe", "hub.challenge": "12345", "hub.verify_token": PLANTED["verify token"]}
    call("meta", {}, urlencode(hello), method="GET")
    run = f"/api/v1/webhooks/{webhooks['poll']['id']}/schedule/run"
    # It is refused while the schedule fetches by itself.
    wait_until(
        lambda: everything.ask("POST", run, headers=KEY).status_code == 200, what="the source to be fetched"
    )


def told_of_an_incident(
    everything: Everything, webhooks: dict[str, dict[str, Any]], heard: list[Asked]
) -> None:
    """To each channel; what is its own stands in the request, and nobody else's does."""
    open_incident(everything.program.data_dir, webhooks["header"]["id"])
    kinds = {"slack", "teams", "discord", "ntfy", "telegram", "own"}
    wait_until(
        lambda: {re.split("[/?]", one.path)[1] for one in list(heard)} >= kinds,
        what="all channels to be told",
    )
    for one in list(heard):
        body = one.body if "/telegram" not in one.path else one.body.partition(b'"text"')[2]
        everything.note(f"told: {re.split('[/?]', one.path)[1]}", body)


def settled(program: Program, webhooks: dict[str, dict[str, Any]]) -> None:
    """Until the engine has had what was accepted, so that its files are searched with something in them."""

    def started() -> bool:
        items = admin_of(program).get(f"invocations?webhookId={webhooks['header']['id']}").json["items"]
        return bool(items) and all(item["status"] in ("started", "responded") for item in items)

    wait_until(started, what="the engine to start what was accepted")


def refused(everything: Everything, webhooks: dict[str, dict[str, Any]]) -> None:
    """With every secret where it does not belong: on the wrong webhook, in the wrong place, in a field that
    is none."""
    json_type = {"Content-Type": "application/json"}
    for webhook in webhooks.values():
        for name in ("header token", "url token", "basic password", "signing secret", "wrong token"):
            # A secret of one webhook, sent to another in a place where credentials are usual, is a credential
            # there too.
            secret = PLANTED[name]
            headers = {**json_type, "X-Api-Key": secret, "X-Auth-Token": secret}
            everything.ask("POST", webhook["url"], content=BODY, headers=headers)
            if name in ("url token", "wrong token", "basic password"):
                url = f"{webhook['url']}?{urlencode({'token': secret})}"
                headers = {**json_type, "Authorization": f"Bearer {secret}"}
                everything.ask("POST", url, content=BODY, headers=headers)
    secret = PLANTED["header token"]
    own = {"X-Elsewhere": secret, "X-Api-Key": "wrong", "Referer": f"https://x.example/{secret}"}
    url = f"{webhooks['header']['url']}?q={quote(secret)}"
    everything.ask("POST", url, content=BODY, headers={**json_type, **own})
    secret = PLANTED["wrong token"]
    for authentication in (
        {"method": "token", "token": {"value": secret}},
        {"method": "token", "token": [secret]},
        {"method": "token", "token": secret * 40},
        {"method": "token", "token": secret, "headerName": "Host"},
        {"method": "hmac", "provider": "slack", "secret": {"generate": secret}},
        {"method": "none", "secret": secret},
        secret,
    ):
        document = {"name": "x", "authentication": authentication}
        assert everything.ask("POST", "/api/v1/webhooks", json=document, headers=KEY).status_code == 422
    cut = f'{{"token": "{secret}"'.encode()
    everything.ask("POST", "/api/v1/webhooks", content=cut, headers={**KEY, **json_type})
    everything.ask("GET", "/api/v1/webhooks", headers={"Authorization": f"Bearer {secret}"})
    everything.ask("GET", "/api/v1/webhooks", headers={"Cookie": f"postern_session={secret}"})
    tested = {"method": "hmac", "provider": "github", "secret": PLANTED["signing secret"]}
    test = {
        "authentication": tested,
        "call": {"headers": [["X-Hub-Signature-256", "sha256=00"]], "body": BODY.decode()},
    }
    everything.ask("POST", "/api/v1/signature-tests", json=test, headers=KEY)


def one_of_each_kind(everything: Everything) -> list[dict[str, Any]]:
    """One invocation for each webhook and reason."""
    items = admin_of(everything.program).get("invocations?limit=200").json["items"]
    return list({(item["webhookId"], item["code"]): item for item in items}.values())


def asked_over_rest(everything: Everything, webhooks: dict[str, dict[str, Any]]) -> None:
    """Whatever can be read, by the API's own description, of every webhook and of many invocations."""
    document = everything.ask("GET", "/api/v1/openapi.json").json()
    for path in ("/metrics", "/healthz", "/readyz", "/docs", "/problems/credential_mismatch"):
        everything.ask("GET", path)
    everything.ask("GET", "/api/v1/invocations?limit=200", headers=KEY)
    invocations = one_of_each_kind(everything)
    ids = {
        "webhook_id": [one["id"] for one in webhooks.values()],
        "invocation_id": [one["id"] for one in invocations],
    }
    for path, item in document["paths"].items():
        if "get" not in item or path == "/api/v1/live":
            continue
        for name in re.findall(r"{(\w+)}", path) or [""]:
            for one in ids.get(name, [""]):
                everything.ask("GET", path.replace(f"{{{name}}}", one or "none_0"), headers=KEY)
    everything.ask("PATCH", f"/api/v1/webhooks/{ids['webhook_id'][0]}", json={"name": "Renamed"}, headers=KEY)
    promoted = everything.ask(
        "POST", f"/api/v1/webhooks/{ids['webhook_id'][3]}/promote?now=true", headers=KEY
    )
    assert promoted.json()["authentication"]["secondSecretSet"] is False
    everything.ask("GET", "/api/v1/audit?limit=200", headers=KEY)


def asked_over_mcp(everything: Everything, key: str, webhooks: dict[str, dict[str, Any]]) -> None:
    """Every tool that only reads, and one that changes a secret."""
    invocations = one_of_each_kind(everything)
    known = {"webhookId": webhooks["github"]["id"], "name": "github", "description": "GitHub"}

    async def ask() -> None:
        async with over_http(everything.program, key) as client:
            for tool in (await client.list_tools()).tools:
                wanted = tool.input_schema["properties"]
                reads = tool.annotations and tool.annotations.read_only_hint
                if not reads and tool.name != "change_webhook":
                    continue
                for what in wanted.get("what", {"enum": [None]})["enum"]:
                    # Which of its arguments an action takes, the tool knows.
                    action = TOOLS[tool.name].actions[what or ""]
                    taken = {field.alias for field in action.request.model_fields.values()}
                    given = {name: value for name, value in known.items() if name in taken}
                    given |= {"what": what} if what else {}
                    if tool.name == "change_webhook":
                        given["changes"] = {
                            "authentication": {"secret": PLANTED["signing secret"], "secondSecret": None}
                        }
                    by_call = "invocationId" in taken and what != "propose"
                    for invocation in invocations[::3] if by_call else [None]:
                        arguments = {**given, "invocationId": invocation["id"]} if invocation else given
                        result = await client.call_tool(tool.name, arguments)
                        everything.note(f"tool {tool.name}", result.model_dump_json())

    asyncio.run(ask())


def looked_at(everything: Everything, session: str, webhooks: dict[str, dict[str, Any]]) -> None:
    """Every kind of page that a link leads to."""
    cookie = {"Cookie": f"postern_session={session}"}
    waiting, seen, kinds = ["/webhooks"], set[str](), Counter[str]()
    while waiting:
        path = waiting.pop(0)
        kind = re.sub(r"(wh|inv)_[0-9a-f]{32}|=[^&]*", "…", path)
        if kinds[kind] >= (len(webhooks) if kind.startswith("/webhooks/…") else MOST_OF_A_KIND):
            continue
        kinds[kind] += 1
        seen.add(path)
        page = everything.ask("GET", path, headers=cookie)
        if "text/html" not in page.headers.get("content-type", ""):
            continue
        links = re.findall(r'(?:href|hx-get|data-goes)="(/[^"#]*)"', page.text)
        for link in dict.fromkeys(link.replace("&amp;", "&") for link in links):
            if (
                link not in seen
                and link not in waiting
                and not link.startswith(("/static", "/docs", "/live/stream"))
            ):
                waiting.append(link)
    assert any(path.endswith("/settings") for path in seen) and any(
        path.startswith("/calls/inv_") for path in seen
    )


def settings_of(program: Program) -> dict[str, str]:
    return {name: value for name, value in program.environment.items() if name.startswith("POSTERN_")}


def typed(everything: Everything, folder: Path, webhooks: dict[str, dict[str, Any]]) -> None:
    """Commands beside the running program."""
    (folder / "file.txt").write_text(PLANTED["token by file"])
    (folder / "more.yaml").write_text(
        "version: 1\nwebhooks: [{name: By file, authentication: {method: token, token: {file: file.txt}, secondToken: {env: NOT_THERE}}}]"
    )
    (folder / "leak.yaml").write_text(
        "version: 1\nwebhooks: [{name: x, authentication: {method: token, token: "
        + json.dumps(PLANTED["wrong token"])
        + "}}]"
    )
    (folder / "broken.yaml").write_text(f"version: 1\nwebhooks: [{json.dumps(PLANTED['wrong token'])}: : {{")
    webhook = webhooks["github"]["id"]
    (found, *_) = admin_of(everything.program).get(f"invocations?webhookId={webhook}").json["items"]
    typed = f"""webhooks list
        webhooks show {webhook} --json
        history list --json
        history show {found["id"]}
        export
        apply more.yaml
        apply leak.yaml
        apply broken.yaml
        settings
        channels test --json
        channels list
        keys list
        signatures test --webhook {webhook} --invocation {found["id"]}
        webhooks set {webhook} --second-secret file:file.txt"""
    commands = [line.split() for line in typed.splitlines()]
    script = folder / "commands.py"
    script.write_text(COMMANDS_IN_ONE_PROCESS)
    environment = clean_environment(settings_of(everything.program))
    ran = run_command(sys.executable, script, json.dumps(commands), folder=folder, environment=environment)
    assert ran.stdout.count("--- ended with") == len(commands) and "Traceback" not in ran.stderr, (
        ran.stdout + ran.stderr
    )
    everything.note("the command line", ran.stdout + ran.stderr)


# Starting a process for each would take longer than everything else here together.
COMMANDS_IN_ONE_PROCESS = """
import json, sys
from postern.__main__ import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["postern", *command]
    try:
        main()
    except SystemExit as ended:
        print("--- ended with", ended.code, *command[:2])
"""


# --- the search itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", forms("x"))
def test_the_search_finds_a_secret_in_every_form(form: str) -> None:
    secret = canary("planted")
    assert leaks([("a file", b"before " + forms(secret)[form] + b" after")], {"planted": secret})


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"shop:"])
def test_the_search_finds_a_secret_within_something_encoded(before: bytes) -> None:
    secret = canary("planted")
    assert leaks([("a header", base64.b64encode(before + secret.encode() + b"!"))], {"planted": secret})
    assert leaks([("a header", base64.urlsafe_b64encode(before + secret.encode()))], {"planted": secret})


def test_the_search_finds_nothing_where_nothing_is() -> None:
    assert leaks([("a file", b"nothing")], {"planted": canary("planted")}) == []
