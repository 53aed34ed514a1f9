"""Commands that go to a gateway over the network."""

import json
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference import commands

from postern.surfaces.cli.gateway.source import HttpAnswer
from postern.surfaces.cli.run import CONFLICT, FAILED, NOT_ALLOWED, NOT_FOUND, OK, UNAVAILABLE, USAGE
from postern.wiring.machine import OnThisMachine
from postern.workflows.testing import load_event
from support.client import admin_of, call
from support.commands import typed
from support.program import Program, clean_environment, run_postern
from support.waiting import PATIENCE, free_port, wait_until

NOWHERE = "0" * 32

LOCAL_ONLY = {
    ("serve",): "it is the gateway",
    ("dev",): "it is the gateway",
    ("migrate",): "it works on the database",
    ("copy",): "it works on the database",
    ("mcp",): "a gateway speaks it over HTTP",
    ("prune",): "it works on the database",
    ("backup",): "it works on the database",
    ("restore",): "it works on the database",
    ("settings",): "each tells what it was started with itself",
    ("secrets", "rotate-key"): "it works on the database",
    ("login",): "it says where commands go",
    ("logout",): "it says where commands go",
    ("status",): "it says where commands go",
    ("workflows", "check"): "it reads files of this machine",
    ("workflows", "list"): "without an engine, as in these tests, a gateway knows only files of its machine",
    ("schema",): "it says what a file may hold, and asks nobody",
    ("workflows", "test"): "it runs tests, and asks nobody: test_workflow_tests.py",
    ("listen",): "it goes on until somebody ends it: test_listen.py",
    ("completion",): "it prints a script",
}
"""Commands that the story does not type, and why."""


class Story:
    """Commands that go to a gateway over the network."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.folder, self.program = folder, program
        self.typed: list[list[str]] = []

    def __call__(self, *words: str) -> str:
        ran = typed(self.folder, *words, to=self.program, POSTERN_WORKFLOWS=str(self.folder / "workflows"))
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.output
        if words[-1] == "--json":
            json.loads(ran.stdout or ran.stderr)
        self.typed.append([*words])
        return ran.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("one"), {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off"}) as own:
        yield own


def test_every_command_works_over_the_network(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command is typed, once for people and once for scripts, which get JSON; a new one is asked for at the end."""
    monkeypatch.setenv("SECRET", "a secret that is long enough")
    monkeypatch.setenv("CHANNEL", "ntfy+http://127.0.0.1:9/ops")
    way = Story(tmp_path, program)
    tell(way)
    saved = load_event(way.folder / "events" / "greeting.json")["payload"]
    assert saved == {"number": "1001", "text": "\u001b[31mé漢字"}
    missing = {
        tuple(words)
        for words, _ in commands()
        if not any(one[: len(words)] == words for one in way.typed) and tuple(words) not in LOCAL_ONLY
    }
    assert missing == set()
    as_json = [words for words in way.typed if words[-1] == "--json"]
    missing = {
        tuple(words)
        for words, command in commands()
        if any("--json" in one.opts for one in command.params)
        and not any(one[: len(words)] == words for one in as_json)
    }
    assert missing - LOCAL_ONLY.keys() == set()


NOWHERE_ID = f"wh_{NOWHERE}"
SIGNED = ("--auth", "hmac", "--provider", "github", "--secret", "env:SECRET")


