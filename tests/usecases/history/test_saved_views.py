"""Names for sets of filters: each user has their own."""

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.access import accounts, audit
from postern.usecases.history import saved_views
from support.house import OWNER, House
from support.refusals import fields_refused


async def test_a_view_is_saved_renamed_and_deleted_by_its_owner_alone(house: House) -> None:
    await accounts.create_user(house.gateway, OWNER, "root", "a long enough password", "admin")
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
    await saved_views.save(house.gateway, ada, "Mine", "")
    await accounts.delete_user(house.gateway, OWNER, made.id)
    assert await saved_views.listing(house.gateway, ada) == [], "who is removed leaves none"


async def test_names_and_filters_are_as_long_as_a_page_can_show(house: House) -> None:
    view = await saved_views.save(house.gateway, OWNER, "x" * 80, "q" * 2_000)
    await saved_views.rename(house.gateway, OWNER, view.id, "y")
    (kept,) = await saved_views.listing(house.gateway, OWNER)
    assert (kept.name, kept.query, kept.owner) == ("y", "q" * 2_000, "owner")
    with pytest.raises(Refused, match="too long"):
        await saved_views.save(house.gateway, OWNER, "Mine", "q" * 2_001)
    for name in ("", "  ", "x" * 81, "a\x07b"):
        for asked in (
            saved_views.rename(house.gateway, OWNER, view.id, name),
            saved_views.save(house.gateway, OWNER, name, ""),
        ):
            assert list(await fields_refused(asked)) == ["name"]
    await saved_views.delete(house.gateway, OWNER, view.id)
    noted = (await audit.listing(house.gateway, OWNER, subject=view.id)).items
    assert [(one.action, one.changes) for one in noted] == [
        ("view deleted", {}),
        ("view renamed", {"name": "y"}),
        ("view saved", {"name": "x" * 80}),
    ]


async def test_who_has_as_many_as_there_may_be_deletes_one_first(house: House) -> None:
    """Fifty of one user, whatever the others have."""
    await saved_views.save(house.gateway, Actor("ada", "read", "usr_ada"), "Hers", "")
    for number in range(50):
        await saved_views.save(house.gateway, OWNER, f"View {number}", "")
    with pytest.raises(Refused, match="You have 50 saved views"):
        await saved_views.save(house.gateway, OWNER, "One more", "")
