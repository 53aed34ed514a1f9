"""A store's answer to one entry, to be awaited."""

import asyncio
from typing import Any

from postern.core.history.invocation import Entry, Receipt, StoreUnavailable


async def kept(store: Any, entry: Entry) -> Receipt:
    heard: asyncio.Future[Receipt | StoreUnavailable] = asyncio.get_running_loop().create_future()
    store.record(entry, heard.set_result)
    result = await heard
    if isinstance(result, StoreUnavailable):
        raise result
    return result
