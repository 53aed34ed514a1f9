"""A store's answer to one entry, to be awaited."""

import asyncio
from typing import Any

from postern.core.history.invocation import Entry, Receipt, StoreUnavailable


async def kept(store: Any, entry: Entry) -> Receipt:
    recorded: asyncio.Future[Receipt | StoreUnavailable] = asyncio.get_running_loop().create_future()
    store.record(entry, recorded.set_result)
    result = await recorded
    if isinstance(result, StoreUnavailable):
        raise result
    return result
