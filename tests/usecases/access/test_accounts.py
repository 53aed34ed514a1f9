"""Keys and users, as far as no request is needed to see it."""

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.access import accounts
from support.house import OWNER, House

pytestmark = pytest.mark.anyio
PASSWORD = "a password of the tests"


@pytest.mark.parametrize(
    ("name", "taken"), [("k", True), (" k ", True), ("k" * 200, True), ("k" * 201, False), (" ", False)]
)
async def test_a_keys_name_has_1_to_200_characters(house: House, name: str, taken: bool) -> None:
    if taken:
        assert (await accounts.create_key(house.gateway, OWNER, name, "read")).name == name.strip()
    else:
        with pytest.raises(Refused) as refused:
            await accounts.create_key(house.gateway, OWNER, name, "read")
        assert [error.field for error in refused.value.errors] == ["name"]


@pytest.mark.parametrize(
    ("name", "taken"), [("U", True), ("u" * 80, True), ("u" * 81, False), ("", False), ("a\tb", False)]
)
async def test_a_users_name_has_1_to_80_printable_characters(house: House, name: str, taken: bool) -> None:
    if taken:
        made = await accounts.create_user(house.gateway, OWNER, name, PASSWORD, "read")
        assert made.name == name.lower()
        with pytest.raises(Refused, match="of this name already"):
            await accounts.create_user(house.gateway, OWNER, f" {name} ", PASSWORD, "read")
    else:
        with pytest.raises(Refused) as refused:
            await accounts.create_user(house.gateway, OWNER, name, PASSWORD, "nobody")
        assert [error.field for error in refused.value.errors] == ["level", "name"]


async def test_a_key_is_whom_it_was_made_for_until_it_is_deleted(house: House) -> None:
    made = await accounts.create_key(house.gateway, OWNER, "shop", "write")
    assert await accounts.actor_of_key(house.gateway, made.key) == Actor("shop", "write", made.id)
    for wrong in ("", "pk_", made.key + "x", made.key[3:], "\udcff"):
        with pytest.raises(Refused, match="not_authenticated"):
            await accounts.actor_of_key(house.gateway, wrong)
    await accounts.delete_key(house.gateway, OWNER, made.id)
    with pytest.raises(Refused, match="not_authenticated"):
        await accounts.actor_of_key(house.gateway, made.key)
    with pytest.raises(Refused, match="not_found"):
        await accounts.delete_key(house.gateway, OWNER, made.id)


async def test_when_a_key_was_last_used_is_written_down_once_a_minute(house: House) -> None:
    made = await accounts.create_key(house.gateway, OWNER, "shop", "read")
    began = house.gateway.clock()

    async def used(after: float) -> float | None:
        house.gateway.clock = lambda: began + after
        await accounts.actor_of_key(house.gateway, made.key)
        (key,) = await accounts.keys(house.gateway, OWNER)
        return None if key.last_used_at is None else round(float(key.last_used_at) - began)

    assert [await used(after) for after in (1.0, 30.0, 62.0)] == [1, 1, 62]


async def test_a_user_is_not_given_a_level_that_there_is_not(house: House) -> None:
    user = await accounts.create_user(house.gateway, OWNER, "ada", "a password of the tests", "write")
    with pytest.raises(Refused) as refused:
        await accounts.change_user(house.gateway, OWNER, user.id, level="all")
    assert [error.field for error in refused.value.errors] == ["level"]
    assert (await accounts.user(house.gateway, OWNER, user.id)).level == "write"
