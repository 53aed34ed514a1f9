"""A webhook with a path of its own: one owner, in every process and also from the bin; the short code goes on until it is given up."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.webhooks.bounds import own_path_problem
from postern.usecases.answers import as_plain
from postern.usecases.runtime.directory import Directory
from postern.usecases.webhooks import as_code, bin, webhooks
from postern.usecases.webhooks.views import Applied
from support.house import OWNER, House
from support.refusals import fields_refused

SEGMENT = st.from_regex(r"[A-Za-z0-9_.-]{3,20}", fullmatch=True).filter(lambda text: text.strip("."))


@given(st.lists(SEGMENT, min_size=1, max_size=4).map("/".join))
def test_segments_between_slashes_are_a_path(path: str) -> None:
    assert own_path_problem(path) is None or (len(path) == 22 and path.isalnum())


@pytest.mark.parametrize(
    "path",
    ["ab", "a" * 101, "/orders", "orders/", "a//b", "../orders", "a/./b", "a b c", "orders?x", "bestellungen/ü", "orders\n", "aB3" * 7 + "c", ""],
)  # fmt: skip
def test_everything_else_is_refused_at_its_field(path: str) -> None:
    assert own_path_problem(path)


@pytest.mark.parametrize("path", ["abc", "a" * 100, "a" * 23, "shop/orders-v1.2_x", "v1/a.b", "...a"])
def test_a_path_at_its_bounds(path: str) -> None:
    assert own_path_problem(path) is None


async def test_both_urls_answer_until_the_short_code_is_given_up(house: House) -> None:
    made = await house.webhook()
    changed = await webhooks.change(house.gateway, OWNER, made.id, {"path": "shop/orders"})
    assert changed.url == f"{house.gateway.site.base_url}/webhook/shop/orders"
    assert changed.also_url == made.url
    assert any("can be guessed" in one for one in changed.warnings)
    assert (await house.call(made)).status == (await house.call(changed)).status == 200

    alone = await webhooks.change(house.gateway, OWNER, made.id, {"onlyPath": True})
    assert (alone.url, alone.also_url) == (changed.url, None)
    assert (await house.call(made)).status == 404
    assert (await house.call(alone)).status == 200

    without = webhooks.change(house.gateway, OWNER, made.id, {"path": None})
    assert {*await fields_refused(without)} == {"onlyPath"}
    back = await webhooks.change(house.gateway, OWNER, made.id, {"path": None, "onlyPath": False})
    assert back.url == made.url
    assert (await house.call(made)).status == 200
    assert (await house.call(changed)).status == 404


async def test_a_path_has_one_owner_also_one_in_the_bin(house: House) -> None:
    made = await house.webhook(name="Shop", path="orders")
    other = await house.webhook(name="Other")

    async def refused() -> None:
        for asked in (
            webhooks.change(house.gateway, OWNER, other.id, {"path": "orders"}),
            house.webhook(name="Third", path="orders"),
        ):
            assert "Shop has this path" in (await fields_refused(asked))["path"]

    await refused()
    await webhooks.remove(house.gateway, OWNER, made.id)
    await refused()
    await bin.restore(house.gateway, OWNER, made.id)
    assert (await house.call(made)).status == 200
    await webhooks.remove(house.gateway, OWNER, made.id)
    await bin.delete_for_good(house.gateway, OWNER, made.id)
    taken = await webhooks.change(house.gateway, OWNER, other.id, {"path": "orders"})
    assert (await house.call(taken)).status == 200


async def test_a_path_that_goes_to_another_webhook_leads_there(house: House) -> None:
    """Another process takes both changes in by one look at the database, in any order."""
    directory = house.gateway.runtime.directory
    beside = Directory(house.gateway.store.webhooks, directory._compile)
    first, second = await house.webhook(name="A", path="orders"), await house.webhook(name="B")
    for old, new in ((first, second), (second, first)):
        await beside.refresh()
        await _apply(house, {"name": new.name, "path": "orders"}, {"name": old.name})
        await beside.refresh()
        for one in (directory, beside):
            found = one.by_address("orders")
            assert found is not None
            assert found.id == new.id


async def test_a_file_is_checked_for_paths_before_anything_is_changed(house: House) -> None:
    await house.webhook(name="Shop", path="orders")
    binned = await house.webhook(name="Binned", path="old")
    await webhooks.remove(house.gateway, OWNER, binned.id)
    rows = [("A", "orders"), ("B", "new"), ("C", "new"), ("D", "old"), ("E", "x")]
    entries = [{"name": name, "path": path} for name, path in rows]
    assert {*await fields_refused(_apply(house, *entries))} == {
        f"webhooks.{place}.path" for place in (0, 2, 3, 4)
    }
    assert house.gateway.runtime.directory.called("E") == []

    written = as_plain(await as_code.export(house.gateway, OWNER))
    assert [one["path"] for one in written["webhooks"]] == ["orders"]
    assert (await _apply(house, *written["webhooks"])).changes == []


async def _apply(house: House, *entries: dict[str, Any]) -> Applied:
    document = {"version": 1, "webhooks": [{"authentication": {"method": "none"}, **one} for one in entries]}
    return await as_code.apply(house.gateway, OWNER, document, lambda kind, where: None)
