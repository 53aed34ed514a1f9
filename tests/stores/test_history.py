"""History: every filter finds what it says and nothing else, and pages join without a gap or a repetition."""

import pytest

from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import StartAgain, Started
from postern.core.history.invocation import HistoryFilter, status_of
from postern.stores.history import filtering, looking
from postern.stores.store import Store
from stores.conftest import NOW, WEBHOOK, entry, recorded
from support.refusals import refused


async def everything(store: Store, wanted: HistoryFilter, limit: int = 7) -> list[str]:
    """All ids, page by page."""
    found: list[str] = []
    before = None
    for _ in range(1000):
        page = await store.history.page(wanted, limit, before)
        assert len(page.rows) <= limit
        found += [row.invocation.id for row in page.rows]
        before = page.next_before
        if before is None:
            assert found == sorted(set(found), reverse=True)
            return found
    raise AssertionError("pages without end")


STATES = ("accepted", "started", "responded", "failed", "replayed")


@pytest.fixture
async def ids_by(store: Store) -> dict[str, set[str]]:
    """Records calls of every kind. Returns their ids by kind."""
    entries = []
    for number in range(6):
        at = NOW + number * 100
        entries += [
            ("rejected", entry("rejected", code="credential_mismatch", at=at)),
            ("rejected", entry("rejected", code="malformed_json", at=at, webhook="wh_2")),
            ("handshake", entry("handshake", at=at)),
            ("duplicate", entry("duplicate", at=at)),
        ]
        for state in STATES:
            body = b'{"state": "%s", "u": "\xc3\xa9"}' % state.encode()
            entries.append((state, entry(at=at, deadline=at + 10, body=body)))
    kinds: dict[str, set[str]] = {}
    for (kind, made), id in zip(entries, await recorded(store, *(made for _, made in entries)), strict=True):
        kinds.setdefault("accepted" if kind == "replayed" else kind, set()).add(id)
        at, delivery = made.invocation.received_at, made.delivery
        if delivery is None:
            continue
        if kind in ("started", "responded"):
            await store.deliveries.started(delivery, Started(1, ()), at)
        if kind == "responded":
            await store.slots.respond(delivery.key, WorkflowResponse(200, (), b""), at + 1)
        if kind in ("failed", "replayed"):
            await store.deliveries.failed(delivery, "x", at)
        if kind == "replayed":
            await store.emissions.replay(StartAgain(id, {}), at, "admin")
    return kinds


STATUSES = (
    "rejected",
    "duplicate",
    "handshake",
    "accepted",
    "started",
    "responded",
    "failed",
    "held",
    "dropped",
)


@pytest.mark.parametrize("few, look", [(2_000, 5_000), (2, 4)])
async def test_a_status_finds_those_that_show_it(
    store: Store, ids_by: dict[str, set[str]], few: int, look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        filtering, "FEW", few
    )  # more than that are looked for among the newest, so many a page
    monkeypatch.setattr(looking, "LONGEST_LOOK", look)
    found = {status: set(await everything(store, HistoryFilter(status=status))) for status in STATUSES}
    assert found == {status: ids_by.get(status, set()) for status in STATUSES}
    for status in STATUSES:
        page = await store.history.page(HistoryFilter(status=status), 100)
        assert {
            status_of(row.invocation.outcome, row.deliveries[-1] if row.deliveries else None)
            for row in page.rows
        } <= {status}


async def test_a_code_a_webhook_and_times_narrow_it(store: Store, ids_by: dict[str, set[str]]) -> None:
    first, second = HistoryFilter(code="credential_mismatch"), HistoryFilter(webhook_id="wh_2")
    by_code, by_webhook = set(await everything(store, first)), set(await everything(store, second))
    assert by_code | by_webhook == ids_by["rejected"]
    assert len(by_code) == len(by_webhook) == 6
    window = HistoryFilter(since=NOW + 100, until=NOW + 300)
    assert len(await everything(store, window)) == 2 * 9
    assert len(await everything(store, HistoryFilter(WEBHOOK, "started", None, NOW + 100, NOW + 300))) == 2
    assert await everything(store, HistoryFilter("wh_2", "started")) == []


