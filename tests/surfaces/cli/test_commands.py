"""Commands beside a running program, on the same data folder."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from functools import reduce
from io import StringIO
from pathlib import Path
from shutil import copytree
from typing import Any, get_args

import pytest
from pydantic.alias_generators import to_camel

from postern import __version__
from postern.core.webhooks.settings import secret_places
from postern.stores.sql import schema
from postern.surfaces.cli.run import CONFLICT, DIFFERS, FAILED, NOT_FOUND, OK, UNAVAILABLE, USAGE, end
from postern.surfaces.cli.terminal import table
from postern.surfaces.cli.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from support.client import Client, call, made
from support.commands import typed
from support.fresh import fresh_data
from support.program import Program, StartProgram, clean_environment, run_command, run_executable, run_postern
from support.stored import rows
from support.waiting import wait_until

HEAD = "from postern.workflows import workflow\n"
NOWHERE = "0" * 32
WORKFLOWS = Path(__file__).resolve().parents[3] / "src/postern/workflows/example"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    settings = {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off"}
    with Program(tmp_path_factory.mktemp("commands"), settings) as program:
        yield program


@pytest.fixture
def folder(program: Program) -> Path:
    return program.data_dir.parent


def json_of(folder: Path, *words: str, code: int = 0, **environment: str) -> Any:
    ran = typed(folder, *words, "--json", **environment)
    assert ran.exit_code == code, (words, ran.output)
    return json.loads(ran.stdout)


def refused(folder: Path, *words: str) -> int:
    ran = typed(folder, *words)
    assert "Traceback" not in ran.output and (
        ran.exception is None or isinstance(ran.exception, SystemExit)
    ), ran.output
    return ran.exit_code


@pytest.fixture
def recorded(program: Program) -> tuple[dict[str, Any], str]:
    """A webhook of its own, and a recorded call to it."""
    webhook = made(program, fieldMapping={"fieldOne": "number"})
    reply = call(webhook["url"], {"number": "1001", "items": [{"sku": "[red]A-1"}]}, X_Api_Key="a secret")
    return webhook, reply.json["invocationId"]


def test_a_url_that_only_this_machine_can_reach_says_so(program: Program, folder: Path) -> None:
    wanted = "Only this machine can reach this address."
    assert wanted in program.output()
    assert wanted in typed(folder, "webhooks", "create", "Near").output
    public = run_postern(folder, "webhooks", "create", "Far", POSTERN_BASE_URL="https://hooks.example.com")
    assert "https://hooks.example.com/webhook/" in public.stdout and wanted not in public.stdout


def test_a_call_is_told_to_people_line_by_line(program: Program, folder: Path) -> None:
    told = json_of(folder, "webhooks", "create", "Told", "--auth", "none", "fieldMapping.fieldOne=text")
    body = b'{"text": "\x1b[2J",\n "more": [1'
    heard = call(told["url"], body)
    lines = typed(folder, "history", "show", heard.json["invocationId"]).stdout.splitlines()
    assert lines[0] == f"POST {told['url'].removeprefix(program.url)}"
    assert lines[3].startswith("It was answered 400 after ")
    assert lines[lines.index(f"Body, {len(body)} bytes") + 1 :] == ['  {"text": "·[2J",', '   "more": [1']
    assert {"Decided", "Headers"} <= {*lines}


def test_an_admitted_call_says_that_it_was_rejected_before(folder: Path) -> None:
    webhook = json_of(folder, "webhooks", "create", "Arrays", "--auth", "none")
    invocation = call(webhook["url"], [{"number": 1}]).json["invocationId"]
    typed(folder, "webhooks", "set", webhook["id"], "arrays=whole")
    assert "1 of 1 admitted" in typed(folder, "history", "recheck", webhook["id"], "--admit").stdout
    status = typed(folder, "history", "show", invocation).stdout.splitlines()[2]
    assert re.match(r"\w+, admitted after it was rejected: payload_not_an_object", status)


def test_a_sender_by_another_name_is_told_as_what_it_is_known(folder: Path) -> None:
    created = ("webhooks", "create", "Chat", "--auth", "hmac", "--provider", "whatsapp")
    for words in (created, ("send", "WhatsApp")):
        ran = typed(folder, *words)
        assert (ran.exit_code, "did you mean meta?" in ran.stderr) == (USAGE, True)


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("webhooks", "list"),
        ("history", "show", f"inv_{NOWHERE}"),
        ("prune",),
        ("export", "--all"),
    ],
)
def test_a_command_that_reads_begins_no_database(words: tuple[str, ...], tmp_path: Path) -> None:
    read = typed(tmp_path, *words)
    assert (read.exit_code, read.stdout) == (NOT_FOUND, "")
    assert read.stderr.startswith(f"There is no database in {tmp_path / 'data'}.")
    assert read.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()
    made = typed(tmp_path, "webhooks", "create", "First")
    assert f"There was no database in {tmp_path / 'data'}: a new one was begun." in made.stderr
    assert "There was no database" not in typed(tmp_path, "webhooks", "create", "Second").stderr


@pytest.mark.parametrize("words", [("webhooks", "list"), ("webhooks", "create", "One")])
def test_no_command_begins_a_database_beside_the_files_of_an_earlier_one(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret.key").write_text("of an earlier one")
    refused = typed(tmp_path, *words)
    assert (refused.exit_code, refused.stderr.count("\n")) == (FAILED, 1)
    assert "holds secret.key of an earlier one" in refused.stderr
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["secret.key"]


@pytest.mark.parametrize("words", [("webhooks", "list"), ("webhooks", "create", "One")])
def test_no_command_brings_a_database_up_to_date(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_data(tmp_path / "data")
    before = schema.newest()
    database = tmp_path / "data" / "postern.db"
    rows(database, "DELETE FROM meta WHERE name = 'keys'")  # of an age at which no key was noted
    (tmp_path / "data" / "secret.key").unlink(missing_ok=True)
    later = copytree(schema.MIGRATIONS, tmp_path / "migrations") / "versions" / "9000_nothing.py"
    later.write_text(f"revision, down_revision = '9000', {before!r}\ndef upgrade(): pass\n")
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path / "migrations")
    monkeypatch.setattr(schema, "_known", schema._known.__wrapped__)
    refused = typed(tmp_path, *words)
    older = f"an older version (its schema is {before}, and this version needs 9000): run `postern migrate`\n"
    assert (refused.exit_code, refused.stderr) == (UNAVAILABLE, f"the database was made by {older}")
    assert not (tmp_path / "data" / "secret.key").exists()
    assert rows(database, "SELECT version_num FROM alembic_version") == [(before,)]


def test_a_command_without_the_servers_settings_finds_its_workflows(
    start_program: StartProgram, tmp_path: Path
) -> None:
    program = start_program(POSTERN_WORKFLOWS=str(WORKFLOWS))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data = str(tmp_path / "data")

    def listed() -> str:
        return run_postern(elsewhere, "workflows", "list", POSTERN_DATA_DIR=data).stdout

    wait_until(lambda: "order_lookup" in listed(), what="the engine to know its workflows")
    assert program.stop() == 0
    assert "order_lookup" in listed()
    own = run_postern(elsewhere, "workflows", "list", POSTERN_DATA_DIR=data, POSTERN_WORKFLOWS=str(elsewhere))
    assert "No workflow found" in own.stdout
    (elsewhere / "flows.py").write_text(HEAD + '\n\n@workflow("Discount")\ndef pay(event): pass\n')
    own = run_postern(elsewhere, "workflows", "list", POSTERN_DATA_DIR=data, POSTERN_WORKFLOWS=str(elsewhere))
    assert own.stderr == "flows.py:4: pay wants calls of Discount, which is no webhook here\n"


def test_workflow_files_are_checked_where_nothing_else_is(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "a.py").write_text(HEAD + '\nprint("loaded")\n\n\n@workflow\ndef pay(event): pass\n')
    well = run_postern(tmp_path, "workflows", "check", "flows")
    assert (well.returncode, well.stdout) == (0, "1 workflow: pay\n")
    (flows / "b.py").write_text((flows / "a.py").read_text())
    (flows / "c.py").write_text("def (:\n")
    problems = [
        "b.py, line 6: ValueError: two workflows are called pay: the other one is a.py:6",
        "c.py, line 1: invalid syntax",
    ]
    broken = run_postern(tmp_path, "workflows", "check", "flows", "--json")
    assert (broken.returncode, json.loads(broken.stdout)) == (1, {"workflows": ["pay"], "problems": problems})
    broken = run_postern(tmp_path, "workflows", "check", POSTERN_WORKFLOWS=str(flows))
    assert broken.stderr.splitlines()[-2:] == problems
    assert run_postern(tmp_path, "workflows", "check", "nowhere").returncode == USAGE
    assert not (tmp_path / "data").exists()


def test_a_secret_that_cannot_be_read_says_why(folder: Path) -> None:
    file = folder / "bytes"
    file.write_bytes(b"\xff\xfe")
    for secret, why in (
        ("env:NOPE", "The environment variable NOPE is not set."),
        ("whk_typed_here", "write env:NAME"),
        (f"file:{file}", f"{file} is not text in UTF-8\n"),
    ):
        ran = typed(folder, "webhooks", "create", "X", "--secret", secret)
        assert (ran.exit_code, why in ran.stderr) == (USAGE, True), ran.stderr
    assert ran.stderr == why


@pytest.mark.parametrize(
    "place", sorted({f"{one}.{name}" for one, all in secret_places().items() for name in all})
)
def test_each_secret_of_a_webhook_is_read_from_where_its_value_says_and_is_never_typed(
    place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = place + (".X-Key" if place == "schedule.headers" else "")
    above, *names = setting.split(".")
    snake = re.sub("([A-Z])", r"_\1", f"{above}.{names[0]}").lower() + "".join(f".{one}" for one in names[1:])
    whole = f"{above}={json.dumps(reduce(lambda inner, name: {name: inner}, reversed(names), 'whk_typed'))}"
    for written in (f"{setting}=whk_typed", f"{setting}=12345678", f"{snake}=whk_typed", whole):
        for command in ("create", "set"):
            ran = typed(folder, "webhooks", command, "wh_1", written)
            assert (ran.exit_code, "write env:NAME, file:PATH or -" in ran.stderr) == (USAGE, True), (
                ran.output
            )
            assert "whk_typed" not in ran.output and "12345678" not in ran.output
    (folder / "secret").write_text("from a file\n")
    monkeypatch.setenv("SECRET", "from the environment")
    monkeypatch.setattr(sys, "stdin", StringIO("from a pipe\n"))
    for source, secret in (
        (f"file:{folder / 'secret'}", "from a file"), ("env:SECRET", "from the environment"), ("-", "from a pipe"),
    ):  # fmt: skip
        read = webhooks.assignments((f"{setting}={source}",))
        assert reduce(lambda inside, name: inside[name], setting.split("."), read) == secret
    for kept in ("null", '{"generate":true}', '["X-Key"]'):
        assert webhooks.assignments((f"{place}={kept}",))[above] == {names[0]: json.loads(kept)}


def test_each_secret_that_a_request_takes_is_known_to_the_commands() -> None:
    taken = {}
    for name, field in WebhookRequest.model_fields.items():
        kinds = [one for one in (field.annotation, *get_args(field.annotation)) if hasattr(one, "kind")]
        hidden = {
            to_camel(one) for kind in kinds for one, its in kind.model_fields.items() if its.repr is False
        }
        taken |= {to_camel(name): hidden} if hidden else {}
    assert taken == secret_places(), "name it under secrets in core/webhooks/settings.py"


def test_a_signature_is_shown_beside_what_was_signed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("It's a Secret to Everybody")
    (tmp_path / "body").write_text("Hello, World!")
    how = ("--provider", "github", "--secret", f"file:{tmp_path / 'secret'}")
    sent = ("--body", str(tmp_path / "body"), "--header", "X-Hub-Signature-256: sha256=" + "0" * 64)
    ran = typed(folder, "signatures", "test", *how, *sent)
    assert ran.exit_code == FAILED
    right = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert "signed    'Hello, World!'" in ran.stdout and "0" * 64 in ran.stdout
    assert right in "".join(ran.stdout.split())


def test_a_filter_that_finds_nothing_does_not_say_that_nothing_came(
    folder: Path, recorded: tuple[dict[str, Any], str]
) -> None:
    assert "No call matches." in typed(folder, "history", "list", "--status", "lost").stdout


def test_the_changed_body_of_a_replay_is_a_file_of_text(
    folder: Path, recorded: tuple[dict[str, Any], str], tmp_path: Path
) -> None:
    _, invocation = recorded
    file = tmp_path / "changed.json"
    words = ("history", "replay-edited", invocation, "--body", str(file))
    assert refused(folder, *words) == USAGE, "it is not there"
    file.write_bytes(b"\xff")
    assert refused(folder, *words) == USAGE
    file.write_bytes(b'{\r\n"a": 2}')
    made = json_of(folder, *words)["invocationId"]
    assert json_of(folder, "history", "show", made)["body"] == '{\r\n"a": 2}'


def test_a_users_password_comes_from_a_file_and_is_in_no_note(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("a password for maria\n")
    maria = json_of(folder, "users", "create", "Maria", "--level", "write", "--password", f"file:{file}")
    assert refused(folder, "users", "create", "maria", "--password", f"file:{file}") == CONFLICT
    assert refused(folder, "users", "create", "other") == USAGE  # no terminal to ask at
    assert refused(folder, "users", "create", "other", "--invite", "--password", f"file:{file}") == USAGE
    link = json_of(folder, "users", "create", "Grace", "--invite")["invitation"]
    again = typed(folder, "users", "create", "Grace", "--invite").stdout
    assert "/join/" in link and link not in again
    assert re.match(
        r"grace may sign in, with access level read by this link, until 20[^ ]+: http\S+/join/\S{43}\n", again
    )
    signed_in = Client(program.port).post("sessions", {"name": "maria", "password": "a password for maria"})
    assert signed_in.status == 201
    file.write_text("another password for maria")
    json_of(folder, "users", "change", maria["id"], "--level", "read", "--password", f"file:{file}")
    shown = typed(folder, "audit", "--subject", maria["id"]).stdout
    assert 'level: "write" → "read"' in shown and "password" in shown and "for maria" not in shown
    assert typed(folder, "users", "delete", maria["id"], "--yes").stdout == "Deleted.\n"
    assert refused(folder, "users", "delete", maria["id"], "--yes") == NOT_FOUND


def test_what_paths_find_in_a_call_is_shown_as_it_is(
    folder: Path, recorded: tuple[dict[str, Any], str]
) -> None:
    _, invocation = recorded
    assert "[red]A-1" in typed(folder, "history", "preview", invocation, "fieldTwo=items[0].sku").stdout
    assert refused(folder, "history", "preview", invocation, "fieldFive=number") == USAGE
    # words that are parts of paths at the places of ids
    assert refused(folder, "history", "show", "count") == NOT_FOUND
    assert refused(folder, "webhooks", "show", "many") == NOT_FOUND


def test_many_are_replayed_with_progress_and_a_plan_can_be_cancelled(
    folder: Path, recorded: tuple[dict[str, Any], str]
) -> None:
    webhook, _ = recorded
    for _ in range(24):
        assert call(webhook["url"], {"number": "1"}).status == 200
    plan = json_of(folder, "replays", "plan", "--webhook", webhook["id"])
    assert (plan["count"], plan["state"]) == (25, "planned")
    ran = typed(folder, "replays", "run", plan["id"], "--fields", "recorded", "--watch")
    expected = "done: 25 of 25 calls with their recorded values: "
    assert ran.exit_code == 0 and ran.stdout.startswith(expected), ran.output
    assert ran.stderr.splitlines()[-1].startswith("25 of 25: ")
    assert refused(folder, "replays", "run", plan["id"]) == CONFLICT
    assert json_of(folder, "replays", "show", plan["id"])["done"] == 25
    other = json_of(folder, "replays", "plan", "--webhook", webhook["id"])
    assert json_of(folder, "replays", "cancel", other["id"])["state"] == "cancelled"
    assert refused(folder, "replays", "show", other["id"], "--watch") == FAILED


def test_a_webhook_whose_secret_comes_from_its_sender_says_what_to_do_next(
    folder: Path, tmp_path: Path
) -> None:
    made = typed(folder, "webhooks", "create", "Paid", "--auth", "hmac", "--provider", "stripe").stdout
    webhook = made.split()[2]
    assert "until the signing secret of Stripe is set here" in " ".join(made.split())
    assert f"Next: postern webhooks set {webhook} --secret file:PATH" in made
    assert "needs its secret" in typed(folder, "webhooks", "list", "--search", "Paid").stdout
    (tmp_path / "stripe.secret").write_text("whsec_right\n")
    changed = json_of(folder, "webhooks", "set", webhook, "--secret", f"file:{tmp_path / 'stripe.secret'}")
    assert changed["authentication"]["secretAwaited"] is False


def test_what_only_this_machine_can_do_is_told_in_json_too(
    program: Program, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands that can be typed from afar are in the story of test_remote.py."""

    def run_json(*words: str) -> Any:
        return json_of(folder, *words, POSTERN_WORKFLOWS=str(WORKFLOWS), POSTERN_BASE_URL=program.url)

    assert [one["name"] for one in run_json("workflows", "list")["items"]] == ["order_lookup"]
    assert run_json("workflows", "check", str(WORKFLOWS)) == {"workflows": ["order_lookup"], "problems": []}
    for words in (
        ("prune", "--dry-run"),
        ("settings",),
        ("secrets", "rotate-key"),
        ("backup", str(tmp_path / "b")),
    ):
        run_json(*words)
    first = run_json("webhooks", "create", "First")
    run_json("webhooks", "create", "Another")
    newest = run_json("webhooks", "list", "--limit", "1")
    rest = run_json("webhooks", "list", "--cursor", newest["nextCursor"])
    assert rest["items"][0]["id"] == first["id"]
    assert newest["nextCursor"] in typed(folder, "webhooks", "list", "--limit", "1").stderr
    monkeypatch.setenv("KEY", program.admin_key)
    assert run_json("login", program.url, "--key", "env:KEY")["url"] == program.url
    assert run_json("status")["gateway"]["ready"] is True
    assert run_json("logout")["current"] == "local"


