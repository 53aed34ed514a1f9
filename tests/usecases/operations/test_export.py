"""Everything there is as lines, from a database that has some of everything."""

import base64
import json
import os
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postern import __version__
from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter, HistoryPage
from postern.core.problems import Refused
from postern.usecases.access import accounts
from postern.usecases.answers import as_plain, iso
from postern.usecases.deliveries import replays
from postern.usecases.history import editing, history, marks, samples, saved_views
from postern.usecases.listeners import listeners
from postern.usecases.operations import export
from postern.usecases.webhooks import webhooks
from support.commands import typed
from support.every_kind import REQUESTS, SECRET
from support.fresh import fresh_data
from support.house import OWNER, House, a_house
from support.stored import NEWER, overwrite

PASSWORD = "a password of the tests"


async def some_of_everything(house: House) -> str:
    """Returns the API key that it made."""
    for number, request in enumerate(REQUESTS):
        await house.webhook(**{"name": f"Webhook {number}", **request})
    called, deleted = await house.webhook(), await house.webhook(name="Deleted")
    for body in (b"{}", b'{"n": 1}', b"[1, 2"):
        await house.call(called, body)
    await house.call(deleted)
    await webhooks.remove(house.gateway, OWNER, deleted.id)
    await house.deliver()
    await accounts.ensure_admin(house.gateway, PASSWORD)
    plan = await replays.plan(house.gateway, OWNER, HistoryFilter(code="accepted"))
    await replays.begin(house.gateway, OWNER, plan.id)
    return (await accounts.create_key(house.gateway, OWNER, "monitoring", "read")).key


def lines_in(written: list[bytes]) -> list[dict[str, Any]]:
    text = b"".join(written)
    assert text.endswith(b"\n")
    return [json.loads(line) for line in text.removesuffix(b"\n").split(b"\n")]


async def test_every_row_is_a_line_and_the_last_line_counts_them_and_no_secret_is_in_it(
    tmp_path: Path,
) -> None:
    written: list[bytes] = []
    async with a_house(tmp_path) as house:
        key = await some_of_everything(house)
        await export.everything(house.gateway, OWNER, written.append)
        with pytest.raises(Refused):
            await export.everything(house.gateway, Actor("somebody", "write"), written.append)
    lines = lines_in(written)
    assert lines[0].keys() == {"kind", "format", "version", "madeAt"}
    kinds = Counter(line["kind"] for line in lines)
    with closing(sqlite3.connect(tmp_path / "data" / "postern.db")) as database:
        for kind, table in (
            ("call", "invocations"),
            ("user", "users"),
            ("apiKey", "api_keys"),
            ("change", "audit"),
            ("replay", "replays"),
            ("webhook", "webhooks WHERE deleted_at IS NULL"),
        ):
            assert kinds[kind] == database.execute(f"SELECT count(*) FROM {table}").fetchone()[0], kind
        assert kinds["webhook"] == len(REQUESTS) + 1
        bodies = dict(database.execute("SELECT id, body FROM invocations"))
        deliveries = [line["key"] for call in lines if call["kind"] == "call" for line in call["deliveries"]]
        assert sorted(deliveries) == sorted(key for (key,) in database.execute("SELECT key FROM deliveries"))
        sealed = [envelope for (envelope,) in database.execute("SELECT envelope FROM secrets")]
        hashes = [digest for (digest,) in database.execute("SELECT password_hash FROM users")]
    for line in lines:
        if line["kind"] == "call":
            body = line["bodyBase64"]
            assert (None if body is None else base64.b64decode(body)) == bodies[line["id"]]
    assert (lines[0]["kind"], lines[0]["format"], lines[-1]["kind"]) == ("export", 1, "end")
    assert lines[-1]["counts"] == {kind: kinds[kind] for kind in kinds if kind not in ("export", "end")}
    own, text = (tmp_path / "data" / "secret.key").read_text().strip(), json.dumps(lines)
    for secret in (own, key, SECRET, PASSWORD, *sealed, *hashes):
        assert secret not in text


async def test_what_is_kept_beside_webhooks_and_calls_is_in_it(house: House) -> None:
    recorded, deleted = await house.webhook(name="Recorded"), await house.webhook(name="Deleted")
    await samples.arm(house.gateway, OWNER, recorded.id)
    call = await house.recorded(recorded, b'{"n": 1}')
    await marks.bookmark(house.gateway, OWNER, call)
    await marks.add_note(house.gateway, OWNER, call, "look at this")
    await webhooks.remove(house.gateway, OWNER, deleted.id)
    view = await saved_views.save(house.gateway, OWNER, "Mine", "status=failed")
    written: list[bytes] = []
    await export.everything(house.gateway, OWNER, written.append)
    lines = {line["kind"]: line for line in lines_in(written)}
    assert (lines["sample"]["webhookId"], lines["sample"]["event"]["payload"]) == (recorded.id, {"n": 1})
    assert (lines["deletedWebhook"]["id"], lines["webhook"]["id"]) == (deleted.id, recorded.id)
    assert lines["call"]["bookmark"] and lines["call"]["notes"][0]["text"] == "look at this"
    saved = {"id": view.id, "by": view.owner, "name": "Mine", "query": "status=failed"}
    assert lines["savedView"].items() >= {**saved, "at": iso(view.created_at)}.items()


