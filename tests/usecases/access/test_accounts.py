"""Keys and users, as far as no request is needed to see it."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import pytest
from argon2 import PasswordHasher

from postern.core.access.accounts import Actor
from postern.core.limits import FAILED_AUTHENTICATIONS_PER_MINUTE, Limits
from postern.core.problems import Refused
from postern.usecases.access import accounts, audit, passwords
from postern.usecases.access.known_browsers import browser_token
from postern.usecases.access.views import User
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import fields_refused, refused

PASSWORD = "a password of the tests"


async def test_a_name_has_some_printable_characters(house: House) -> None:
    makes: tuple[Callable[[str, str], Awaitable[Any]], ...] = (
        lambda name, level: accounts.create_key(house.gateway, OWNER, name, level),
        lambda name, level: accounts.create_user(house.gateway, OWNER, name, PASSWORD, level),
    )
    for make in makes:
        for name in ("k", " l ", "m" * 80):
            assert (await make(name, "read")).name == name.strip()
        for name in ("k" * 201, " ", "a\nb"):
            assert list(await fields_refused(make(name, "all"))) == ["level", "name"]


async def test_a_users_name_is_shorter_and_nobody_elses(house: House) -> None:
    for name, said in (("u" * 81, "80 printable"), (" BOSS ", "of this name already")):
        await accounts.create_user(house.gateway, OWNER, name[:80], PASSWORD, "read")
        refusal = await refused(accounts.create_user(house.gateway, OWNER, name, PASSWORD, "read"))
        assert said in str([one.message for one in refusal.errors]) + refusal.detail


# --- signing in ------------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed in no time: here it is about who is let in, not about how well they are kept."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", hasher)
    monkeypatch.setattr(accounts, "NOBODY", hasher.hash("nobody's"))


class Clock(HeldClock):
    """And that of its limits."""

    def __init__(self, house: House) -> None:
        super().__init__(house.gateway)
        self.began = self.now
        house.gateway.runtime.limits = Limits(lambda: self.now)


async def somebody(house: House, name: str = "ada", level: str = "read") -> User:
    made = await accounts.create_user(house.gateway, OWNER, name, PASSWORD, level)
    return await accounts.user(house.gateway, OWNER, made.id)


async def sign_in(
    house: House, name: str = "ada", password: str = PASSWORD, address: str = "192.0.2.1", **more: str
) -> str:
    return await accounts.sign_in(house.gateway, name, password, address, **more)


async def last_note(house: House) -> tuple[str, str, str, dict[str, object]]:
    note = (await audit.listing(house.gateway, OWNER, 1)).items[0]
    return note.actor, note.action, note.subject, note.changes


async def test_a_session_says_where_and_when_it_began_and_was_last_used(house: House, quick: None) -> None:
    clock, user = Clock(house), await somebody(house, level="write")
    clock.now += 5
    secret = await sign_in(house, " ADA ", address="a" * 100, user_agent="Browser/1 " + "b" * 400)
    assert secret.startswith("ps_")
    actor = await accounts.actor_of_session(house.gateway, secret)
    assert (actor.name, actor.level, actor.id) == ("ada", "write", user.id)
    assert await last_note(house) == ("ada", "signed in", actor.session, {"address": "a" * 80})
    (session,) = await accounts.sessions(house.gateway, actor)
    assert (session.id, session.user_id) == (actor.session, user.id)
    assert (session.user, session.current, session.address) == ("ada", True, "a" * 80)
    assert session.user_agent == ("Browser/1 " + "b" * 400)[:300]
    assert (session.created_at, session.last_seen_at) == (clock.began + 5, clock.began + 5)
    assert (await accounts.user(house.gateway, OWNER, user.id)).last_signed_in_at == clock.began + 5
    for after, seen in ((59, 5), (1, 5), (1, 66), (60, 66), (1, 127)):
        clock.now += after
        await accounts.actor_of_session(house.gateway, secret)
        (session,) = await accounts.sessions(house.gateway, actor)
        assert session.last_seen_at == clock.began + seen, "once a minute is exact enough"
    await accounts.sign_out(house.gateway, secret)
    assert (await refused(accounts.actor_of_session(house.gateway, secret))).code == "not_authenticated"
    assert await last_note(house) == ("ada", "signed out", actor.session, {})
    before = (await audit.listing(house.gateway, OWNER)).items
    await accounts.sign_out(house.gateway, secret)
    assert (await audit.listing(house.gateway, OWNER)).items == before


async def test_a_session_lasts_no_longer_for_a_clock_that_was_set_by_mistake(house: House) -> None:
    clock, _ = Clock(house), await somebody(house)
    # One that was said to be over stays so when the clock is set back.
    idle = await sign_in(house)
    for seconds in (12 * 3600 + 1, -3600):
        clock.now += seconds
        assert (await refused(accounts.actor_of_session(house.gateway, idle))).code == "not_authenticated"
    clock.now += 365 * 86400
    secret = await sign_in(house)
    clock.now -= 12 * 3600
    # A clock that is put right by hours signs nobody out.
    await accounts.actor_of_session(house.gateway, secret)
    clock.now -= 1
    with pytest.raises(Refused, match="The session is over"):
        await accounts.actor_of_session(house.gateway, secret)


async def test_a_hundred_failures_a_minute_from_one_address_and_two_hundred_as_one_name(
    house: House, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(house)

    async def nobody(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(accounts, "matches", nobody)
    monkeypatch.setattr(house.gateway.store.people, "sessions", nobody)

    async def fails(name: str, address: str) -> str:
        return (await refused(sign_in(house, name, "wrong", address))).code

    for number in range(100):
        assert await fails(f"name {number}", "192.0.2.1") == "not_authenticated"
    refusal = await refused(sign_in(house, "another", "wrong", "192.0.2.1"))
    assert (refusal.code, refusal.retry_after) == ("rate_limited", 1)
    assert refusal.detail == "Too many failed sign-ins. Wait a moment, then try again."
    clock.now += 60
    for number in range(200):
        assert await fails("ada", f"192.0.2.{number}") == "not_authenticated"
    assert await fails("ada", "198.51.100.1") == "not_authenticated", "one try a minute from elsewhere"
    assert await fails("ada", "198.51.100.1") == "rate_limited"


async def test_a_right_password_is_counted_as_no_failure(house: House, quick: None) -> None:
    Clock(house)
    await somebody(house)
    for _ in range(21):
        await sign_in(house)
    token = browser_token(house.gateway, "ada")
    for _ in range(21):
        await sign_in(house, browser=token)
    for _ in range(20):
        assert (await refused(sign_in(house, "nobody", address="192.0.2.9"))).code == "not_authenticated"
    assert (await refused(sign_in(house, "nobody", address="192.0.2.9"))).code == "rate_limited"


async def test_a_password_that_is_changed_while_it_is_compared_opens_and_changes_nothing(
    house: House, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await somebody(house)
    actor = await accounts.actor_of_session(house.gateway, await sign_in(house))
    new = "a new password of the tests"
    compare = accounts.matches

    async def slowly(*asked: Any) -> bool:
        right = await compare(*asked)
        monkeypatch.setattr(accounts, "matches", compare)
        await accounts.change_user(house.gateway, OWNER, user.id, password=new)
        return right

    monkeypatch.setattr(accounts, "matches", slowly)
    assert (await refused(sign_in(house))).code == "not_authenticated"
    assert await accounts.sessions(house.gateway, OWNER) == []

    monkeypatch.setattr(accounts, "matches", slowly)
    own = accounts.change_own_password(house.gateway, actor, new, "a password of somebody else")
    assert [error.field for error in (await refused(own)).errors] == ["oldPassword"]
    await sign_in(house, password=new)


async def test_a_password_that_nobody_had_time_to_compare_is_no_failure(
    house: House, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(house)
    await somebody(house)
    actor = await accounts.actor_of_session(house.gateway, await sign_in(house))
    compare = accounts.matches

    async def busy(*_: Any) -> bool:
        raise Refused("temporarily_unavailable")

    monkeypatch.setattr(accounts, "matches", busy)
    for _ in range(FAILED_AUTHENTICATIONS_PER_MINUTE + 1):
        asked = accounts.change_own_password(house.gateway, actor, PASSWORD, "another password")
        assert (await refused(asked)).code == "temporarily_unavailable"
    monkeypatch.setattr(accounts, "matches", compare)
    await accounts.change_own_password(house.gateway, actor, PASSWORD, "another password")


# --- who there is ----------------------------------------------------------------------------------------------------


async def test_a_key_is_whom_it_was_made_for_until_it_is_deleted_and_is_never_shown_again(
    house: House,
) -> None:
    clock = Clock(house)
    made = await accounts.create_key(house.gateway, OWNER, " shop ", "write")
    shop = {"name": "shop", "level": "write"}
    assert await last_note(house) == ("owner", "api-key created", made.id, shop)
    (shown,) = await accounts.keys(house.gateway, OWNER)
    assert (shown.id, shown.name, shown.level, shown.created_by) == (made.id, "shop", "write", "owner")
    assert (shown.prefix, shown.created_at, shown.last_used_at) == (made.key[:9], clock.began, None)
    assert made.key not in repr(shown) + repr(made)
    for after, used in ((1, 1), (60, 1), (1, 62)):
        clock.now += after
        await accounts.actor_of_key(house.gateway, made.key)
        assert (await accounts.keys(house.gateway, OWNER))[0].last_used_at == clock.began + used
    assert await accounts.actor_of_key(house.gateway, made.key) == Actor("shop", "write", made.id)
    await accounts.delete_key(house.gateway, OWNER, made.id)
    assert await last_note(house) == ("owner", "api-key deleted", made.id, {})
    for wrong in ("", "pk_", made.key, made.key + "x", made.key[3:], "\udcff"):
        assert (await refused(accounts.actor_of_key(house.gateway, wrong))).code == "not_authenticated"
    assert (await refused(accounts.delete_key(house.gateway, OWNER, made.id))).code == "not_found"


async def test_the_key_of_the_environment_is_an_admin_of_its_own(house: House) -> None:
    for wrong in ("", "the admin key"):
        assert (await refused(accounts.actor_of_key(house.gateway, wrong))).code == "not_authenticated"
    house.gateway.site.admin_key_digest = sha256(b"the admin key").digest()
    actor = await accounts.actor_of_key(house.gateway, "the admin key")
    assert (actor.name, actor.level, actor.id) == ("POSTERN_ADMIN_KEY", "admin", "environment")
    assert (await refused(accounts.actor_of_key(house.gateway, "another key"))).code == "not_authenticated"


async def test_a_change_of_a_user_says_what_it_was_and_nothing_is_noted_where_nothing_differs(
    house: House, quick: None
) -> None:
    clock, _ = Clock(house), await somebody(house, "boss", "admin")
    user = await somebody(house)
    assert (user.name, user.level, user.created_by, user.created_at) == ("ada", "read", "owner", clock.began)
    assert user.last_signed_in_at is None
    created = await last_note(house)
    assert created == ("owner", "user created", user.id, {"name": "ada", "level": "read"})
    assert await accounts.change_user(house.gateway, OWNER, user.id, level="read") == user
    assert await last_note(house) == created
    unknown = await refused(accounts.change_user(house.gateway, OWNER, user.id, level="all"))
    assert [error.field for error in unknown.errors] == ["level"]
    changed = await accounts.change_user(house.gateway, OWNER, user.id, level="write")
    assert (changed.level, changed.id) == ("write", user.id)
    levels = {"level": {"before": "read", "after": "write"}}
    assert await last_note(house) == ("owner", "user changed", user.id, levels)
    await accounts.change_user(house.gateway, OWNER, user.id, password="another password")
    assert (await last_note(house))[3] == {"password": "set"}
    assert (await refused(sign_in(house))).code == "not_authenticated"
    assert await sign_in(house, password="another password")
    await accounts.delete_user(house.gateway, OWNER, user.id)
    assert await last_note(house) == ("owner", "user deleted", user.id, {"name": "ada"})
    for gone in (
        accounts.user(house.gateway, OWNER, user.id),
        accounts.change_user(house.gateway, OWNER, user.id, level="read"),
        accounts.delete_user(house.gateway, OWNER, user.id),
    ):
        refusal = await refused(gone)
        assert (refusal.code, refusal.detail) == ("not_found", "there is no user with this id")


async def test_an_admin_who_sets_a_password_ends_the_users_sessions_and_keeps_the_own_one(
    house: House, quick: None
) -> None:
    boss, user = await somebody(house, "boss", "admin"), await somebody(house)
    own, elsewhere = await sign_in(house, "boss"), await sign_in(house, "boss")
    theirs = await sign_in(house)
    me = await accounts.actor_of_session(house.gateway, own)

    async def alive() -> list[bool]:
        found = []
        for secret in (own, elsewhere, theirs):
            try:
                await accounts.actor_of_session(house.gateway, secret)
                found.append(True)
            except Refused:
                found.append(False)
        return found

    await accounts.change_user(house.gateway, me, user.id, level="write")
    assert await alive() == [True, True, True], "another level ends no session"
    await accounts.change_user(house.gateway, me, user.id, password="another password")
    assert await alive() == [True, True, False]
    await accounts.change_user(house.gateway, me, boss.id, password="another password")
    assert await alive() == [True, False, False]
    key = Actor("a program", "admin", "key_1")
    await accounts.change_user(house.gateway, key, boss.id, password=PASSWORD)
    assert await alive() == [False, False, False], "a key has no session that could stay"


async def test_a_password_has_8_to_256_characters(house: House, quick: None) -> None:
    await somebody(house, "boss", "admin")
    user = await somebody(house)
    me, present = await accounts.actor_of_session(house.gateway, await sign_in(house)), PASSWORD
    for length, taken in ((7, False), (8, True), (256, True), (257, False)):
        password = "p" * length
        for asked, field in (
            (accounts.create_user(house.gateway, OWNER, f"b{length}", password, "read"), "password"),
            (accounts.change_own_password(house.gateway, me, present, password), "newPassword"),
            (accounts.change_user(house.gateway, OWNER, user.id, password=password), "password"),
        ):
            if taken:
                await asked
                present = password
            else:
                assert await fields_refused(asked) == {field: "has 8 to 256 characters"}
        assert await sign_in(house, password=present)


async def test_who_changes_the_own_password_is_slowed_by_wrong_ones_alone(house: House, quick: None) -> None:
    clock = Clock(house)
    await somebody(house, level="admin")
    me = await accounts.actor_of_session(house.gateway, await sign_in(house))
    for _ in range(21):
        await accounts.change_own_password(house.gateway, me, PASSWORD, PASSWORD)
    assert await last_note(house) == ("ada", "password changed", me.id, {"password": "set"})
    for _ in range(20):
        wrong = await fields_refused(accounts.change_own_password(house.gateway, me, "wrong", PASSWORD))
        assert wrong == {"oldPassword": "is not right"}
    slowed = await refused(accounts.change_own_password(house.gateway, me, PASSWORD, PASSWORD))
    assert (slowed.code, slowed.retry_after) == ("rate_limited", 4)
    other = await accounts.actor_of_session(house.gateway, await sign_in(house))
    slowed = await refused(accounts.change_own_password(house.gateway, other, PASSWORD, PASSWORD))
    assert slowed.code == "rate_limited", "another session of theirs, too"
    clock.now += 3
    await accounts.change_own_password(house.gateway, me, PASSWORD, PASSWORD)


async def test_a_password_may_be_any_text(house: House, quick: None) -> None:
    """Half a character, too: a form may send one."""
    await accounts.create_user(house.gateway, OWNER, "ada", "half a character \ud800", "read")
    assert await sign_in(house, password="half a character \ud800")
    assert (await refused(sign_in(house, password="half a character ?"))).code == "not_authenticated"


async def test_a_new_password_does_not_give_back_a_level_that_was_taken_meanwhile(
    house: House, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await somebody(house, "boss", "admin")
    user = await somebody(house, level="admin")
    me = await accounts.actor_of_session(house.gateway, await sign_in(house))
    hashed = accounts.hashed

    async def meanwhile(password: str) -> str:
        await accounts.change_user(house.gateway, OWNER, user.id, level="read")
        return await hashed(password)

    monkeypatch.setattr(accounts, "hashed", meanwhile)
    await accounts.change_own_password(house.gateway, me, PASSWORD, "another password")
    assert (await accounts.user(house.gateway, OWNER, user.id)).level == "read"
    await accounts.change_user(house.gateway, OWNER, user.id, level="admin")
    changed = await accounts.change_user(house.gateway, OWNER, user.id, password=PASSWORD)
    assert changed.level == "read", "what is answered is what is stored"


async def test_the_first_start_makes_an_admin_and_a_later_one_nobody(house: House, quick: None) -> None:
    clock = Clock(house)
    password = await accounts.ensure_admin(house.gateway, "")
    assert password is not None
    (admin,) = await accounts.users(house.gateway, OWNER)
    assert (admin.name, admin.level) == ("admin", "admin")
    assert (admin.created_by, admin.created_at) == ("first start", clock.began)
    created = {"name": "admin", "level": "admin"}
    assert await last_note(house) == ("first start", "user created", admin.id, created)
    assert admin.id.startswith("usr_")
    assert (await audit.listing(house.gateway, OWNER)).items[0].level == "admin"
    assert await sign_in(house, "admin", password)
    assert await accounts.ensure_admin(house.gateway, PASSWORD) is None
    assert (await refused(sign_in(house, "admin", PASSWORD))).code == "not_authenticated"


# --- invitations -----------------------------------------------------------------------------------------------------


async def invite(house: House, name: str = "ada", level: str = "write") -> str:
    """The secret in the link."""
    made = await accounts.create_user(house.gateway, OWNER, name, None, level)
    before, _, secret = str(made.invitation).rpartition("/")
    assert before == f"{house.gateway.site.base_url}/join"
    assert secret not in repr(made)
    return secret


async def test_who_is_invited_chooses_a_password_once(house: House, quick: None) -> None:
    secret = await invite(house)
    for wrong in (secret, "", f"invited:0:{secret}"):
        assert (await refused(sign_in(house, password=wrong))).code == "not_authenticated"
    assert (await accounts.invited(house.gateway, secret)).name == "ada"
    assert [*await fields_refused(accounts.join(house.gateway, secret, "short"))] == ["password"]
    both = await asyncio.gather(
        *(accounts.join(house.gateway, secret, word) for word in (PASSWORD, "another one")),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in both) == ["Refused", "User"]
    word = PASSWORD if isinstance(both[0], User) else "another one"
    assert (
        await accounts.actor_of_session(house.gateway, await sign_in(house, password=word))
    ).level == "write"
    assert (await refused(accounts.invited(house.gateway, secret))).code == "not_found"
    assert [one.invited_until for one in await accounts.users(house.gateway, OWNER)] == [None]
    kept = str([one.changes for one in (await audit.listing(house.gateway, OWNER)).items])
    assert secret not in kept


async def test_an_invitation_ends_after_seven_days_and_by_another_one(house: House, quick: None) -> None:
    clock = Clock(house)
    await somebody(house, "boss", "admin")
    first, second = await invite(house, level="read"), await invite(house)
    assert (await refused(accounts.join(house.gateway, first, PASSWORD))).code == "not_found"
    assert (await accounts.invited(house.gateway, second)).level == "write"
    clock.now += 7 * 86_400 - 1.5
    assert (await accounts.invited(house.gateway, second)).invited_until == int(clock.began) + 7 * 86_400
    clock.now += 2
    assert (await refused(accounts.join(house.gateway, second, PASSWORD))).code == "not_found"
    await accounts.join(house.gateway, await invite(house), PASSWORD)
    assert "of this name already" in (await refused(invite(house))).detail


async def test_an_invited_admin_is_not_the_one_who_stays(house: House, quick: None) -> None:
    boss = await somebody(house, "boss", "admin")
    secret = await invite(house, level="admin")
    assert (await refused(accounts.delete_user(house.gateway, OWNER, boss.id))).code == "conflict"
    assert (
        await refused(accounts.change_user(house.gateway, OWNER, boss.id, level="read"))
    ).code == "conflict"
    await accounts.join(house.gateway, secret, PASSWORD)
    await accounts.delete_user(house.gateway, OWNER, boss.id)
