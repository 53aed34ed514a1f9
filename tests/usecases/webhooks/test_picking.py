"""Choosing one webhook among thousands, by a part of its name or by its id."""

from postern.usecases.webhooks import picking, webhooks
from support.house import OWNER, House
from support.refusals import fields_refused


async def test_whoever_types_a_whole_name_or_a_word_of_it_finds_it_among_many(house: House) -> None:
    expected = [
        "Shop 7",
        "Shop 7, old",
        "Other shop 7",
        "Stock of shop 7",
        "Shop 70",
        "Shop 701",
        "Workshop 7",
    ]
    for place in (3, 4, 2, 0, 1, 5, 6):  # they are made in another order
        await house.webhook(name=expected[place])
    found = await picking.choices(house.gateway, OWNER, "shop 7")
    assert [one.name for one in found] == expected


async def test_thousands_are_twenty_choices_and_the_oldest_is_no_deleted_one(house: House) -> None:
    oldest = await house.webhook(name="The oldest")
    for number in range(23):
        await house.webhook(name=f"Number {number}")
    assert len(await picking.choices(house.gateway, OWNER)) == 20
    assert len(await picking.choices(house.gateway, OWNER, "number")) == 20
    assert await picking.names(house.gateway, OWNER, [oldest.id], deleted=True) == {oldest.id: "The oldest"}
    assert [one.id for one in await picking.choices(house.gateway, OWNER, "oldest")] == [oldest.id]


async def test_a_name_that_one_alone_has_is_enough(house: House) -> None:
    twin, other = await house.webhook(name="Twin"), await house.webhook(name="twin")
    single = await house.webhook(name="Single")
    assert await picking.meant(house.gateway, OWNER, " single ") == single.id
    assert await picking.meant(house.gateway, OWNER, twin.id) == twin.id
    assert await picking.meant(house.gateway, OWNER, "") == ""
    for typed, wrong in (("Twin", "2 webhooks have this name"), ("Nobody", "no webhook has this name")):
        assert wrong in (await fields_refused(picking.meant(house.gateway, OWNER, typed)))["webhook"]
    assert {one.typed for one in await picking.choices(house.gateway, OWNER)} == {twin.id, other.id, "Single"}


async def test_only_those_whose_callers_sign_are_offered_where_signatures_are_tried(house: House) -> None:
    await house.webhook(name="Open")
    signed = await house.webhook(
        name="Signed", authentication={"method": "hmac", "provider": "generic", "secret": "a secret to sign"}
    )
    assert [one.id for one in await picking.choices(house.gateway, OWNER, signed=True)] == [signed.id]


async def deleted(house: House, name: str) -> str:
    made = await house.webhook(name=name)
    await webhooks.remove(house.gateway, OWNER, made.id)
    return made.id


async def test_a_choice_says_what_is_typed_for_it_and_its_folder(house: House) -> None:
    single = await house.webhook(name="Single", folder="Shops")
    twin, _ = await house.webhook(name="Twin"), await house.webhook(name="Twin")
    gone = await deleted(house, "Gone")
    for webhook_id, expected in (
        (single.id, ("Single", "Single", "Shops")),
        (twin.id, ("Twin", twin.id, None)),
        (gone, ("Gone (deleted)", gone, None)),
        ("wh_nobody", ("wh_nobody", "wh_nobody", None)),
    ):
        one = await picking.one(house.gateway, OWNER, webhook_id)
        assert (one.id, (one.name, one.typed, one.folder)) == (webhook_id, expected)
    (found,) = await picking.choices(house.gateway, OWNER, "single")
    assert found == await picking.one(house.gateway, OWNER, single.id)
    (found,) = await picking.choices(house.gateway, OWNER, "gone", deleted=True)
    assert found == await picking.one(house.gateway, OWNER, gone)


async def test_two_deleted_ones_of_a_name_are_chosen_by_their_ids(house: House) -> None:
    for name in ("Gone", "gone", "Gone before"):
        await deleted(house, name)
    wrong = await fields_refused(picking.meant(house.gateway, OWNER, "Gone (deleted)", field="by"))
    assert "2 webhooks have this name" in wrong["by"]
    assert list(await fields_refused(picking.meant(house.gateway, OWNER, "before"))) == ["webhook"]
    there = await house.webhook(name="Gone")
    assert await picking.meant(house.gateway, OWNER, "gone") == there.id, "one that is there is meant first"


async def test_names_are_of_deleted_ones_where_they_are_asked_for(house: House) -> None:
    there, gone = (await house.webhook(name="There")).id, await deleted(house, "Gone")
    ids = [there, gone, "wh_nobody"]
    assert await picking.names(house.gateway, OWNER, ids) == {there: "There"}
    both = {there: "There", gone: "Gone (deleted)"}
    assert await picking.names(house.gateway, OWNER, ids, deleted=True) == both
    # What another process has made a moment ago is not in memory yet.
    house.gateway.runtime.directory._forget(there)
    assert await picking.names(house.gateway, OWNER, ids) == {there: "There"}