@pytest.mark.parametrize("look", [5_000, 4])
async def test_a_search_finds_text_in_body_headers_and_query(
    store: Store, ids_by: dict[str, set[str]], look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        looking, "LONGEST_LOOK", look
    )  # a search looks through so many a page, and goes on from there
    (in_headers,) = await recorded(store, entry(headers=b'[["x-a","needle"]]', at=NOW + 50))
    (in_query,) = await recorded(store, entry(query=b"a=needle%ff", at=NOW + 150))
    assert set(await everything(store, HistoryFilter(search="needle"))) == {in_headers, in_query}
    assert set(await everything(store, HistoryFilter(search='"responded", "u": "é'))) == ids_by["responded"]
    assert await everything(store, HistoryFilter(search=in_query)) == [in_query]
    bodies = (
        "Straße ÉTÉ TEA-250".encode(),
        b"tea-250 \xff\xfe",
        b"\0TEA-250",
        b"303 \\303",
        "303".encode("utf-16"),
    )
    ids = await recorded(store, *(entry(body=body, at=NOW + 200) for body in bodies))
    for text in ("tea-250", "TEA-250", "Tea-250"):
        assert {*ids[:2]} <= set(await everything(store, HistoryFilter(search=text))) <= {*ids[:3]}
    assert set(await everything(store, HistoryFilter(search="TEA-250"))) == {*ids[:3]}
    for text in ("été", "ÉTÉ", "straße", "STRAßE é"):
        assert await everything(store, HistoryFilter(search=text)) == [ids[0]]
    assert await everything(store, HistoryFilter(search="303")) == [ids[3]]
    assert await everything(store, HistoryFilter(header="X-A=NEED*")) == [in_headers]
    assert await everything(store, HistoryFilter(search="100%_no such")) == []


async def test_what_comes_in_meanwhile_does_not_move_the_pages(store: Store) -> None:
    ids = await recorded(store, *(entry() for _ in range(10)))
    first = await store.history.page(HistoryFilter(), 5)
    await recorded(store, *(entry() for _ in range(3)))
    rest = await store.history.page(HistoryFilter(), 5, first.next_before)
    assert [row.invocation.id for row in [*first.rows, *rest.rows]] == sorted(ids, reverse=True)


async def test_an_invocation_is_given_back_as_it_was_stored(store: Store) -> None:
    made = entry(
        body=bytes(range(256)) * 10,
        headers='[["x-a","ÿ\\u0000"]]'.encode(),
        query=b"\xff\x00",
        path=b"/\xff",
        detail="é😀",
        trace=b'[["a",true,"b"]]',
    )
    await recorded(store, made)
    found = await store.history.get(made.invocation.id)
    assert found is not None
    assert found.invocation == made.invocation
    assert found.deliveries == [made.delivery]
    assert await store.history.get("inv_none") is None


async def test_an_id_that_no_text_can_be_is_the_askers_mistake_and_no_trouble_of_the_store(
    store: Store,
) -> None:
    if store.database.is_sqlite:
        assert await store.history.get("inv_\0") is None
    else:
        assert (await refused(store.history.get("inv_\0"))).code == "invalid_request"
        assert (await refused(store.chores.reach("days\0", "", 0.0))).code == "invalid_request"
        await store.chores.reach("days", "", 0.0)  # what comes after it is written


async def test_in_stretches_every_call_is_read_once_and_as_it_is_read_alone(
    store: Store, ids_by: dict[str, set[str]]
) -> None:
    newest = max(id for ids in ids_by.values() for id in ids)
    (replayed, *_) = ids_by["responded"]
    for _ in range(10):  # the tenth emission's key comes before the second one's
        await store.emissions.replay(StartAgain(replayed, {}), NOW, "the tests")
    alone = {id: await store.history.get(id) for ids in ids_by.values() for id in ids}
    for limit, most_bytes in ((1, 10**9), (7, 10**9), (7, 1), (7, 60), (1000, 10**9)):
        found = []
        page = await store.history.stretch(None, limit, most_bytes)
        while page.next_before is not None:
            size = sum(row.invocation.body_size for row in page.rows)
            assert len(page.rows) == 1 or (len(page.rows) <= limit and size <= most_bytes)
            found += page.rows
            page = await store.history.stretch(page.next_before, limit, most_bytes)
        assert found[0].invocation.id == newest and len(found) == len(alone)
        assert found == [alone[id] for id in sorted(alone, reverse=True)]
