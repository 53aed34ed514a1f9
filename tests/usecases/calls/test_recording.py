import asyncio
import threading

from sqlalchemy import select
from starlette.requests import Request

from postern.core.admit import admit
from postern.core.calls.call import Call
from postern.core.history.invocation import Entry
from postern.identity import packed
from postern.stores.sql.tables import deliveries, duplicate_keys, invocations
from postern.surfaces.app import health_routes
from postern.usecases.calls.receive import entry_of
from support.desk import Desk
from support.recording import kept


async def test_a_call_that_no_store_can_take_does_not_make_its_neighbours_duplicates_of_nothing(
    desk: Desk,
) -> None:
    webhook_id = await desk.webhook(duplicateProtection={"enabled": True, "key": "header:X-Id"})
    webhook = desk.gateway.runtime.directory.by_id(webhook_id)
    assert webhook is not None

    def entry(number: int) -> Entry:
        headers = ((b"content-type", b"application/json"), (b"x-id", b"same"))
        call = Call("POST", b"/", b"", headers, b'{"n": %d}' % number, "203.0.113.9", desk.gateway.clock())
        return entry_of(desk.gateway, webhook, call, admit(webhook, call, desk.gateway.runtime.limits))

    entries = [entry(number) for number in range(3)]
    entries[0].invocation.detail = None  # type: ignore[assignment]
    gathered = threading.Event()
    holding_up = asyncio.create_task(desk.store.writer.write(lambda connection: gathered.wait(10)))
    recording = [asyncio.create_task(kept(desk.store, one)) for one in entries]
    await asyncio.sleep(0)
    gathered.set()
    await holding_up
    poisoned, first, second = await asyncio.gather(*recording, return_exceptions=True)
    assert isinstance(poisoned, Exception)
    assert (first.first, second.first) == (None, entries[1].invocation.id)
    assert [row.invocation_id for row in await desk.rows(select(deliveries.c.invocation_id))] == [
        entries[1].invocation.id
    ]
    assert [row.invocation_id for row in await desk.rows(select(duplicate_keys.c.invocation_id))] == [
        packed(entries[1].invocation.id)
    ]
    outcomes = await desk.rows(select(invocations.c.outcome, invocations.c.code).order_by(invocations.c.id))
    assert [tuple(row) for row in outcomes] == [("accepted", "accepted"), ("duplicate", "duplicate")]


async def test_the_metrics_say_how_much_waits_for_the_writer(desk: Desk) -> None:
    (metrics,) = (route.endpoint for route in health_routes(desk.gateway) if route.path == "/metrics")

    async def waiting() -> str:
        answer = await metrics(Request({"type": "http"}))
        (line,) = (
            line
            for line in bytes(answer.body).decode().splitlines()
            if line.startswith("postern_writer_waiting ")
        )
        return line.partition(" ")[2]

    assert await waiting() == "0.0"
    go = threading.Event()
    writes = [asyncio.create_task(desk.store.writer.write(lambda connection: go.wait(20))) for _ in range(3)]
    await asyncio.sleep(0)
    assert await waiting() == "3.0"
    go.set()
    await asyncio.gather(*writes)
    assert await waiting() == "0.0"