def tell(way: Story) -> None:
    def twice(*words: str) -> str:
        way(*words)
        return way(*words, "--json")

    made = json.loads(
        way("webhooks", "create", "Orders", "--auth", "none", "fieldMapping.fieldOne=number", "--json")
    )
    orders = made["id"]
    way("webhooks", "create", "With a [bold]name[/bold]", "authentication.headerName=X-Key")
    way("webhooks", "create", "Wrong", "payloadLimitBytes=0")
    way("webhooks", "create", "Wrong", "payloadLimitBytes=0", "--json")
    signed = json.loads(way("webhooks", "create", "Signed", *SIGNED, "--json"))["id"]
    for words in (
        ("webhooks", "list"),
        ("webhooks", "show", orders),
        ("webhooks", "try-conditions", orders, 'conditions=[{"of":"number","is":"there"}]'),
        ("webhooks", "list", "--search", "Ord"),
        ("webhooks", "many", "tag", orders, "--tags", "eu,paid"),
        ("webhooks", "many", "move", "--tag", "EU", "--to", "Shops/Europe", "--yes"),
        ("webhooks", "list", "--tag", "eu", "--folder", "shops", "--state", "enabled", "--sort", "last_call"),
        ("webhooks", "list", "--state", "asleep"),
        ("webhooks", "many", "delete", "--tag", "nobody", "--dry-run"),
        ("webhooks", "many", "enable", orders, NOWHERE_ID, "--yes"),
        ("webhooks", "many", "enable"),
        ("webhooks", "many", "paint", "--all", "--yes"),
    ):
        twice(*words)
    for verb in ("disable", "enable", "hold", "record"):
        twice("webhooks", verb, orders)
    way("webhooks", "record", orders, "--off")
    way("webhooks", "record", orders, "--minutes", "0")
    twice("webhooks", "record", "--all", "--minutes", "5")
    # A gateway notices what a command does to its database within a second; this it knows at once.
    admin_of(way.program).post(f"webhooks/{orders}/record-events")
    body = {"number": "1001", "text": "\u001b[31mé漢字"}
    invocation = call(made["url"], body, X_Api_Key="a secret").json["invocationId"]
    way("webhooks", "record", "--all", "--off", "--json")
    for words in (("webhooks", "drop", orders, "--yes"), ("webhooks", "release", orders)):
        twice(*words)
    twice("webhooks", "set", orders, "fieldMapping.fieldTwo=text")
    twice("webhooks", "set", signed, "--second-secret", "env:SECRET")
    way("webhooks", "set", signed, "--second-secret", "none")
    twice("webhooks", "promote", signed, "--now")
    twice("webhooks", "adopt-secret", signed)
    twice("webhooks", "sample", orders)
    twice("send", signed, "--list")
    twice("send", signed, "--event", "nothing.like.it")
    twice("send", "nobody")
    way("workflows", "new", "Greet", "--from-sample", orders, "--print")
    way("workflows", "new", "Greet", "--from-sample", orders)
    twice("workflows", "new", "Greet", "--from-sample", orders)
    way("workflows", "new", "Tested", "--from-sample", orders, "--with-test")
    way("workflows", "new", "Tested2", "--from-sample", orders, "--with-test", "--json")
    way("workflows", "new", "Tested", "--from-sample", orders, "--with-test", "--print")
    twice("workflows", "try", "Greet", "--sample", orders)
    way("workflows", "try", "Nobody", "--sample", orders)
    way("workflows", "try", "Greet", "--sample", signed)
    twice("workflows", "types", orders)
    types = ("--to", str(way.folder / "t"))
    for words in ((), (orders, "--print"), (signed,), (NOWHERE_ID,), (orders, *types)):
        way("workflows", "types", *words)
    (way.folder / "t" / "orders_types.py").write_text("of somebody else's")
    way("workflows", "types", orders, *types)
    way("webhooks", "sample", orders, "--forget")
    way("webhooks", "sample", orders, "--forget", "--json")
    way("workflows", "try", "Greet", "--sample", orders)  # on the newest call
    twice("webhooks", "run", orders)
    twice("webhooks", "resume", orders)

    webhook = ("--webhook", orders)
    call(admin_of(way.program).get(f"webhooks/{signed}").json["url"])
    twice("history", "list")
    for words in (
        ("history", "list", *webhook, "--status=accepted", "--limit=200", "--since=2d", "--until=0s"),
        ("history", "list", "--search", "1001"),
        ("history", "list", "--status", "gone"),
        ("history", "count", *webhook, "--status", "accepted"),
        ("history", "count", "--search", "1001"),
        ("history", "failures", *webhook),
        ("history", "count", "--header", "content-type=application/*"),
        ("history", "list", "--field", "order.number=1001"),
        ("history", "list", "--field", "a..b"),
        ("history", "list", "--since", "yesterday"),
        ("history", "list", "--cursor", "x"),
        ("history", "show", invocation),
        ("history", "show", "nothing/../there"),
        ("history", "show", f"inv_{NOWHERE}"),
        ("history", "code", invocation),
        ("history", "bookmark", invocation),
        ("history", "list", "--bookmarked"),
        ("history", "note", invocation, "Asked the shop."),
        ("history", "note", invocation, " "),
        ("history", "delete-note", invocation, f"note_{NOWHERE}"),
        ("history", "forget-bookmark", invocation),
        ("history", "compare", invocation, f"inv_{NOWHERE}"),
        ("history", "compare", invocation, invocation),
        ("history", "replay-edited", invocation, "--value", "fieldOne=by hand"),
        ("history", "replay-edited", invocation, "--value", "fieldNine=a"),
        ("history", "start-now", invocation),
        ("history", "confirm-subscription", invocation),
        ("history", "preview", invocation, "fieldOne=number", "fieldTwo=text"),
        ("history", "preview", invocation, "fieldOne=a["),
        ("history", "preview", invocation, "fieldNine=a"),
        ("history", "save", invocation, str(way.folder / "events")),
        ("history", "save", invocation, str(way.folder / "events"), "--as", "greeting"),
        ("history", "save", invocation, str(way.folder / "events"), "--as", "a/b"),
        ("history", "save", refused_one(way), str(way.folder / "events")),
        ("history", "save", f"inv_{NOWHERE}", str(way.folder / "events")),
        ("history", "recheck", signed),
        ("signatures", "explain", invocation),
        ("signatures", "explain", refused_one(way)),
        ("signatures", "propose", "stripe payments"),
        ("signatures", "propose", "zzzzz"),
        ("signatures", "propose"),
        ("signatures", "providers"),
        ("signatures", "scheme"),
        ("signatures", "test", "--webhook", signed, "--invocation", refused_one(way)),
        ("signatures", "test", *SIGNED[2:], "--header", "X-Hub-Signature-256: x"),
        ("signatures", "test", "--provider", "nobody", "--secret", "env:SECRET", "--header", "X: x"),
        ("incidents", "list"),
        ("incidents", "show", f"inc_{NOWHERE}"),
        ("incidents", "acknowledge", f"inc_{NOWHERE}"),
        ("incidents", "rhythm", orders),
        ("channels", "add", "--address", "env:CHANNEL", "--name", "Ops"),
        ("channels", "list"),
        ("channels", "test"),
        ("channels", "delete", f"ch_{NOWHERE}"),
        ("send-again", orders, "--since", "2h"),
        ("audit", "--limit", "1"),
        ("audit", "--subject", signed),
    ):
        twice(*words)
    twice("history", "recheck", signed, "--admit")
    twice("replay", invocation)
    way("replay", refused_one(way))
    way("replay", invocation, "--fields", "current")
    plan = json.loads(twice("replays", "plan", *webhook))["id"]
    way("replays", "plan", "--status", "gone")
    twice("replays", "cancel", plan)
    twice("replays", "show", plan)
    way("replays", "show", plan, "--watch")
    twice("replays", "run", plan)
    way("replays", "run", json.loads(way("replays", "plan", *webhook, "--json"))["id"], "--watch")
    twice("replays", "list")
    twice("listeners", "list")
    twice("listeners", "end", "nobody")
    way("replay", invocation, "--listener", "nobody")

    key = json.loads(twice("keys", "create", "Somebody", "--level", "write"))["id"]
    way("keys", "create", "Somebody", "--level", "king")
    twice("keys", "list")
    way("keys", "delete", key)
    twice("keys", "delete", key)
    user = json.loads(way("users", "create", "Maria", "--password", "env:SECRET", "--json"))["id"]
    way("users", "create", "Maria", "--password", "env:SECRET")
    way("users", "create", "Other", "--level", "king", "--password", "env:SECRET")
    twice("users", "list")
    twice("users", "change", user, "--level", "write")
    way("users", "change", user)
    way("users", "delete", user, "--yes")
    twice("users", "delete", user, "--yes")
    twice("sessions", "list")
    twice("sessions", "revoke", f"ses_{NOWHERE}")

    way("export")
    exported = way("export", "--json")
    file = way.folder / "webhooks.yaml"
    file.write_text(exported)
    twice("apply", str(file))
    changed = json.loads(exported)
    changed["webhooks"][0]["name"] = "Renamed"
    for name, variable in (("New", "SECRET"), ("Lost", "NOT_SET")):
        token = {"method": "token", "token": {"env": variable}}
        changed["webhooks"].append({"name": name, "authentication": token})
    file.write_text(json.dumps(changed))
    way("apply", str(file))
    del changed["webhooks"][-1]
    del changed["webhooks"][1]
    file.write_text(json.dumps(changed))
    twice("apply", str(file), "--dry-run", "--prune")
    way("apply", str(file), "--prune")
    way("apply", str(file))
    for wrong in (
        "[]",
        "{}",
        "webhooks: 1",
        "version: 1\nwebhooks: [{name: A, authentication: {method: token, token: x}}]",
        "a: [",
        "1: 2",
    ):
        file.write_text(wrong)
        way("apply", str(file))
    way("webhooks", "delete", orders, "--yes")
    way("webhooks", "delete", orders, "--yes", "--json")
    twice("webhooks", "bin")
    twice("webhooks", "restore", orders)
    way("webhooks", "delete", orders, "--yes")
    twice("webhooks", "delete-for-good", orders, "--yes")
    twice("webhooks", "bin")