def test_a_run_that_failed_ends_so_and_a_paused_schedule_goes_on(program: Program, folder: Path) -> None:
    own = {"POSTERN_BASE_URL": program.url}  # it is answered in its own process, which fetches nothing
    schedule = 'schedule={"url": "http://127.0.0.1:1/", "every": "1d", "pauseAfterFailures": 1}'
    timed = json_of(folder, "webhooks", "create", "Timed", schedule, **own)["id"]
    assert json_of(folder, "webhooks", "run", timed, code=FAILED, **own)["result"] == "failed"
    assert json_of(folder, "webhooks", "resume", timed, **own)["scheduleState"]["pausedAt"] is None


def test_a_generated_token_is_mentioned_with_where_to_read_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN", "a token of the tests")
    for words, what in (
        ([], "A token"),
        (["--auth", "hmac", "--provider", "generic"], "A signing secret"),
        (["--auth", "none"], ""),
        (["--secret", "env:OWN"], ""),
    ):
        printed = typed(folder, "webhooks", "create", "Told", *words).stdout.replace("\n", "")
        webhook = re.search(r"wh_[0-9a-f]{32}", printed)
        assert webhook is not None
        assert ("was generated" in printed) == bool(what)
        said = f"{what} was generated. The console reveals it to administrators: "
        address = f"/webhooks/{webhook[0]}/settings#secrets"
        assert not what or (said in printed and address in printed.replace(" ", ""))


