"""Compares two calls."""

from functools import partial

from postern.core.access.accounts import Actor
from postern.core.calls.call import query_pairs
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history import compare
from postern.core.history.compare import LARGEST_READ, Differences
from postern.core.history.invocation import HistoryFilter, Invocation, Story
from postern.core.problems import Refused
from postern.usecases.history.history import recorded
from postern.usecases.history.views.calls import BodyComparison, Comparison, body_comparison
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.one_at_a_time import OneAtATime
from postern.usecases.summary import summary_of

LOOKED_BACK = 1_000
PAGE = 200
_ENDED_WELL = ("completed", "responded")

line = OneAtATime("comparisons", 20, "Many calls are being compared. Try again in a moment.")
"""Comparing large calls must not hold up the calls of senders."""


async def compared(gateway: Gateway, actor: Actor, invocation_id: str, to: str | None = None) -> Comparison:
    """Say what differs between a call and another one, or, without one, the last call to the same webhook before it that
    went well: method, path, query, headers, mapped values and body. JSON is compared by path, whatever the order of its
    keys."""
    require(actor, "read")
    story = await recorded(gateway, invocation_id)
    other = await recorded(gateway, to or await _last_good(gateway, story.invocation))
    if other.invocation.id == invocation_id:
        raise Refused("invalid_request", "a call is compared with another one")
    return await line.run(partial(_compared, story, other))


async def _last_good(gateway: Gateway, invocation: Invocation) -> str:
    """The newest earlier call whose runs have completed; if no engine tells that, one that was started."""
    criteria = HistoryFilter(invocation.webhook_id, code="accepted")
    cursor, started = invocation.id, None
    for _ in range(LOOKED_BACK // PAGE):
        page = await gateway.store.history.page(criteria, PAGE, cursor)
        for story in page.rows:
            summary = summary_of(story)
            if summary.status in _ENDED_WELL:
                return summary.id
            if started is None and summary.run_state == "unknown":
                started = summary.id
        if page.next_before is None:
            break
        cursor = page.next_before
    if started is None:
        calls = f"the last {LOOKED_BACK:,} accepted calls before this one"
        raise Refused("not_found", f"none of {calls} is known to have gone well")
    return started


def _compared(story: Story, other: Story) -> Comparison:
    """``other`` came before, ``story`` after."""
    new, old = story.invocation, other.invocation
    return Comparison(
        invocation_id=new.id,
        compared_with=old.id,
        same_webhook=new.webhook_id == old.webhook_id,
        request=compare.pairs(_request_line(old), _request_line(new)),
        query=compare.pairs(_query(old), _query(new)),
        headers=compare.pairs(old.header_pairs, new.header_pairs),
        values=compare.pairs(_values(other), _values(story)),
        body=_bodies(old, new),
    )


def _request_line(call: Invocation) -> list[tuple[str, str]]:
    return [("method", call.method), ("path", call.path.decode("latin-1"))]


def _query(call: Invocation) -> list[tuple[str, str]]:
    pairs = query_pairs(call.query)
    return [(name.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for name, value in pairs]


def _values(story: Story) -> list[tuple[str, str]]:
    """The mapped values of the first start."""
    fields = story.deliveries[0].fields if story.deliveries else {}
    return [(name, fields[name]) for name in FIELD_NAMES if name in fields]


def _bodies(old: Invocation, new: Invocation) -> BodyComparison:
    if old.body_is_gone or new.body_is_gone:
        return body_comparison("gone")
    was, now = old.body or b"", new.body or b""
    if was == now:
        return body_comparison("same")
    if max(len(was), len(now)) > LARGEST_READ:
        return body_comparison("too large")
    if (differences := document_changes(was, now)) is not None:
        return body_comparison("json" if differences.count else "written differently", differences)
    try:
        by_line = compare.lines(was.decode(), now.decode())
    except UnicodeDecodeError:
        return body_comparison("bytes")
    if by_line is None:
        return body_comparison("too different")
    return body_comparison("text" if by_line.count else "bytes", by_line)


def document_changes(was: bytes, now: bytes) -> Differences | None:
    """Returns None if one of them is not JSON."""
    try:
        return compare.documents(compare.read(was), compare.read(now))
    except (ValueError, RecursionError):
        return None
