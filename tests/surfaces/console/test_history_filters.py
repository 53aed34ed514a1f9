"""What the history's filters find: the list, its count and the file to take along agree. In one process, without a
browser."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message

from postern.core.deliveries.delivery import Started
from postern.core.problems import Refused
from postern.identity import time_of
from postern.settings import Settings
from postern.surfaces.console.views.history import beside, files, listing, live, replays
from postern.surfaces.console.visit import ViewFunction, Visit
from postern.usecases.answers import Time
from postern.usecases.deliveries import replays as plans
from postern.usecases.deliveries.views import ReplayedCalls
from postern.usecases.history import findable, history, marks
from postern.usecases.history.filters import filter_of
from postern.wiring.gateway import opened
from support.desk import ACTOR, Desk
from support.fresh import fresh_database


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    fresh_database(tmp_path / "data" / "postern.db")
    async with opened(
        Settings({"POSTERN_DATA_DIR": str(tmp_path / "data"), "POSTERN_LOG": "off"})
    ) as gateway:
        yield Desk(gateway)


@pytest.fixture
async def ids(desk: Desk) -> dict[str, str]:
    """Five calls, each told from the others by something else."""
    now = desk.gateway.clock()
    orders = await desk.webhook(fieldMapping={"fieldOne": "number"})
    token = {"method": "token", "token": "0123456789abcdef"}
    guarded = await desk.webhook("Guarded", authentication=token)
    paid = (b"x-topic", b"orders/paid")
    made = {}
    calls_of_orders: list[tuple[str, dict[str, Any], list[tuple[bytes, bytes]]]] = [
        ("first", {"number": "A-1"}, []),
        ("second", {"number": "A-2"}, [paid]),
        ("third", {"number": "B-1", "customer": {"id": 7}}, []),
        ("fourth", {"number": "B-2"}, []),
    ]
    for name, content, headers in calls_of_orders:
        made[name] = await desk.accepted(orders, content, *headers)
        while time.time() < time_of(made[name]) + 0.001:
            await asyncio.sleep(0)  # ids tell the time to the millisecond, and filters ask for it
    assert (await desk.call(guarded, {})).status == 401
    (rejected,) = (await history.listing(desk.gateway, ACTOR, filter_of(status="rejected"), 10)).items
    await marks.bookmark(desk.gateway, ACTOR, made["second"])
    desk.gateway.clock = lambda: now + 60  # what has just come is not looked at yet
    while await findable.step(desk.gateway):
        pass
    desk.gateway.clock = lambda: now
    return {**made, "rejected": rejected.id, "orders": orders, "guarded": guarded}


async def asked(desk: Desk, view: ViewFunction, query: dict[str, str]) -> str:
    async def stays() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "path_params": {}}
    request = Request(scope | {"query_string": urlencode(query).encode()}, stays)
    answer = await view(Visit(request, desk.gateway, ACTOR))
    if isinstance(answer, StreamingResponse):
        pieces = [piece async for piece in answer.body_iterator]
        return b"".join(
            piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces
        ).decode()
    return bytes(answer.body).decode()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, "rejected fourth third second first"),
        ({"webhook": "Guarded"}, "rejected"),
        ({"status": "rejected"}, "rejected"),
        ({"status": "accepted"}, "fourth third second first"),
        ({"code": "credential_missing"}, "rejected"),
        ({"answer": "4xx"}, "rejected"),
        ({"answer": "2xx"}, "fourth third second first"),
        ({"answer": "401"}, "rejected"),
        ({"answer": "gone"}, ""),
        ({"marked": "on"}, "second"),
        ({"address": "203.0.113.9"}, "rejected fourth third second first"),
        ({"address": "203.0.113"}, ""),
        ({"value": "b-1"}, "third"),
        ({"value": "B*"}, "fourth third"),
        ({"field": "fieldOne=A-2"}, "second"),
        ({"field": "customer.id=7"}, "third"),
        ({"header": "x-topic"}, "second"),
        ({"header": "x-topic=orders/*"}, "second"),
        ({"header": "x-topic=orders"}, ""),
        ({"search": "A-"}, "second first"),
        ({"webhook": "Orders", "status": "rejected"}, ""),
        ({"search": "No TOKEN"}, "rejected"),
    ],
)
async def test_a_filter_finds_what_it_says(
    desk: Desk, ids: dict[str, str], query: dict[str, str], found: str
) -> None:
    query = dict(query)
    wanted = [ids[name] for name in found.split()]
    page = await asked(desk, listing.listing, query)
    assert re.findall(r'class="opens" href="/calls/(inv_\w+)"', page) == wanted
    if "webhook" in query:
        query["webhook"] = ids[query["webhook"].lower()]
    assert (await asked(desk, listing.count, query)).strip().startswith(f"{len(wanted)} call")
    table = await asked(desk, listing.export, {"format": "csv", **query})
    assert [line.partition(",")[0] for line in table.splitlines()[1:]] == wanted
    # What was chosen goes along to the count, the file and the next page.
    if wanted and query:
        assert f"format=csv&amp;{escape(urlencode(query))}" in page


async def test_a_tab_keeps_the_rest_of_the_filter(desk: Desk, ids: dict[str, str]) -> None:
    page = await asked(desk, listing.listing, {"value": "1042", "since": "24h", "status": "failed"})
    assert 'href="/calls?status=rejected&amp;value=1042&amp;since=24h">Rejected' in page
    page = await asked(desk, listing.listing, {"webhook": ids["orders"], "status": "failed"})
    both = f"/calls?status=failed&amp;webhook={ids['orders']}"
    assert f'href="{both}" aria-current="page">Failed' in page
    assert f"/calls/count?status=failed&amp;webhook={ids['orders']}&amp;short" in page
    assert f'href="/calls?webhook={ids["orders"]}">All' in page


async def test_a_part_that_is_typed_twice_is_refused_and_not_the_last_one_taken(desk: Desk) -> None:
    with pytest.raises(Refused) as refusal:
        await asked(desk, listing.listing, {"q": "status:failed status:rejected"})
    assert [(one.field, one.message[:14]) for one in refusal.value.errors] == [("status", "is there twice")]


async def test_what_no_workflow_wanted_was_not_delivered(desk: Desk) -> None:
    wanted, alone = await desk.numbered(await desk.webhook(), 2)
    for call, runs in ((wanted, 1), (alone, 0)):
        delivery = await desk.store.deliveries.get(f"{call}.1")
        await desk.store.deliveries.started(delivery, Started(runs), desk.gateway.clock())
    for status, found in (("delivered", [wanted]), ("started", [alone, wanted])):
        page = await history.listing(desk.gateway, ACTOR, filter_of(status=status))
        assert [one.id for one in page.items] == found


async def marked(desk: Desk, **form: str) -> str:
    """Where the bar of the marked calls leads."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "headers": [],
        "query_string": b"",
        "path_params": {},
    }
    calls = [("call", one) for one in form.pop("calls").split()]
    answer = await listing.do_with_marked(Visit(Request(scope), desk.gateway, ACTOR, [*calls, *form.items()]))
    return answer.headers.get("location") or bytes(answer.body).decode()


