"""Users, passwords and sessions: who gets in, who is kept out, and how it ends."""

import asyncio
import os
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Hashable
from pathlib import Path

import argon2
import pytest

from postern.core.access.accounts import Actor
from postern.core.limits import Tries
from postern.core.problems import Refused
from postern.usecases.access import accounts, passwords
from postern.usecases.access.known_browsers import browser_token
from postern.usecases.runtime.gateway import Gateway
from support import hashing
from support.rooms import ADMIN, gateway_on

PASSWORD = "correct horse battery"


@pytest.fixture(params=["sqlite", "postgres"])
async def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Gateway]:
    """On both kinds of database, with an administrator."""
    database: Path | str = tmp_path if request.param == "sqlite" else request.getfixturevalue("migrated_url")
    async with gateway_on(database) as (made, _):
        await accounts.ensure_admin(made, PASSWORD)
        yield made


ON_SQLITE = pytest.mark.parametrize("gateway", ["sqlite"], indirect=True)


async def sign_in(
    gateway: Gateway, name: str = "admin", password: str = PASSWORD, address: str = "192.0.2.1"
) -> str:
    return await accounts.sign_in(gateway, name, password, address, "Browser/1")


async def refusal(asked: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as caught:
        await asked
    return caught.value


async def test_a_wrong_password_and_an_unknown_name_sound_the_same(gateway: Gateway) -> None:
    wrong, unknown = [await refusal(sign_in(gateway, name, "wrong")) for name in ("admin", "nobody")]
    assert (wrong.code, wrong.detail) == (unknown.code, unknown.detail) == ("not_authenticated", wrong.detail)


@ON_SQLITE
async def test_who_guesses_at_a_name_is_slowed_and_neither_its_owner_nor_a_neighbour_is(
    gateway: Gateway,
) -> None:
    await accounts.create_user(gateway, ADMIN, "neighbour", PASSWORD, "read")
    for _ in range(20):
        await refusal(sign_in(gateway, "admin", "wrong", "192.0.2.1"))
    refused = await refusal(sign_in(gateway, " Admin", address="192.0.2.1"))
    assert (refused.code, refused.retry_after) == ("rate_limited", 4)
    assert await sign_in(gateway, address="203.0.113.9")
    assert await sign_in(gateway, "neighbour", address="192.0.2.1")
    gateway.clock.now += 4
    assert await sign_in(gateway, address="192.0.2.1")


@ON_SQLITE
async def test_a_known_browser_is_let_in_whatever_strangers_try(gateway: Gateway) -> None:
    await accounts.create_user(gateway, ADMIN, "rita", PASSWORD, "read")
    known = browser_token(gateway, "admin")
    for key, most in (
        (("sign-in as", "admin"), accounts.FAILED_SIGN_INS_AS),
        (("sign-in as", "rita"), accounts.FAILED_SIGN_INS_AS),
        (("sign-in from", "192.0.2.1"), accounts.FAILED_SIGN_INS_FROM),
        (("sign-in", "admin", "192.0.2.1"), 20),
    ):
        fail(gateway, key, most)

    async def signed_in(name: str, browser: str) -> str:
        return await accounts.sign_in(gateway, name, PASSWORD, "192.0.2.1", "Browser/1", browser)

    for browser in ("", "kb_made.1800000000.up", known[:-1] + ("0" if known[-1] != "0" else "1")):
        assert (await refusal(signed_in("admin", browser))).code == "rate_limited"
    assert (await refusal(signed_in("rita", known))).code == "rate_limited", "known for one name only"
    assert await signed_in("admin", known)


@ON_SQLITE
async def test_an_address_with_a_session_is_let_in_when_a_name_is_tried_from_everywhere(
    gateway: Gateway,
) -> None:
    assert await sign_in(gateway, address="2001:db8::1")
    fail(gateway, ("sign-in as", "admin"), accounts.FAILED_SIGN_INS_AS)
    for _ in range(3):
        await refusal(sign_in(gateway, password="wrong", address="2001:db8::2"))
    assert await sign_in(gateway, address="2001:db8::3")


@ON_SQLITE
async def test_tries_at_the_same_moment_do_not_pass_the_limit_together(gateway: Gateway) -> None:
    tries = [refusal(sign_in(gateway, password="wrong", address=f"2001:db8::{one}")) for one in range(60)]
    codes = [refused.code for refused in await asyncio.gather(*tries)]
    assert Counter(codes) == {"not_authenticated": 20, "rate_limited": 40}


@ON_SQLITE
async def test_a_password_is_kept_so_that_guessing_is_slow(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway
) -> None:
    """Argon2id with what OWASP asks for at least; one that was kept otherwise is kept anew when its owner signs in, and a
    name that nobody has costs as much."""

    async def kept() -> str:
        user = await gateway.store.people.named("admin")
        assert user is not None
        return user.password_hash

    assert hashing.REAL.check_needs_rehash(await kept())
    monkeypatch.setattr(passwords, "_hasher", hashing.REAL)
    await sign_in(gateway)
    parameters = argon2.extract_parameters(await kept())
    assert parameters == argon2.extract_parameters(hashing.REAL_NOBODY)
    assert parameters.type is argon2.Type.ID
    assert parameters.memory_cost >= 19 * 1024 and parameters.time_cost >= 2
    again = await kept()
    await sign_in(gateway)
    assert await kept() == again


@ON_SQLITE
async def test_a_right_password_is_looked_at_while_strangers_fill_the_line(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway
) -> None:
    monkeypatch.setattr(passwords, "_hasher", hashing.REAL)
    monkeypatch.setattr(accounts, "NOBODY", hashing.REAL_NOBODY)
    known = browser_token(gateway, "admin")
    strangers = [
        asyncio.create_task(refusal(sign_in(gateway, f"n{one}", "wrong", f"192.0.2.{one % 5}")))
        for one in range(150)
    ]
    while len(passwords.line._waiting) < passwords.line.most_waiting:  # one in turn, and no room for another
        await asyncio.sleep(0)
    assert await accounts.sign_in(gateway, "admin", PASSWORD, "198.51.100.1", "", known)
    assert await sign_in(gateway, address="198.51.100.2"), "from an address that has not failed"
    assert len(passwords.line._waiting) > 0, "it was not their turn"
    sent_away = {one.result().code for one in strangers if one.done()}
    assert "temporarily_unavailable" in sent_away
    for one in strangers:
        one.cancel()  # they would still be looked at, one after the other


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no niceness of their own elsewhere")
async def test_passwords_are_checked_behind_the_calls_of_senders() -> None:
    await passwords.hashed(PASSWORD)  # the thread is there
    threads = [one.native_id for one in threading.enumerate() if one.name.startswith("passwords")]
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert [os.getpriority(os.PRIO_PROCESS, one or 0) > own for one in threads] == [True]


def fail(gateway: Gateway, key: Hashable, per_minute: int, but: int = 0) -> None:
    tries = Tries(key, per_minute)
    for _ in range(per_minute - but):
        if gateway.runtime.limits.reserve(tries):
            break


async def test_a_session_ends_when_it_is_not_used_and_at_the_latest_after_thirty_days(
    gateway: Gateway,
) -> None:
    idle, used = await sign_in(gateway), await sign_in(gateway)
    half_a_day, thirty_days = 12 * 3600.0, 30 * 24 * 3600.0
    began = gateway.clock.now
    for _ in range(59):
        gateway.clock.now += half_a_day - 60
        await accounts.actor_of_session(gateway, used)
    assert (await refusal(accounts.actor_of_session(gateway, idle))).code == "not_authenticated"
    while gateway.clock.now + half_a_day < began + thirty_days:
        gateway.clock.now += half_a_day
        await accounts.actor_of_session(gateway, used)
    gateway.clock.now = began + thirty_days
    await accounts.actor_of_session(gateway, used)
    gateway.clock.now += 1
    assert (await refusal(accounts.actor_of_session(gateway, used))).code == "not_authenticated"


async def test_a_new_password_ends_the_sessions_of_whoever_knew_the_old_one(gateway: Gateway) -> None:
    here, elsewhere = await sign_in(gateway), await sign_in(gateway)
    actor = await accounts.actor_of_session(gateway, here)
    wrong = await refusal(accounts.change_own_password(gateway, actor, "wrong", "another password"))
    assert wrong.errors[0].field == "oldPassword"
    await accounts.change_own_password(gateway, actor, PASSWORD, "another password")
    assert await accounts.actor_of_session(gateway, here) == actor
    assert (await refusal(accounts.actor_of_session(gateway, elsewhere))).code == "not_authenticated"
    assert (await refusal(sign_in(gateway))).code == "not_authenticated"


async def test_the_last_admin_stays(gateway: Gateway) -> None:
    admin = (await accounts.users(gateway, ADMIN))[0].id
    assert (await refusal(accounts.delete_user(gateway, ADMIN, admin))).code == "conflict"
    assert (await refusal(accounts.change_user(gateway, ADMIN, admin, level="read"))).code == "conflict"
    other = await accounts.create_user(gateway, ADMIN, "ada", PASSWORD, "admin")
    removals = [accounts.delete_user(gateway, ADMIN, one) for one in (admin, other.id)]
    results = await asyncio.gather(*removals, return_exceptions=True)
    assert [isinstance(one, Refused) for one in results].count(True) == 1


async def test_a_level_holds_from_the_next_request_and_who_is_deleted_is_signed_out(gateway: Gateway) -> None:
    made = await accounts.create_user(gateway, ADMIN, "Edgar", PASSWORD, "write")
    secret = await sign_in(gateway, "edgar")
    await accounts.change_user(gateway, ADMIN, made.id, level="read")
    assert (await accounts.actor_of_session(gateway, secret)).level == "read"
    await accounts.delete_user(gateway, ADMIN, made.id)
    assert (await refusal(accounts.actor_of_session(gateway, secret))).code == "not_authenticated"


async def test_everybody_sees_and_ends_their_own_sessions_and_an_admin_all(gateway: Gateway) -> None:
    await accounts.create_user(gateway, ADMIN, "rita", PASSWORD, "read")
    rita = await accounts.actor_of_session(gateway, await sign_in(gateway, "rita"))
    admin = await accounts.actor_of_session(gateway, await sign_in(gateway))
    assert [one.user for one in await accounts.sessions(gateway, rita)] == ["rita"]
    seen = {one.user: one.current for one in await accounts.sessions(gateway, admin)}
    assert seen == {"rita": False, "admin": True}
    assert (await refusal(accounts.revoke_session(gateway, rita, admin.session))).code == "not_found"
    await accounts.revoke_session(gateway, admin, rita.session)
    assert await accounts.sessions(gateway, rita) == []


@ON_SQLITE
async def test_a_key_has_no_password_and_no_sessions(gateway: Gateway) -> None:
    key = Actor("automation", "write", "key_1")
    assert (await refusal(accounts.change_own_password(gateway, key, "a", "b"))).code == "access_denied"
    assert (await refusal(accounts.sessions(gateway, key))).code == "access_denied"