BILLIONS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BILLIONS, "line 2: this is not YAML: aliases"),
        ("[" * 5000, "nested too deeply"),
        ("version: 1\nwebhooks:\n- name: A\n  name: B", "line 4: this is not YAML: a name stands twice"),
        ("at: 2026-13-45", "a date"),
        ("at: !!bool perhaps", "a tagged value that is none"),
        ("at: !!timestamp now", "a tagged value that is none"),
        (f"at: {'9' * 5000}", "holds a number"),
        ('at: "\\U00110000"', "a character"),
        ('at: "\\UFFFFFFFF"', "a character"),
        ("on: 1", "a name that is no text"),
        ("~: 1", "a name that is no text"),
        ('name: "\\ud800"', "half a character"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused_in_a_sentence(folder: Path, text: str, why: str) -> None:
    (folder / "webhooks.yaml").write_text(text)
    ran = typed(folder, "apply", str(folder / "webhooks.yaml"))
    assert (ran.exit_code, "Traceback" in ran.output) == (USAGE, False)
    assert why in ran.output


def test_an_emoji_in_a_file_of_json_is_a_character(folder: Path) -> None:
    document = {"version": 1, "webhooks": [{"name": "Till \U0001f600", "authentication": {"method": "none"}}]}
    (folder / "webhooks.json").write_text(json.dumps(document))
    ran = typed(folder, "apply", str(folder / "webhooks.json"), "--dry-run")
    assert (ran.exit_code, "+ Till \U0001f600" in ran.stdout) == (DIFFERS, True), ran.output


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("env: OWN", "OWN is not text in UTF-8"),
        ("file: /dev/zero", "/dev/zero holds more than 65,536 characters, which no secret has"),
    ],
)
def test_a_secret_that_can_be_none_is_refused_by_the_name_under_which_it_was_looked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reference: str, why: str
) -> None:
    monkeypatch.setenv("OWN", os.fsdecode(b"a\xffb"))
    (folder / "webhooks.yaml").write_text(
        f"version: 1\nwebhooks:\n- name: A\n  authentication: {{method: token, token: {{{reference}}}}}\n"
    )
    ran = typed(folder, "apply", str(folder / "webhooks.yaml"))
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (USAGE, why)


