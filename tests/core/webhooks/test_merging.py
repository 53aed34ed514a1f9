"""Disjoint changes go together, and colliding ones are both told."""

import pytest

from postern.core.documents import Document
from postern.core.webhooks.merging import Collision, has_moved, merged

SEEN = {"name": "Orders", "rate": {"burst": 50, "perSecond": 10}, "list": ["a"]}


def test_what_was_not_changed_here_is_left_to_the_other() -> None:
    present = {**SEEN, "rate": {"burst": 77, "perSecond": 10}}
    assert merged({**SEEN, "name": "New"}, SEEN, present) == ({"name": "New"}, [])


def test_a_field_that_both_changed_is_reported_with_both_values() -> None:
    wanted = {**SEEN, "rate": {"burst": 60, "perSecond": 10}, "list": []}
    present = {**SEEN, "rate": {"burst": 77, "perSecond": 10}, "list": ["a", "b"]}
    patch, collisions = merged(wanted, SEEN, present)
    assert patch == {"rate": {"burst": 60}, "list": []}
    assert collisions == [Collision("rate.burst", 77, 60), Collision("list", ["a", "b"], [])]


def test_the_same_change_of_both_collides_with_nothing() -> None:
    assert merged({"name": "New"}, SEEN, {**SEEN, "name": "New"}) == ({"name": "New"}, [])


def test_what_was_removed_meanwhile_collides_as_a_whole_where_it_was_changed_here() -> None:
    assert merged({"rate": {"burst": 60, "perSecond": 10}}, SEEN, {**SEEN, "rate": None})[1] != []
    assert merged(SEEN, SEEN, {**SEEN, "rate": None}) == ({}, [])


def test_an_empty_change_is_passed_over_only_where_names_are_told_without_values() -> None:
    seen = {"target": {"url": "https://a", "headers": ["X-Key"]}, "turns": None}
    form = {"target": {"url": "https://a", "headers": {}}, "turns": {}}
    assert merged(form, seen, seen) == ({"turns": {}}, [])
    gone, new = {**seen, "target": None}, {**seen, "target": {"url": "https://b", "headers": ["X-Key"]}}
    assert merged(form, seen, gone) == ({"turns": {}}, [])
    assert merged(form, gone, new)[1] == [Collision("target.url", "https://b", "https://a")]


@pytest.mark.parametrize(
    ("present", "moved"),
    [
        ({}, False),
        ({"version": 7, "enabled": False}, False),
        ({"authentication": {"method": "token", "tokenUse": {"setAt": 1, "matchCount": 9}, "rotation": {"a": 1}}}, False),
        ({"authentication": {"method": "token", "tokenUse": {"setAt": 2, "matchCount": 1}, "rotation": None}}, True),
        ({"authentication": {"method": "none"}}, True),
        ({"tags": ["eu", "paid"]}, True),
        ({"schedule": {"every": "1h"}}, True),
    ],
)  # fmt: skip
def test_what_a_form_showed_has_moved_when_somebody_changed_it(present: Document, moved: bool) -> None:
    seen = {
        "authentication": {"method": "token", "tokenUse": {"setAt": 1, "matchCount": 1}, "rotation": None},
        "tags": ["eu"],
        "schedule": None,
    }
    assert has_moved(seen, seen | present) is moved