def refused_one(way: Story) -> str:
    found: str = admin_of(way.program).get("invocations?status=rejected").json["items"][0]["id"]
    return found


# --- logging in ------------------------------------------------------------------------------------------------------


def test_after_a_login_commands_go_there_until_the_logout(program: Program, tmp_path: Path) -> None:
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_postern(tmp_path, *words, KEY=program.admin_key, **environment)

    assert run("logout").returncode == USAGE
    logged_in = run("login", program.url, "--key", "env:KEY", "--profile", "shop")
    assert (logged_in.returncode, logged_in.stderr) == (OK, "")
    assert f"Commands go to {program.url} now" in logged_in.stdout
    file = tmp_path / "config" / "postern" / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made = json.loads(run("webhooks", "create", "Far", "--auth", "none", "--json").stdout)
    assert admin_of(program).get(f"webhooks/{made['id']}").json["name"] == "Far"
    assert not (tmp_path / "data").exists()
    assert "There is no database" in run("webhooks", "list", "--profile", "local").stderr
    assert "Far" in run("webhooks", "list").stdout
    assert "There is no database" in run("webhooks", "list", POSTERN_PROFILE="local").stderr
    status = json.loads(run("status", "--json").stdout)
    assert (status["profile"], status["url"], status["level"]) == ("shop", program.url, "admin")
    assert program.admin_key not in run("status").stdout
    nobody = run("webhooks", "list", "--profile", "other")
    assert (nobody.returncode, "there is shop, local" in nobody.stderr) == (USAGE, True)
    for words in (("prune",), ("secrets", "rotate-key"), ("mcp",)):
        refused = run(*words)
        assert refused.returncode == USAGE and f"commands go to {program.url} now" in refused.stderr
    file.chmod(0o644)
    assert f"chmod 600 {file}" in run("webhooks", "list").stderr
    assert run("logout").stdout == "Profile shop is forgotten. Commands go to the local database now.\n"
    assert program.admin_key not in file.read_text()
    assert "There is no database" in run("webhooks", "list").stderr
    file.write_text("{")
    broken = run("webhooks", "list")
    assert (broken.returncode, "Traceback" in broken.stderr) == (USAGE, False)