def test_what_is_no_text_on_standard_input_is_said_to_be_none(folder: Path) -> None:
    command = ("sh", "-c", r'printf "webhooks: [\377]" | exec "$0" -m postern apply -', sys.executable)
    ran = run_command(*command, environment=clean_environment({"POSTERN_DATA_DIR": str(folder / "data")}))
    assert (ran.returncode, ran.stderr) == (USAGE, "standard input is not text in UTF-8\n")


def test_what_went_wrong_keeps_its_lines_and_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        end("No connection\n\tIs it there?\x1b[2J", FAILED)
    assert capsys.readouterr().err == "No connection\n\tIs it there?·[2J\n"


def test_ids_and_urls_are_never_folded() -> None:
    webhook, url = f"wh_{'0123456789abcdef' * 2}", f"https://hooks.example.com/webhook/{'x' * 22}"
    row = [webhook, url, "A name that is so long that it is folded"]
    _, first, *folded = table(["id", "url", "name"], [row], 80)
    assert first.startswith(f"{webhook}  {url}  A name")
    assert folded


def test_what_goes_wrong_is_json_where_json_was_asked_for(program: Program, folder: Path) -> None:
    missing = typed(folder, "webhooks", "show", "wh_none", "--json")
    assert (missing.exit_code, missing.stdout) == (3, "")
    assert json.loads(missing.stderr)["code"] == "not_found"
    wrong = typed(folder, "webhooks", "create", "Wrong", "payloadLimitBytes=0", "--json")
    assert [error["field"] for error in json.loads(wrong.stderr)["errors"]] == ["payloadLimitBytes"]
    assert "payloadLimitBytes: " in typed(folder, "webhooks", "create", "Wrong", "payloadLimitBytes=0").stderr


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ([], "Say what to change"),
        (["fieldMapping=1", "fieldMapping.fieldOne=x"], "fieldMapping was given as a whole before"),
        (["authentication=x", "--secret", "env:PATH"], "authentication: name what of it to set"),
        (["authentication=null"], "authentication: name what of it to set"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    program: Program, folder: Path, settings: list[str], why: str
) -> None:
    made = json_of(folder, "webhooks", "create", "Typed")
    for words in (["set", made["id"], *settings], ["create", "Another", *settings])[: 2 if settings else 1]:
        ran = typed(folder, "webhooks", *words)
        assert (ran.exit_code, why in ran.stderr) == (USAGE, True), ran.output
    assert json_of(folder, "webhooks", "show", made["id"])["version"] == made["version"]


