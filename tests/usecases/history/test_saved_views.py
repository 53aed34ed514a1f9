"""Names for sets of filters: each user has their own."""

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.access import accounts
from postern.usecases.history import saved_views
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


async def test_a_view_is_saved_renamed_and_deleted_by_its_owner_alone(house: House) -> None:
    made = await accounts.create_user(house.gateway, OWNER, "ada", "a long enough password", "read")
    ada, bob = Actor("ada", "read", made.id), Actor("bob", "admin", "usr_bob")
    view = await saved_views.save(house.gateway, ada, "  Failed   orders ", "status=failed")
    assert [(one.name, one.query) for one in await saved_views.listing(house.gateway, ada)] == [
        ("Failed orders", "status=failed")
    ]
    assert await saved_views.listing(house.gateway, bob) == []
    for forbidden in (
        saved_views.rename(house.gateway, bob, view.id, "Mine"),
        saved_views.delete(house.gateway, bob, view.id),
    ):
        with pytest.raises(Refused, match="no such view of yours"):
            await forbidden
    await saved_views.rename(house.gateway, ada, view.id, "Failed")
    assert [one.name for one in await saved_views.listing(house.gateway, ada)] == ["Failed"]
    await saved_views.delete(house.gateway, ada, view.id)
    assert await saved_views.listing(house.gateway, ada) == []


async def test_a_user_who_is_removed_leaves_no_views(house: House) -> None:
    made = await accounts.create_user(house.gateway, OWNER, "eve", "a long enough password", "read")
    await accounts.create_user(house.gateway, OWNER, "root", "a long enough password", "admin")
    eve = Actor("eve", "read", made.id)
    await saved_views.save(house.gateway, eve, "Mine", "")
    await accounts.delete_user(house.gateway, OWNER, made.id)
    assert await saved_views.listing(house.gateway, eve) == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\x07b"])
async def test_a_name_that_is_none_is_refused(house: House, name: str) -> None:
    with pytest.raises(Refused):
        await saved_views.save(house.gateway, OWNER, name, "")


async def test_there_is_a_bound_to_them(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MOST", 1)
    await saved_views.save(house.gateway, OWNER, "One", "")
    with pytest.raises(Refused, match="delete one first"):
        await saved_views.save(house.gateway, OWNER, "Two", "")