def test_the_command_writes_a_file_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    printed = typed(tmp_path, "export", "--all")
    written = typed(tmp_path, "export", "--all", "--output", "all.jsonl")
    assert (printed.exit_code, written.exit_code) == (0, 0), printed.output + written.output
    assert (tmp_path / "all.jsonl").read_text().splitlines()[1:] == printed.stdout.splitlines()[1:]
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o077 == 0
    failed = typed(tmp_path, "export", "--all", "--output", "nowhere/all.jsonl")
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (2, 1), failed.stderr
    other = {"POSTERN_SECRET_KEYS": "another key of its own"}
    assert typed(tmp_path, "export", "--all", "--output", "none.jsonl", **other).exit_code != 0
    assert [file.name for file in tmp_path.glob("none*")] == []


def test_the_command_takes_the_place_of_no_pipe_and_of_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("link").symlink_to("all.jsonl")
    pipe = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)  # waits for nobody
    typed(tmp_path, "export", "--all", "--output", "pipe")
    assert json.loads(os.read(pipe, 1 << 16).splitlines()[0])["kind"] == "export"
    os.close(pipe)
    typed(tmp_path, "export", "--all", "--output", "link")
    assert Path("pipe").is_fifo() and Path("link").is_symlink()
    assert json.loads(Path("all.jsonl").read_text().splitlines()[0])["kind"] == "export"


async def test_however_many_there_are_each_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages of two; one that cannot be read is named, and calls that have just gone are left out."""
    monkeypatch.setattr(export, "PAGE", 2)
    monkeypatch.setattr(export, "CALLS_AT_ONCE", 2)
    async with a_house(tmp_path) as house:
        made = [(await house.webhook(name=f"Number {number}")) for number in range(5)]
        for one in made:
            await house.call(one, b'{"n": 1}')
        overwrite(tmp_path / "data", made[1].id, NEWER)
        gone = [row.id for row in (await house.history())[2:4]]  # a page of them
        calls = house.gateway.store.history
        stretch = calls.stretch

        async def just_gone(before: str | None, limit: int, most_bytes: int) -> HistoryPage:
            page = await stretch(before, limit, most_bytes)
            return HistoryPage([row for row in page.rows if row.invocation.id not in gone], page.next_before)

        monkeypatch.setattr(calls, "stretch", just_gone)
        written: list[bytes] = []
        await export.everything(house.gateway, OWNER, written.append)
    lines = lines_in(written)
    assert (lines[0]["version"], lines[0]["format"]) == (__version__, 1)
    ids = {kind: [line["id"] for line in lines if line["kind"] == kind] for kind in ("webhook", "call")}
    assert ids["webhook"] == [one.id for one in reversed(made) if one is not made[1]]
    assert len(set(ids["call"])) == len(ids["call"]) == 3 and not {*gone} & {*ids["call"]}
    (unreadable,) = [line for line in lines if line["kind"] == "unreadableWebhook"]
    assert unreadable["id"] == made[1].id
    counts = {"webhook": 4, "unreadableWebhook": 1, "change": 5, "call": 3}
    assert lines[-1] == {"kind": "end", "counts": counts}


@pytest.mark.parametrize("most_at_once", [1, 60, 8 * 1024 * 1024])
async def test_a_line_says_of_a_call_what_the_api_says_however_many_are_read_together(
    house: House, monkeypatch: pytest.MonkeyPatch, most_at_once: int
) -> None:
    monkeypatch.setattr(export, "MOST_AT_ONCE", most_at_once)
    webhook = await house.webhook()
    first, second, *_ = [
        await house.recorded(webhook, body)
        for body in (b'{"n":1}', b'{"n":2,"text":"' + b"x" * 50 + b'"}', b"no object", b'{"n":4}')
    ]
    await house.deliver()
    for text in ("Asked the shop.", "Answered."):
        await marks.add_note(house.gateway, OWNER, first, text)
    await marks.bookmark(house.gateway, OWNER, second)
    await editing.replay_edited(house.gateway, OWNER, second, body='{"n":3}')
    desk = await listeners.enter(house.gateway, OWNER, listeners.EnterRequest(name="desk"), "192.0.2.7")
    await listeners.replay(house.gateway, OWNER, desk.id, first)
    written: list[bytes] = []
    await export.everything(house.gateway, OWNER, written.append)
    exported = {line.pop("id"): line for line in lines_in(written) if line.pop("kind") == "call"}
    assert len(exported) == 5
    for id, line in exported.items():
        shown = as_plain(await history.show(house.gateway, OWNER, id))
        del shown["id"], shown["payload"]
        body = shown.pop("body")
        assert base64.b64decode(line.pop("bodyBase64")).decode() == body
        assert line == shown
    assert [note["text"] for note in exported[first]["notes"]] == ["Asked the shop.", "Answered."]
    assert (len(exported[first]["localRuns"]), len(exported[second]["editedReplays"])) == (1, 1)
    assert exported[second]["bookmark"] is not None