def test_a_webhook_is_shown_without_settings_that_are_not_set(program: Program, folder: Path) -> None:
    made = json_of(folder, "webhooks", "create", "Plain", "fieldMapping.fieldTwo=a")
    assert "fieldMapping\n  fieldTwo  a\nsynch" in typed(folder, "webhooks", "show", made["id"]).stdout
    json_of(folder, "webhooks", "set", made["id"], "fieldMapping.fieldTwo=null")
    shown = typed(folder, "webhooks", "show", made["id"]).stdout
    assert ("fieldMapping" in shown, "None" in shown) == (False, False)


def test_a_webhook_is_created_with_an_authentication_that_is_given_whole(
    program: Program, folder: Path
) -> None:
    (folder / "whsec").write_text("whsec_" + "a" * 32)
    for how in (
        {"method": "hmac", "provider": "stripe", "secret": f"file:{folder}/whsec"},
        {"method": "none"},
    ):
        ran = typed(folder, "webhooks", "create", "Whole", f"authentication={json.dumps(how)}")
        assert (ran.exit_code, "/settings#secrets" in ran.output) == (OK, False), ran.output


def test_before_a_webhook_is_deleted_it_is_named(program: Program, folder: Path) -> None:
    made = json_of(folder, "webhooks", "create", "Precious")
    assert "Precious: its URL will answer 404." in typed(folder, "webhooks", "delete", made["id"]).output
    missing = typed(folder, "webhooks", "delete", "wh_none")
    assert (missing.exit_code, "Delete it?" in missing.output) == (NOT_FOUND, False)


