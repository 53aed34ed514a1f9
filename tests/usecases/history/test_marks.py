"""Bookmarks and notes: written beside a call, found again, and gone with it."""

import pytest
from sqlalchemy import func, select

from postern.core.access.accounts import Actor
from postern.core.history.marks import LONGEST_NOTE, MOST_NOTES
from postern.core.operations.retention import RetentionPolicy
from postern.core.problems import Refused
from postern.stores.sql.tables import bookmarks
from postern.surfaces.rest.history import NoteRequest
from postern.usecases.access import audit
from postern.usecases.deliveries import replays
from postern.usecases.history import history, marks
from postern.usecases.history.filters import filter_of
from postern.usecases.operations import retention
from support.clock import HeldClock
from support.desk import Desk, on_both
from support.house import OWNER, House
from support.refusals import fields_refused, refused

ANNA, BEN, READER = Actor("anna", "write"), Actor("ben", "write"), Actor("eve", "read")


async def called(house: House, count: int = 1) -> list[str]:
    webhook = await house.webhook()
    return [await house.recorded(webhook) for _ in range(count)]


async def test_a_marked_call_is_found_again(house: House) -> None:
    _, second, _ = await called(house, 3)
    made = await marks.bookmark(house.gateway, ANNA, second)
    assert made.by == "anna"
    assert (await marks.bookmark(house.gateway, BEN, second)).by == "anna", "marked twice is marked once"
    assert [one.id for one in await house.history(bookmarked=True)] == [second]
    assert [one.bookmarked for one in await house.history()] == [False, True, False]
    plan = await replays.plan(house.gateway, ANNA, filter_of(bookmarked=True))
    assert plan.count == 1 and plan.filter.bookmarked
    await marks.remove_bookmark(house.gateway, BEN, second)
    await marks.remove_bookmark(house.gateway, BEN, second)
    assert await house.history(bookmarked=True) == []


@on_both
async def test_what_is_marked_is_noted_once_on_every_database(desk: Desk) -> None:
    call = await desk.accepted(await desk.webhook(), {})
    for author in (ANNA, BEN):
        await marks.bookmark(desk.gateway, author, call)
    for author in (BEN, ANNA):
        await marks.remove_bookmark(desk.gateway, author, call)
    noted = [(one.actor, one.action) for one in (await audit.listing(desk.gateway, OWNER)).items]
    assert noted[:-1] == [("ben", "bookmark removed"), ("anna", "call bookmarked")]


async def test_a_note_has_who_and_when_and_its_author_or_an_administrator_deletes_it(house: House) -> None:
    (call,) = await called(house)
    one = await marks.add_note(house.gateway, ANNA, call, "  Asked the shop.\nThey look into it. <b>  ")
    shown = (await history.show(house.gateway, READER, call)).notes
    assert shown == [one] and (one.by, one.text) == ("anna", "Asked the shop.\nThey look into it. <b>")
    assert (await refused(marks.delete_note(house.gateway, BEN, call, one.id))).code == "access_denied"
    two = await marks.add_note(house.gateway, BEN, call, "Done.")
    await marks.delete_note(house.gateway, OWNER, call, one.id)
    await marks.delete_note(house.gateway, BEN, call, two.id)
    assert (await history.show(house.gateway, READER, call)).notes == []
    with pytest.raises(Refused, match="no such note"):
        await marks.delete_note(house.gateway, BEN, call, two.id)


async def test_what_is_no_note_is_refused_and_blanks_at_the_ends_of_one_do_not_count(house: House) -> None:
    (call,) = await called(house)
    longest = "x" * LONGEST_NOTE
    assert (await marks.add_note(house.gateway, ANNA, call, f"  {longest} \n")).text == longest
    for text in ("", "  \n", longest + "x", "a\0b", "half \ud83d", "first \ud800"):
        assert list(await fields_refused(marks.add_note(house.gateway, ANNA, call, text))) == ["text"]


def test_programs_are_told_how_long_a_note_may_be() -> None:
    text = NoteRequest.model_json_schema(by_alias=True)["properties"]["text"]
    assert text["maxLength"] == LONGEST_NOTE


async def test_notes_are_bounded_and_readers_write_none(house: House) -> None:
    (call,) = await called(house)
    for number in range(MOST_NOTES):
        await marks.add_note(house.gateway, ANNA, call, str(number))
    with pytest.raises(Refused, match="at most 50 notes"):
        await marks.add_note(house.gateway, ANNA, call, "one more")
    for asked in (
        marks.bookmark(house.gateway, READER, call),
        marks.remove_bookmark(house.gateway, READER, call),
        marks.add_note(house.gateway, READER, call, "x"),
        marks.bookmark(house.gateway, ANNA, "inv_" + "0" * 32),
    ):
        with pytest.raises(Refused):
            await asked


async def test_retention_takes_a_marked_call_with_all_of_it_when_the_page_says(house: House) -> None:
    marked, _ = await called(house, 2)
    await marks.bookmark(house.gateway, ANNA, marked)
    await marks.add_note(house.gateway, ANNA, marked, "Keep?")
    own = await house.webhook(historyRetentionDays=2)
    other = await history.show(house.gateway, READER, await house.recorded(own))
    shorter = await retention.kept_until(house.gateway, READER, other.id)
    assert shorter is not None and round(shorter - other.received_at) == 2 * 86_400
    until = await retention.kept_until(house.gateway, READER, marked)
    assert until is not None
    await house.deliver()
    house.gateway.retention = RetentionPolicy(history_days=30)
    HeldClock(house.gateway, until + 1.0)
    await retention.prune(house.gateway, OWNER)
    assert await house.history() == []
    kept = await house.gateway.store.marks.of(marked)
    assert kept.notes == [] and await house.history(bookmarked=True) == []
    counted = select(func.count()).select_from(bookmarks)
    assert house.gateway.store.database.read_now(lambda connection: connection.scalar(counted)) == 0
