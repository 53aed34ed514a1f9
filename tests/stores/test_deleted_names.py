"""The names of deleted webhooks, on each database."""

from postern.stores.store import Store
from stores.conftest import NOW, deletion, webhook


async def test_names_of_deleted_webhooks_are_found_the_newest_first(store: Store) -> None:
    for number in range(4):
        await webhook(store, f"wh_{number}")
    for number in (1, 0, 2):
        await store.bin.delete(deletion(f"wh_{number}"), NOW)
    found = await store.webhooks.deleted_names(lambda name: name == "Orders", 2)
    assert list(found.items()) == [("wh_2", "Orders"), ("wh_1", "Orders")]
    assert await store.webhooks.deleted_names(lambda name: name == "orders", 2) == {}
