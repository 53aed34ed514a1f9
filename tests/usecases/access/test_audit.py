"""What is noted of a change; that whatever changes something leaves a note is asked of every operation
(`tests/surfaces/rest/test_openapi.py`)."""

from postern.usecases.access import audit
from postern.usecases.operations import retention
from support.clock import later
from support.house import OWNER, House


async def test_what_happens_by_itself_leaves_none(house: House) -> None:
    before = (await audit.listing(house.gateway, OWNER)).items
    later(house.gateway, 3600)
    await retention.RetentionLoop(house.gateway).round()
    assert (await audit.listing(house.gateway, OWNER)).items == before
    assert await house.history() == []


def test_a_note_has_every_field_that_differs_and_of_a_long_value_its_beginning() -> None:
    before = {"same": 1, "gone": "a", "in": {"deep": {"x": 1}, "same": 2}, "long": "o" * 500}
    after = {"same": 1, "new": None, "in": {"deep": {"x": 2}, "same": 2}, "long": "n" * 501}
    assert audit.differences(before, after) == {
        "gone": {"before": "a", "after": None},
        "in.deep.x": {"before": 1, "after": 2},
        "long": {"before": "o" * 500, "after": "n" * 500 + "…"},
    }