def test_a_login_that_fails_keeps_nothing_and_says_why(program: Program, tmp_path: Path) -> None:
    def login(url: str, key: str = "pk_wrong", **environment: str) -> tuple[int, str]:
        ran = run_postern(tmp_path, "login", url, "--key", "env:KEY", KEY=key, **environment)
        assert not (tmp_path / "config").exists()
        return ran.returncode, ran.stderr

    code, why = login(program.url)
    assert (code, "does not know this API key" in why) == (NOT_ALLOWED, True)
    code, why = login(f"http://127.0.0.1:{free_port()}")
    assert (code, "Connection refused" in why) == (UNAVAILABLE, True)
    proxy = f"http://127.0.0.1:{free_port()}"
    code, why = login(program.url, http_proxy=proxy)
    assert (code, "Connection refused" in why) == (UNAVAILABLE, True)
    assert login(program.url, http_proxy=proxy, no_proxy="127.0.0.1")[0] == NOT_ALLOWED
    code, why = login(program.url.replace("http", "https"), SSL_CERT_FILE=str(tmp_path / "none.pem"))
    assert (code, "certificates to trust cannot be read" in why) == (USAGE, True)
    code, why = login("http://no-such-host.invalid")
    assert (code, "cannot be reached: " in why, why.count("\n")) == (UNAVAILABLE, True, 2)
    code, why = login(f"{program.url}/console")
    assert (code, why.count("\n")) == (FAILED, 1)
    assert login("ftp://x")[0] == login("https://a b")[0] == login("https://u:p@x")[0] == USAGE
    assert login(program.url, key="pk_with\nline")[0] == USAGE
    assert login(program.url, key="")[0] == USAGE


def test_a_key_says_what_it_may_and_a_deleted_one_nothing(program: Program, tmp_path: Path) -> None:
    reader = admin_of(program).post("api-keys", {"name": "reader", "level": "read"}).json

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_postern(tmp_path, *words, POSTERN_URL=program.url, POSTERN_API_KEY=reader["key"])

    assert run("webhooks", "list").returncode == OK
    refused = run("webhooks", "create", "No", "--json")
    assert (refused.returncode, json.loads(refused.stderr)["code"]) == (NOT_ALLOWED, "access_denied")
    assert run("webhooks", "show", "wh_none").returncode == NOT_FOUND
    # no webhook's id, but an operation's path
    for words in (("show", "many"), ("delete", "many", "--yes")):
        assert run("webhooks", *words).returncode == NOT_FOUND
    assert run("webhooks", "set", "many", "name=A").returncode == NOT_FOUND
    admin_of(program).delete(f"api-keys/{reader['id']}")
    gone = run("webhooks", "list")
    assert (gone.returncode, "POSTERN_API_KEY" in gone.stderr) == (NOT_ALLOWED, True)
    alone = run_postern(tmp_path, "webhooks", "list", POSTERN_URL=program.url)
    assert (alone.returncode, "set POSTERN_API_KEY" in alone.stderr) == (USAGE, True)


