"""A filter as SQL: the conditions that a call has to meet, and whether an index leads to the calls that meet them."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    ScalarSelect,
    Select,
    Text,
    and_,
    case,
    cast,
    collate,
    func,
    literal,
    or_,
    select,
    union_all,
)

from postern.core.history.failures import ANYTHING
from postern.core.history.findable import address_key, beginning_key, value_key
from postern.core.history.invocation import HistoryFilter, statuses_of
from postern.core.history.part import in_fields, in_headers, part_of, path_of, spellings
from postern.identity import first_id_at
from postern.stores.history.ahead import times_ahead
from postern.stores.sql.tables import (
    QUEUED,
    UNUSUAL_ANSWERS,
    UNUSUAL_DELIVERIES,
    UNUSUAL_INVOCATIONS,
    answers,
    belongs,
    bookmarks,
    call_values,
    deliveries,
    invocations,
)

FEW = 2_000
"""If more deliveries wait, are held or have failed, or more answers were unusual, a page does not begin with them."""

MANY = 20_000
"""If more entries begin alike, a page does not begin with them."""

_NOT_STARTED = ("rejected", "filtered", "duplicate", "handshake")
_USUAL = set(statuses_of("delivered"))

SqlCondition = tuple[ColumnElement[bool], bool]
"""And whether whoever asks it finds the next call that meets it without going through others that do not."""


def conditions_of(
    connection: Connection, criteria: HistoryFilter, all_of_them: bool = False
) -> tuple[list[ColumnElement[bool]], bool]:
    """The WHERE, and whether an index leads straight to the rows.

    Where so many are in the state asked for that whoever began with them would read them all for one page, the newest
    calls are looked through instead, as in a search. ``all_of_them`` are wanted, not a page: then it is the shortest way
    to begin with them, however many they are.
    """
    conditions = [
        *_received(connection, criteria),
        *_with_status(connection, criteria, all_of_them),
        *_with_error(connection, criteria, all_of_them),
        *_with_code(criteria),
        *_answered(connection, criteria, all_of_them),
        *_with_values(connection, criteria, all_of_them),
        *_containing(connection, criteria),
    ]
    return [condition for condition, _ in conditions], all(indexed for _, indexed in conditions)


def _received(connection: Connection, criteria: HistoryFilter) -> Iterator[SqlCondition]:
    if criteria.webhook_id is not None:
        # Where a value leads to the calls, the index of the webhook's must not be taken instead.
        column = invocations.c.webhook_id
        owner = func.coalesce(column, "") if keys_of(criteria) else column
        yield owner == criteria.webhook_id, True
    if criteria.since is not None or criteria.until is not None:
        yield from ((condition, True) for condition in _between(connection, criteria.since, criteria.until))
    if criteria.value and criteria.value.startswith("inv_"):
        yield invocations.c.id.in_(criteria.value.split(",")), True
    if criteria.bookmarked:
        yield invocations.c.id.in_(select(bookmarks.c.invocation_id)), True
    if criteria.replay:
        replayed = select(deliveries.c.invocation_id).where(deliveries.c.replay_id == criteria.replay)
        yield invocations.c.id.in_(replayed), True


def _between(
    connection: Connection, since: float | None, until: float | None
) -> Iterator[ColumnElement[bool]]:
    """Calls with a time that is yet to come count as received when that was noticed."""
    id, (noticed, yet_to_come) = invocations.c.id, times_ahead(connection) or ("", "")
    if since is not None:
        first = first_id_at("inv", since)
        yield id.between(first, yet_to_come) if "" < noticed < first else id >= first
    if until is not None:
        end = first_id_at("inv", until)
        yield or_(id < end, id >= yet_to_come) if "" < noticed < end else id < end


def _with_status(
    connection: Connection, criteria: HistoryFilter, all_of_them: bool
) -> Iterator[SqlCondition]:
    status = criteria.status
    if status is None:
        return
    if status in _NOT_STARTED:
        yield and_(invocations.c.outcome == status, UNUSUAL_INVOCATIONS), True
        if status in ("rejected", "filtered"):  # not those started since: they show what became of them
            yield ~was_started(), True
        return
    # Few rows and an index of their own: come from there, not from the history.
    states = statuses_of(status)
    # Not OR, for which SQLite would read every delivery.
    there = union_all(*(select(deliveries.c.invocation_id).where(_in_state(state)) for state in states))
    few = _USUAL.isdisjoint(states) and (all_of_them or not _more_than(connection, FEW, there))
    yield _newest_state().in_(states), few
    if status == "delivered":  # and not to nobody
        yield func.coalesce(_value_of_newest(deliveries.c.runs), 1) > 0, False
    if few:
        yield invocations.c.id.in_(there), True


def _with_error(connection: Connection, criteria: HistoryFilter, all_of_them: bool) -> Iterator[SqlCondition]:
    if criteria.error is None:
        return
    yield from _with_status(connection, HistoryFilter(status="failed"), all_of_them)
    texts = [
        text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        for text in criteria.error.split(ANYTHING)
    ]
    yield _value_of_newest(deliveries.c.error).like("%".join(texts), escape="\\"), True


def _with_code(criteria: HistoryFilter) -> Iterator[SqlCondition]:
    if criteria.code is None:
        return
    yield invocations.c.code == criteria.code, True
    if criteria.code not in ("accepted", *_NOT_STARTED):
        outcome = "edited" if criteria.code == "edited" else "rejected"
        yield and_(invocations.c.outcome == outcome, UNUSUAL_INVOCATIONS), True


def _answered(connection: Connection, criteria: HistoryFilter, all_of_them: bool) -> Iterator[SqlCondition]:
    """No call is recorded with a status of 5xx: a caller that hears one has waited."""
    if criteria.answer is None:
        return
    gone = criteria.answer == "gone"
    first, last = _statuses(criteria.answer)
    unusual = select(answers.c.invocation_id).where(UNUSUAL_ANSWERS)
    if (gone or first >= 500) and (all_of_them or not _more_than(connection, FEW, unusual)):
        meant = ~answers.c.reached if gone else answers.c.status.between(first, last) & answers.c.reached
        yield invocations.c.id.in_(unusual.where(meant)), True
        return
    noted = select(case((answers.c.reached, answers.c.status), else_=0))
    noted = noted.where(answers.c.invocation_id == invocations.c.id)
    heard = noted.correlate(invocations).scalar_subquery()
    if gone:
        yield heard == 0, False
    else:
        yield func.coalesce(heard, invocations.c.status).between(first, last), False


def _statuses(answer: str) -> tuple[int, int]:
    if answer == "gone":
        return 0, 0
    return (int(answer[0]) * 100, int(answer[0]) * 100 + 99) if answer.endswith("xx") else (int(answer),) * 2


def _with_values(
    connection: Connection, criteria: HistoryFilter, all_of_them: bool
) -> Iterator[SqlCondition]:
    """Mapped values, event names and addresses, which are entries of an index."""
    for beginning in _beginnings(criteria):
        within = call_values.c.value.between(beginning, beginning + b"\xff")  # no text in UTF-8 has this byte
        there = select(call_values.c.invocation_id).where(within)
        if all_of_them or not _more_than(connection, MANY, there):
            yield invocations.c.id.in_(there), True
        else:
            here = there.where(call_values.c.invocation_id == invocations.c.id)
            yield here.correlate(invocations).exists(), False
    for key in keys_of(criteria):
        probed = call_values.alias()
        entries = select(probed.c.value).where(
            probed.c.value == key, probed.c.invocation_id == invocations.c.id
        )
        yield entries.correlate(invocations).exists(), True


def _containing(connection: Connection, criteria: HistoryFilter) -> Iterator[SqlCondition]:
    holds = _in_sqlite if connection.dialect.name == "sqlite" else _in_postgres
    if criteria.header:
        yield holds(invocations.c.headers, in_headers(part_of(criteria.header)).decode()), False
    if criteria.field and path_of(criteria) is None:
        entered = bool(keys_of(criteria) or _beginnings(criteria))
        yield (
            holds(_value_of_newest(deliveries.c.fields), in_fields(part_of(criteria.field)).decode()),
            entered,
        )
    if criteria.search:
        reasons = invocations.c.detail, _value_of_newest(deliveries.c.error)
        columns = invocations.c.body, invocations.c.headers, invocations.c.query, *reasons
        conditions = [holds(column, criteria.search) for column in columns]
        yield or_(invocations.c.id == criteria.search, *conditions), False


def _in_sqlite(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Compares without regard to case. In bytes only the letters A to Z are made small."""
    small = func.lower(cast(column, Text))
    return or_(*(func.instr(small, spelling) > 0 for spelling in spellings(text)))


