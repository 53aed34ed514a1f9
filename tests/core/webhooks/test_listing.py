"""Which webhooks a list shows and in which order, and what may be a tag or a folder."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from postern.core.webhooks.grouping import MOST_TAGS, distinct, folder_of, tag_problem
from postern.core.webhooks.listing import SORTS, Lately, Listed, WebhookFilter, groups_of, in_order, matching


def one(number: int, name: str = "", **more: Any) -> Listed:
    return Listed(f"wh_{number:032x}", [f"code{number}"], name or f"Webhook {number}", **more)


SHOP = one(1, "Shop orders", folder="Shops/Europe", tags=("EU", "paid"), sender="shopify", signs=True)
CELLAR = one(2, "cellar", folder="Shops", sender="token", held=True)
NEWSPAPER = one(3, "Newspaper", folder="Shopsoiled", tags=("eu",), sender="none", enabled=False)
CLOCK = one(4, "Clock", sender="token", fetches=True)
BROKEN = one(5, "Älter", served=False)
ALL = [CELLAR, SHOP, BROKEN, CLOCK, NEWSPAPER]
LATELY = Lately(
    incidents={SHOP.id: 2, NEWSPAPER.id: 1, CLOCK.id: 1},
    last_calls={SHOP.id: 1000.0, CELLAR.id: 3000.0, NEWSPAPER.id: 2000.0},
    last_day={SHOP.id: 50, CELLAR.id: 70, NEWSPAPER.id: 1},
)


def names(found: list[Listed]) -> list[str]:
    return [one.name for one in found]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["cellar", "Shop orders", "Älter", "Clock", "Newspaper"]),
        ({"search": "ORDERS"}, ["Shop orders"]),
        ({"search": "europe"}, ["Shop orders"]),
        ({"search": "paid"}, ["Shop orders"]),
        ({"search": "älter"}, ["Älter"]),
        ({"search": CLOCK.id.upper()}, ["Clock"]),
        ({"search": "code2"}, ["cellar"]),
        ({"search": "ode2"}, []),
        ({"search": "*ORDERS"}, ["Shop orders"]),
        ({"search": "orders*"}, []),
        ({"search": "c*k"}, ["Clock"]),
        ({"search": "c*"}, ["cellar", "Clock"]),
        ({"search": "?ellar*"}, []),
        ({"search": "*l*l*"}, ["cellar"]),
        ({"search": "cellar*r"}, []),
        ({"search": "*p*e*"}, ["Shop orders", "Newspaper"]),
        ({"sender": "shopify"}, ["Shop orders"]),
        ({"sender": "token"}, ["cellar", "Clock"]),
        ({"sender": "schedule"}, ["Clock"]),
        ({"state": "enabled"}, ["cellar", "Shop orders", "Älter", "Clock"]),
        ({"state": "disabled"}, ["Newspaper"]),
        ({"state": "held"}, ["cellar"]),
        ({"state": "failing"}, ["Shop orders", "Älter", "Clock", "Newspaper"]),
        ({"state": "never_called"}, ["Älter", "Clock"]),
        ({"tag": "Eu"}, ["Shop orders", "Newspaper"]),
        ({"tag": "e"}, []),
        ({"folder": "shops"}, ["cellar", "Shop orders"]),
        ({"folder": "shops", "alone": True}, ["cellar"]),
        ({"folder": "-"}, ["Älter", "Clock"]),
        ({"folder": "Shops", "tag": "eu", "state": "failing"}, ["Shop orders"]),
    ],
)
def test_each_filter_takes_away_what_does_not_match(wanted: dict[str, Any], found: list[str]) -> None:
    assert names(matching(ALL, WebhookFilter(**wanted), LATELY)) == found


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("created", ["Älter", "Clock", "Newspaper", "cellar", "Shop orders"]),
        ("failing", ["Älter", "Shop orders", "Clock", "Newspaper", "cellar"]),
        ("name", ["cellar", "Clock", "Newspaper", "Shop orders", "Älter"]),
        ("folder", ["cellar", "Shop orders", "Newspaper", "Clock", "Älter"]),
        ("last_call", ["cellar", "Newspaper", "Shop orders", "Älter", "Clock"]),
        ("last_day", ["cellar", "Shop orders", "Newspaper", "Älter", "Clock"]),
    ],
)
def test_each_order_begins_with_what_it_says(sort: Any, found: list[str]) -> None:
    assert names(in_order(ALL, sort, LATELY)) == found


@pytest.mark.parametrize("sort", SORTS)
@given(order=some.permutations(ALL))
def test_an_order_does_not_depend_on_what_came_first(sort: Any, order: list[Listed]) -> None:
    assert in_order(order, sort, LATELY) == in_order(ALL, sort, LATELY)
    assert sorted(names(in_order(order, sort, LATELY, True))) == sorted(names(ALL))


def test_the_other_way_round_begins_at_the_other_end() -> None:
    assert names(in_order(ALL, "name", reverse=True))[0] == "Älter"
    created = names(in_order(ALL, "created", reverse=True))
    assert created == ["Shop orders", "cellar", "Newspaper", "Clock", "Älter"]


def test_groups_are_counted_without_regard_to_capitals() -> None:
    found = groups_of([*ALL, one(6, folder="shops", tags=("Paid",), sender="shopify")])
    assert found.tags == {"EU": 2, "paid": 2}
    assert found.folders == {"Shops": 2, "Shops/Europe": 1, "Shopsoiled": 1}
    assert found.senders == {"token": 1, "shopify": 2, "schedule": 1, "none": 1}


@pytest.mark.parametrize(
    ("written", "folder"),
    [("", None), (" / ", None), ("Shops", "Shops"), (" Shops / Europe /", "Shops/Europe"), ("a-b", "a-b")],
)
def test_a_folder_is_written_as_people_write_it(written: str, folder: str | None) -> None:
    assert folder_of(written) == folder


@pytest.mark.parametrize("written", ["a//b", "-", " - ", "a\nb", "x" * 201])
def test_what_is_no_folder_says_so(written: str) -> None:
    with pytest.raises(ValueError, match=r"folder"):
        folder_of(written)


def test_tags_are_texts_without_a_comma() -> None:
    assert not any(map(tag_problem, ("eu", " eu ", "Überweisung 7")))
    assert all(map(tag_problem, ("a,b", "", " ", "a\nb", "x" * 41)))
    assert distinct([" eu", "EU", "paid", "Paid "]) == ["eu", "paid"]
    assert MOST_TAGS == 20


def test_numbered_folders_are_in_the_order_of_their_numbers() -> None:
    expected = ["9", "10", "a", "a/b", "a/b 1", "a/b 2", "a/b 10", "a 1", "a 02", "A 3", "a 3/x", "a 3b"]
    expected.append(f"a {'9' * 190}")
    found = groups_of(one(place, folder=name) for place, name in enumerate(reversed(expected)))
    assert list(found.folders) == expected


@pytest.mark.parametrize("sort", ["name", "folder"])
def test_numbered_names_are_in_the_order_of_their_numbers(sort: Any) -> None:
    expected = ["9", "10", "Shop", "shop 1", "Shop 2", "Shop 002b", "Shop 10", f"Shop {'9' * 99}", "Shop a"]
    found = [one(place, name, folder="All") for place, name in enumerate(reversed(expected))]
    assert names(in_order(found, sort, LATELY)) == expected
    assert names(in_order(found, "name", LATELY, True)) == expected[::-1]