def test_a_promotion_that_is_not_known_to_be_safe_is_asked_for_twice(program: Program, folder: Path) -> None:
    two = {"method": "token", "token": {"generate": True}, "secondToken": {"generate": True}}
    made = json_of(folder, "webhooks", "create", "Two", f"authentication={json.dumps(two)}")
    unsafe = typed(folder, "webhooks", "promote", made["id"])
    assert (unsafe.exit_code, "othing was changed: the main secret was" in unsafe.stderr) == (CONFLICT, True)
    promoted = typed(folder, "webhooks", "promote", made["id"], "--now")
    assert promoted.exit_code == 0


def test_the_status_of_a_local_database_does_not_blame_an_engine_that_it_cannot_see(folder: Path) -> None:
    without_a_gateway = {"POSTERN_BASE_URL": "https://hooks.example.com"}
    lines = typed(folder, "status", **without_a_gateway).output.splitlines()
    assert [line for line in lines if line.startswith("engine: ")] == [
        "engine: not seen from here; /readyz of the gateway that serves says how it is"
    ]
    assert not any("not ok" in line for line in lines)


def test_the_version_is_printed(folder: Path) -> None:
    assert typed(folder, "--version").stdout == f"postern {__version__}\n"


@pytest.mark.parametrize(
    ("module", "typed", "sent", "status"),
    [("click", "status", "SIGTERM", -signal.SIGTERM), ("uvloop", "serve", "SIGINT", 130)],
)
def test_an_interruption_is_not_lost_in_what_a_library_does_while_it_is_loaded(
    tmp_path: Path, module: str, typed: str, sent: str, status: int
) -> None:
    source = f"""
import os, signal

class Part:
    def __del__(self):
        os.kill(os.getpid(), signal.{sent})

Part()
"""
    (tmp_path / f"{module}.py").write_text(source)
    ran = run_executable(typed, folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert (ran.returncode, ran.stdout, ran.stderr) == (status, "", "Interrupted.\n")
