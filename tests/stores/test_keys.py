"""The database knows the keys that its secrets are encrypted with: another one harms nothing, and a secret that cannot
be decrypted costs its own webhook alone."""

import base64
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.stores.secrets.vault import VaultError, key_from_file
from postern.stores.sql.tables import secrets
from postern.stores.store import Store
from postern.usecases.operations.readiness import readiness
from postern.usecases.operations.settings import rotate_key
from postern.usecases.webhooks import listing, webhooks
from stores.conftest import opened, webhook
from support.fresh import fresh_database
from support.house import OWNER, a_house
from support.program import StartProgram, run_postern
from support.refusals import refused
from support.webhooks import TOKEN, make_webhook
from support.wire import exchange

OURS, THEIRS = "the-key-of-this-gateway", "the-key-of-another-one"
TOKENS = {"method": "token", "token": "whk_0123456789", "secondToken": "whk_9876543210"}


async def spoil(store: Store, envelope: str, *which: Any) -> None:
    spoiled = update(secrets).where(*which).values(envelope=envelope)
    await store.writer.write(lambda connection: connection.execute(spoiled))


async def test_another_key_is_refused_before_anything_is_written(url: str) -> None:
    async with opened(url, OURS):
        pass
    with pytest.raises(VaultError, match="Nothing was changed"):
        await Store(url, [THEIRS]).open()
    async with opened(url, THEIRS, OURS) as store:  # a new key in front of the old one
        await webhook(store)
    async with opened(url, OURS) as store:
        (kept,) = await store.webhooks.page(10)
    assert (kept.secrets, list(kept.unreadable_secrets)) == ({}, ["main"])


def test_a_command_without_the_keys_says_so_and_makes_none(
    tmp_path: Path, start_program: StartProgram
) -> None:
    keys = {"POSTERN_SECRET_KEYS": OURS}
    served = make_webhook(tmp_path / "data", environment=keys)
    program = start_program(POSTERN_ENGINE="none", **keys)

    def created(**given: str) -> int:
        ran = run_postern(tmp_path, "webhooks", "create", "New", "--auth", "none", **given)
        if ran.returncode:
            assert "POSTERN_SECRET_KEYS" in ran.stderr
            assert len(ran.stderr.splitlines()) == 1
        return ran.returncode

    assert created(POSTERN_SECRET_KEYS=THEIRS) == 5
    assert created() == 0, "the gateway has them, and answers the command"
    call = [("X-Api-Key", TOKEN), ("Content-Type", "application/json")]
    assert exchange(program.port, "POST", served.path, call, b"{}").status == 200
    program.stop()
    assert created() == 5
    assert not (tmp_path / "data" / "secret.key").exists()


@pytest.mark.parametrize("envelope", ["v1.0badc0de.AAAA", "v1.{ours}.!", "v1.{ours}.AAAA", "nonsense"])
async def test_a_secret_that_cannot_be_decrypted_costs_its_webhook_alone(
    tmp_path: Path, envelope: str
) -> None:
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=OURS) as house:
        good = await house.webhook(name="Good", authentication=TOKENS)
        bad = await house.webhook(name="Bad", authentication=TOKENS)
        store: Store = house.gateway.store  # type: ignore[assignment]
        of_bad = (secrets.c.webhook_id == bad.id, secrets.c.field == "second")
        await spoil(store, envelope.format(ours=store.vault.current), *of_bad)
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=OURS) as house:
        key = {"X-Api-Key": "whk_0123456789"}
        assert (await house.call(good, headers=key)).status == 200
        assert (await house.call(bad, headers=key)).status == 503
        found = await readiness(house.gateway)
        assert (found.ready, found.webhooks.ok) == (True, False)
        assert bad.id in found.webhooks.detail
        listed = await listing.listing(house.gateway, OWNER)
        assert [one.authentication.second_token_set for one in listed.items] == [True, True]
        with pytest.raises(Refused):
            await webhooks.promote(house.gateway, OWNER, bad.id)
        refusal = await refused(webhooks.change(house.gateway, OWNER, bad.id, {"name": "Better"}))
        assert refusal.code == "invalid_request"
        # Given a new one, it is served again.
        given = {"authentication": {"secondToken": "whk_new_0123456789"}}
        await webhooks.change(house.gateway, OWNER, bad.id, given)
        assert (await house.call(bad, headers=key)).status == 200
        assert (await house.call(bad, headers={"X-Api-Key": "whk_new_0123456789"})).status == 200
        assert (await readiness(house.gateway)).webhooks.ok


async def test_changing_the_key_leaves_out_what_cannot_be_decrypted(tmp_path: Path) -> None:
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=OURS) as house:
        for name in ("One", "Two"):
            await house.webhook(name=name, authentication=TOKENS)
        store: Store = house.gateway.store  # type: ignore[assignment]
        envelope = f"v1.{store.vault.current}.{base64.b64encode(b'altered').decode()}"
        one = await store.database.read(lambda connection: connection.scalar(select(secrets.c.id)))
        await spoil(store, envelope, secrets.c.id == one)
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=f"{THEIRS},{OURS}") as house:
        assert await rotate_key(house.gateway, OWNER) == 3
        store = house.gateway.store  # type: ignore[assignment]
        asked = text("SELECT value FROM meta WHERE name = 'keys'")
        noted = await store.database.read(lambda connection: connection.scalar(asked))
        # The altered one is still encrypted with the old key.
        assert set(noted.split()) == store.vault.fingerprints


async def test_a_database_that_takes_no_note_is_reported_in_a_sentence(tmp_path: Path) -> None:
    file = fresh_database(tmp_path / "postern.db")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await Store(f"sqlite:///{file}", [OURS]).open()


def test_a_key_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.key"

    def power_cut(_: int) -> None:
        assert not file.exists(), "it has its name before it is on disk"
        raise OSError("the power is cut")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="cut"):
        patch.setattr(os, "fsync", power_cut)
        key_from_file(file)
    assert list(tmp_path.iterdir()) == []
    key = key_from_file(file)
    assert (key_from_file(file), file.stat().st_mode & 0o777) == (key, 0o600)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("knows_links", [True, False])
def test_processes_that_start_together_have_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows_links: bool
) -> None:
    file, exists = tmp_path / "secret.key", Path.exists
    asked: list[Path] = []

    def only_later(path: Path) -> bool:
        asked.append(path)
        return len(asked) > 8 and exists(path)

    def no_link(*_: object) -> None:
        raise PermissionError("Operation not permitted")

    with monkeypatch.context() as patch:
        if knows_links:
            patch.setattr(Path, "exists", only_later)
        else:
            patch.setattr(os, "link", no_link)
        with ThreadPoolExecutor(8) as starts:
            keys = {*starts.map(key_from_file, [file] * (8 if knows_links else 1))}
    assert keys == {key_from_file(file)}
    assert list(tmp_path.iterdir()) == [file]