async def test_marked_calls_are_asked_for_and_told_on_the_page_of_a_replay(
    desk: Desk, ids: dict[str, str]
) -> None:
    desk.gateway.clock = time.time
    first, third, rejected = ids["first"], ids["third"], ids["rejected"]
    led = await marked(desk, do="replay", calls=f"{first} {third} {rejected}")
    planned = (await plans.listing(desk.gateway, ACTOR)).items[0]
    assert (led, planned.state, planned.count) == (f"/replays/{planned.id}", "planned", 2)

    async def page(view: ViewFunction) -> tuple[int, str]:
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
        request = Request(scope | {"path_params": {"replay": planned.id}})
        answer = await view(Visit(request, desk.gateway, ACTOR, []))
        return answer.status_code, bytes(answer.body).decode()

    asks = (await page(replays.show))[1]
    assert "Replay 2 calls?" in asks and "3 marked calls" in asks
    assert [(await page(replays.begin))[0] for _ in range(2)] == [303, 303], "pressed twice"
    await plans.Replayer(desk.gateway).round()
    now = desk.gateway.clock()
    for call in (first, third):
        delivery = await desk.store.deliveries.get(f"{call}.2")
        await desk.store.deliveries.failed(delivery, "ERP said 503", now)
    told = (await page(replays.show))[1]
    assert "2 failed" in told and "Replay those that failed" in told
    assert re.findall(r'class="opens" href="/calls/(inv_\w+)"', told) == [third, first]


@pytest.mark.parametrize(
    ("back", "led"),
    [
        ("/calls?status=rejected", "/calls?status=rejected"),
        ("/webhooks/wh_1/calls", "/webhooks/wh_1/calls"),
        ("https://evil.example/calls", "/calls"),
        ("//evil.example", "/calls"),
        ("javascript:alert(1)", "/calls"),
    ],
)
async def test_the_way_back_leads_to_our_own_pages_alone(
    desk: Desk, ids: dict[str, str], back: str, led: str
) -> None:
    page = await marked(desk, do="admit", calls=ids["rejected"], back=back)
    assert f'href="{led}">Back to the calls' in page


async def test_an_older_row_that_moves_does_not_set_the_place_to_resume_from_back(
    desk: Desk, ids: dict[str, str]
) -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [],
        "query_string": b"",
        "path_params": {},
    }
    page = live.LivePage(Visit(Request(scope), desk.gateway, ACTOR), filter_of(), 9)
    items = {one.id: one for one in (await history.listing(desk.gateway, ACTOR, filter_of())).items}
    rows = [await page._row(kind, items[ids[one]]) for kind, one in (("call", "third"), ("moved", "first"))]
    assert [row.partition("\n")[0] for row in rows] == [f"id: {ids['third']}", "event: moved"]