def _in_postgres(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Compares without regard to case. Each byte is read as a letter of Latin-1, so that no byte is invalid. A value
    with a NUL is no text for Postgres: there the bytes have to be the same."""

    def within(where: ColumnElement[Any], sought: str | bytes) -> ColumnElement[bool]:
        return func.position(literal(sought).op("IN")(where)) > 0

    if isinstance(column.type, Text):
        letters = func.lower(collate(column, "C"))
        return or_(*(within(letters, spelling) for spelling in spellings(text)))
    small = func.lower(collate(func.convert_from(column, "LATIN1"), "C"))
    as_latin = (spelling.encode().decode("latin-1") for spelling in spellings(text))
    return case(
        (within(column, b"\0"), within(column, text.encode())),
        else_=or_(*(within(small, spelling) for spelling in as_latin)),
    )


def keys_of(criteria: HistoryFilter) -> list[bytes]:
    """The entries of the index under which all of the calls are, first the one that fewer have."""
    keys = [value_key(value) for value in _values(criteria) if beginning_key(value) is None]
    return [*keys, address_key(criteria.address)] if criteria.address else keys


def _beginnings(criteria: HistoryFilter) -> list[bytes]:
    return [key for value in _values(criteria) if (key := beginning_key(value)) is not None]


def _values(criteria: HistoryFilter) -> list[str]:
    """Which mapped values, or beginnings of them, are asked for."""
    values = [criteria.value] if criteria.value and not criteria.value.startswith("inv_") else []
    part = part_of(criteria.field) if criteria.field else None
    if part is not None and part.is_mapped and part.value:
        values.append(part.value + "*" * part.begins)
    return values


def _more_than(connection: Connection, most: int, query: Select[Any] | CompoundSelect[Any]) -> bool:
    return connection.scalar(query.offset(most).limit(1)) is not None


def _value_of_newest(column: ColumnElement[Any]) -> ScalarSelect[Any]:
    """Selects a column of the invocation's newest delivery. It is a value and not EXISTS: of that Postgres makes a
    join, and sorts every delivery there is for one page. The state is not in its WHERE: it would be looked for among
    all that wait, once for each row."""
    newest = select(column).where(belongs()).order_by(deliveries.c.emission.desc())
    return newest.correlate(invocations).limit(1).scalar_subquery()


def was_started() -> ColumnElement[bool]:
    """Accepted, or started by somebody after it had been rejected or filtered."""
    return _value_of_newest(deliveries.c.key).is_not(None)


def has_completed() -> ColumnElement[bool]:
    """Its newest delivery: one that failed when it was replayed has not."""
    return func.coalesce(_value_of_newest(deliveries.c.state), "") == "completed"


def was_superseded() -> ColumnElement[bool]:
    return func.coalesce(_value_of_newest(deliveries.c.state), "") == "superseded"


def was_so_at(at: int, criteria: HistoryFilter, now: int) -> ColumnElement[bool]:
    """The newest delivery, if there is one, was made by then; where its state is asked for, it was in that by then, as far as a time
    is kept of it."""
    since: ColumnElement[Any] = deliveries.c.created_at
    if criteria.status or criteria.error:
        given_up = case((deliveries.c.state == "failed", deliveries.c.next_at))
        times = deliveries.c.ended_at, deliveries.c.started_at, given_up, deliveries.c.released_at, since
        since = func.coalesce(*times)
    # A time that is yet to come is of a wrong clock.
    in_time = or_(since <= at, since > now)
    return func.coalesce(_value_of_newest(case((in_time, 1), else_=0)), 1) == 1


def _newest_state() -> ScalarSelect[str]:
    answered = and_(deliveries.c.state.in_(("started", "completed")), deliveries.c.answer_code == "accepted")
    return _value_of_newest(
        case((answered, "responded"), (deliveries.c.state == "queued", "accepted"), else_=deliveries.c.state)
    )


def _in_state(status: str) -> ColumnElement[bool]:
    """The condition for a state that few deliveries are in and for which there is an index."""
    if status == "accepted":
        return QUEUED
    return and_(deliveries.c.state == status, UNUSUAL_DELIVERIES)