@pytest.mark.parametrize(
    ("sent", "status", "started"),
    [
        (signal.SIGINT, 130, []),
        (signal.SIGTERM, -signal.SIGTERM, ["sh", "-c", 'trap "" INT; exec "$0" "$@"']),
    ],
)
def test_an_interruption_is_one_line(
    sent: signal.Signals, status: int, started: list[str], tmp_path: Path
) -> None:
    """The command waits for a gateway which does not answer. The other signals: `tests/wiring/test_backup.py`."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        waiting = subprocess.Popen(
            [*started, sys.executable, "-m", "postern", "webhooks", "list"],
            env=clean_environment({"POSTERN_URL": url, "POSTERN_API_KEY": "pk_x", "HOME": str(tmp_path)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(PATIENCE)
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(65536)
            # Of a signal that comes just before Python begins to wait it hears after it has waited.
            wait_until(lambda: Path(f"/proc/{waiting.pid}/stat").read_text().split()[2] == "S")
            waiting.send_signal(sent)
            printed = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, printed) == (status, ("", "Interrupted.\n"))


@pytest.mark.parametrize(
    ("shell", "environment", "found"),
    [
        ("bash", {"COMP_WORDS": "postern webh", "COMP_CWORD": "1"}, "webhooks"),
        ("bash", {"COMP_WORDS": "postern webhooks en", "COMP_CWORD": "2"}, "enable"),
        ("bash", {"COMP_WORDS": "postern webhooks list --state ne", "COMP_CWORD": "4"}, "never_called"),
        ("bash", {"COMP_WORDS": "postern send sh", "COMP_CWORD": "2"}, "shopify"),
        ("zsh", {"COMP_WORDS": "postern webh", "COMP_CWORD": "1"}, "webhooks"),
        ("fish", {"COMP_WORDS": "postern webh", "COMP_CWORD": "webh"}, "webhooks"),
    ],
)
def test_tab_completes_commands(shell: str, environment: dict[str, str], found: str, tmp_path: Path) -> None:
    script = run_postern(tmp_path, "completion", shell)
    assert (script.returncode, "_POSTERN_COMPLETE" in script.stdout) == (OK, True)
    asked = run_postern(tmp_path, _POSTERN_COMPLETE=f"{shell}_complete", **environment)
    assert found in asked.stdout
    assert run_postern(tmp_path, "completion", "csh").returncode == USAGE


def test_what_a_newer_gateway_says_besides_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The types of settings take nothing unknown, so that a stored webhook is never read wrongly. Here it is shown."""
    made = json.loads(typed(tmp_path, "webhooks", "create", "Orders", "--auth", "none", "--json").stdout)
    made["cors"]["newer"] = {"a": [1]}
    made["newest"] = 1
    page = json.dumps({"items": [made, made], "nextCursor": None, "total": 2, "newer": 1}).encode()
    monkeypatch.setattr(OnThisMachine, "ask", lambda *_: HttpAnswer(200, page))
    shown = typed(tmp_path, "webhooks", "list", "--json")
    assert (shown.exit_code, len(json.loads(shown.stdout)["items"])) == (OK, 2)
    monkeypatch.setattr(OnThisMachine, "ask", lambda *_: HttpAnswer(200, b'{"items": 1}'))
    other = typed(tmp_path, "webhooks", "list")
    assert (other.exit_code, other.stderr.count("\n")) == (FAILED, 1)
    assert "has done" not in other.stderr
    conflict = b'{"detail": "It was changed meanwhile.", "code": "version_conflict"}'
    monkeypatch.setattr(OnThisMachine, "ask", lambda *_: HttpAnswer(412, conflict))
    assert typed(tmp_path, "webhooks", "list").exit_code == CONFLICT
    monkeypatch.setattr(OnThisMachine, "ask", lambda *_: HttpAnswer(200, b'{"items": 1}'))
    changed = typed(tmp_path, "webhooks", "create", "Once")  # whoever reads that it failed would do it again
    assert (changed.exit_code, "It has done what was asked" in changed.stderr) == (FAILED, True)