@pytest.mark.parametrize(
    ("shown", "typed", "stored"),
    [
        ("a\r\nb", "a\r\nc", "a\r\nc"),
        ("a\nb", "a\r\nc", "a\nc"),
        ("a\r\nb\nc", "a\r\nc", "a\nc"),
        ("a", "a\r\nc", "a\nc"),
        ("a\r\nb", "a\r\nb", None),
        ("a\rb", "a\r\nb", None),
    ],
)
def test_an_edited_body_keeps_its_line_ends(shown: str, typed: str, stored: str | None) -> None:
    assert beside._as_edited(typed, shown) == stored


def test_no_part_of_a_replays_filter_is_left_out_on_its_page() -> None:
    parts = dict.fromkeys(ReplayedCalls.__struct_fields__, "x") | {"bookmarked": True}
    parts |= {"since": Time(0.0), "until": Time(60.0)}
    replay = SimpleNamespace(id="rpl_1", created_at=90.0, filter=ReplayedCalls(**parts))
    (shown,) = replays._chips([replay], {}).values()  # type: ignore[list-item]
    assert len(shown) == len(parts)


async def test_the_number_of_many_calls_is_typed_before_they_are_replayed(
    desk: Desk, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "MOST_UNTYPED", 1)
    desk.gateway.clock = time.time
    planned = await plans.plan(desk.gateway, ACTOR, filter_of(webhook_id=ids["orders"]), False)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
    request = Request(scope | {"path_params": {"replay": planned.id}})
    for typed, status in ((planned.count - 1, 422), (planned.count, 303)):
        visit = Visit(request, desk.gateway, ACTOR, [("typed", str(typed))])
        assert (await replays.begin(visit)).status_code == status


async def test_a_list_is_taken_along_as_json_lines_too_and_in_no_other_form(
    desk: Desk, ids: dict[str, str]
) -> None:
    lines = await asked(desk, listing.export, {"format": "jsonl", "value": "B*"})
    assert [json.loads(line)["fields"]["fieldOne"] for line in lines.splitlines()] == ["B-2", "B-1"]
    with pytest.raises(Refused):
        await asked(desk, listing.export, {"format": "exe"})


async def test_of_all_exports_one_page_is_made_at_a_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight people who export keep no caller waiting for eight pages."""
    at_once: list[int] = []
    real, under_way = history.listing, 0

    async def counted(*given: Any) -> Any:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        try:
            return await real(*given)
        finally:
            under_way -= 1

    monkeypatch.setattr(history, "listing", counted)
    await asyncio.gather(*(asked(desk, listing.export, {}) for _ in range(8)))
    assert at_once == [1] * 8


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1", "'=1"),
        (" \n@x", "' \n'@x"),
        ("\t+1", "'\t'+1"),
        ("a;=1;b", "a;'=1;b"),
        ("a; \u00a0-1", "a;' \u00a0-1"),
        ("a\r\n@x", "a\r\n'@x"),
        ("a; b=1, =2", "a; b=1, =2"),
        ("＝1", "'＝1"),
        ("a=1", "a=1"),
        (-1.5, "-1.5"),
        (None, ""),
    ],
)
def test_no_cell_of_an_exported_list_is_a_formula(value: str | float | None, cell: str) -> None:
    assert files._cell(value) == cell


async def test_the_times_of_a_filter_are_its_ends(desk: Desk, ids: dict[str, str]) -> None:
    at = {name: time_of(ids[name]) for name in ("second", "third")}
    query = {"since": str(at["second"]), "until": str(at["third"])}
    page = await asked(desk, listing.listing, query)
    assert re.findall(r'class="opens" href="/calls/(inv_\w+)"', page) == [ids["second"]]


async def test_pages_are_gone_back_one_by_one(desk: Desk) -> None:
    webhook = await desk.webhook()
    for number in range(170):
        await desk.accepted(webhook, {"n": number})
    pages, addresses = [], [""]
    for _ in range(4):
        page = await asked(desk, listing.listing, dict(parse_qsl(addresses[-1].removeprefix("?"))))
        pages.append(re.findall(r'class="opens" href="/calls/(inv_\w+)"', page))
        if second := re.search(r'href="(\?[^"]*)">Older calls', page):
            addresses.append(unescape(second[1]))
    assert [len(one) for one in pages] == [50, 50, 50, 20] and len(
        {one for page in pages for one in page}
    ) == 170
    for number in (2, 1, 0):
        newer = re.search(r'href="(\?[^"]*)">Newer calls', page)
        assert newer is not None
        page = await asked(desk, listing.listing, dict(parse_qsl(unescape(newer[1]).removeprefix("?"))))
        assert re.findall(r'class="opens" href="/calls/(inv_\w+)"', page) == pages[number]
    assert "Newer calls" not in page
