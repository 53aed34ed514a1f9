"""Reading history. A page is one index range, however many millions of rows there are."""

from collections.abc import Callable, Iterable, Sequence
from operator import methodcaller
from time import thread_time
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    Select,
    and_,
    case,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
)

from postern.core.history.findable import address_key, beginning_key, value_key
from postern.core.history.invocation import (
    Answered,
    Content,
    Counted,
    Delivery,
    HistoryFilter,
    HistoryPage,
    Invocation,
    Story,
)
from postern.core.history.part import (
    Part,
    in_fields,
    in_headers,
    is_in_payload,
    looks_into_calls,
    part_of,
    path_of,
)
from postern.identity import first_id_at
from postern.stores.deliveries import delivery_of
from postern.stores.history.marks import shown_marks
from postern.stores.sql.bulk import among, in_the_driver
from postern.stores.sql.database import Database
from postern.stores.sql.moments import seconds
from postern.stores.sql.tables import (
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

LONGEST_LOOK = 5_000
"""How many invocations one page looks through where no index helps (text search); the next page goes on from
there."""

SEARCHED_BYTES = 32 * 1024 * 1024
"""Of bodies, in one look of a search."""

LONGEST_READING = 0.02
"""Seconds of processor time that one look spends on reading bodies: callers wait for the same interpreter."""

READ_AT_ONCE = 100
"""Bodies between two looks at that clock."""

MOST_COUNTED = 10_000

FEW = 2_000
"""Deliveries that wait, are held or have failed: more of them than this are not gone through for one page."""

MANY = 20_000
"""Entries that begin alike: more of them are not gathered for one page."""

_BULKY = ("body", "trace", "headers")
_WHOLE = [invocations.c[name] for name in Invocation.__struct_fields__]
_RECEIVED_AT = Invocation.__struct_fields__.index("received_at")
_LISTED = [column for column in invocations.c if column.name not in _BULKY]
_NOT_STARTED = ("rejected", "duplicate", "handshake")
_USUAL = ("started", "responded", "completed")


class History:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, wanted: HistoryFilter, limit: int, before: str | None = None) -> HistoryPage:
        def query(connection: Connection) -> HistoryPage:
            conditions, indexed = conditions_of(
                wanted, connection.dialect.name, too_many_for_an_index(connection, wanted)
            )
            if before is not None:
                conditions.append(invocations.c.id < before)
            indexed = indexed and not looked_up(wanted) and path_of(wanted) is None
            horizon: str | None = None
            if not indexed:
                horizon = last_looked_at(connection, wanted, looked_along(wanted, before))
                if horizon is not None:
                    conditions.append(
                        invocations.c.id >= horizon
                    )  # the last one looked at; the next page begins after it
            if part := path_of(wanted):
                found_there, stopped_at = _with_value(connection, conditions, part, limit + 1)
                horizon = stopped_at or horizon
                conditions.append(invocations.c.id.in_(found_there))
            listed, newest_first = select(*_LISTED), invocations.c.id.desc()
            if keys := looked_up(wanted):
                # Along the key's own order: the page's rows are the first that are met.
                listed = listed.join(call_values, call_values.c.invocation_id == invocations.c.id)
                conditions.append(call_values.c.value == keys[0])
                newest_first = call_values.c.invocation_id.desc()
            rows = connection.execute(listed.where(*conditions).order_by(newest_first).limit(limit + 1)).all()
            more: str | None = rows[limit - 1].id if len(rows) > limit else horizon
            found = [invocation_of(row) for row in rows[:limit]]
            return HistoryPage(_stories(connection, found), more)

        return await (
            self._database.search(query) if looks_into_calls(wanted) else self._database.read(query)
        )

    async def count(self, wanted: HistoryFilter) -> Counted:
        def query(connection: Connection) -> Counted:
            return counted(connection, wanted)

        return await (
            self._database.search(query) if looks_into_calls(wanted) else self._database.read(query)
        )

    async def oldest(self) -> str | None:
        def query(connection: Connection) -> str | None:
            found: str | None = connection.scalar(select(func.min(invocations.c.id)))
            return found

        return await self._database.read(query)

    async def get(self, invocation_id: str) -> Story | None:
        def query(connection: Connection) -> Story | None:
            row = connection.execute(select(invocations).where(invocations.c.id == invocation_id)).first()
            return None if row is None else _stories(connection, [invocation_of(row)])[0]

        return await self._database.read(query)

    async def same_body(self, invocation: Invocation) -> str | None:
        """A later accepted call of the same webhook with the same body, among the next few thousand: the
        sender's own retry."""

        def query(connection: Connection) -> str | None:
            later = (
                select(invocations.c.id, invocations.c.outcome, invocations.c.body_size)
                .where(invocations.c.webhook_id == invocation.webhook_id, invocations.c.id > invocation.id)
                .order_by(invocations.c.id)
                .limit(LONGEST_LOOK)
                .subquery()
            )
            alike = select(invocations.c.id).join(later, later.c.id == invocations.c.id)
            alike = alike.where(
                later.c.outcome == "accepted",
                later.c.body_size == invocation.body_size,
                invocations.c.body == invocation.body,
            )
            return connection.scalar(alike.limit(1))

        return await self._database.read(query)

    async def stretch(self, before: str | None, limit: int, most_bytes: int) -> HistoryPage:
        """The calls before that one, with everything that was recorded of them: as many as their bodies allow, one at
        least. None is left out, so that each table is read as one range. Retention may have taken some just now; it is
        the end where nothing comes next."""

        def query(connection: Connection) -> HistoryPage:
            there = select(invocations.c.id, invocations.c.body_size).order_by(invocations.c.id.desc())
            if before is not None:
                there = there.where(invocations.c.id < before)
            sizes = connection.execute(there.limit(limit)).all()
            if not sizes:
                return HistoryPage([])
            newest = oldest = sizes[0].id
            total = sizes[0].body_size
            for row in sizes[1:]:
                total += row.body_size
                if total > most_bytes:
                    break
                oldest = row.id
            within = methodcaller("between", oldest, newest)
            rows = connection.execute(
                select(*_WHOLE).where(within(invocations.c.id)).order_by(invocations.c.id.desc())
            )
            made = {one.id: Story(one, []) for one in map(_whole, rows.all())}
            theirs = deliveries.c.key.between(oldest + ".", newest + "/")
            _put_together(connection, made, _deliveries(connection, theirs), within)
            return HistoryPage(list(made.values()), oldest)

        return await self._database.read(query)

    async def brief(self, invocation_ids: list[str], largest_body: int) -> list[Story]:
        """With headers, and with bodies up to that size."""

        def query(connection: Connection) -> list[Story]:
            wanted = brief(largest_body).where(invocations.c.id.in_(invocation_ids))
            return _stories(connection, [invocation_of(row) for row in connection.execute(wanted)])

        return await self._database.read(query)

    async def some(self, invocation_ids: list[str]) -> list[Story]:
        def query(connection: Connection) -> list[Story]:
            rows = connection.execute(select(*_LISTED).where(invocations.c.id.in_(invocation_ids)))
            return _stories(connection, [invocation_of(row) for row in rows])

        return await self._database.read(query)

    async def first_fields(self, invocation_ids: list[str]) -> dict[str, dict[str, str]]:
        """Of those that were ever started: the four values that they were first started with."""

        def query(connection: Connection) -> dict[str, dict[str, str]]:
            if not invocation_ids:
                return {}
            newest_first = reversed(_deliveries(connection, _of(invocation_ids)))
            return {delivery.invocation_id: delivery.fields for delivery in newest_first}

        return await self._database.read(query)

    async def many(self, invocation_ids: list[str]) -> dict[str, Invocation]:
        def query(connection: Connection) -> dict[str, Invocation]:
            rows = connection.execute(select(invocations).where(invocations.c.id.in_(invocation_ids)))
            return {row.id: invocation_of(row) for row in rows}

        return await self._database.read(query)

    async def contents(self, invocation_ids: list[str]) -> dict[str, Content]:
        """What those calls carried, where they are still there."""

        def query(connection: Connection) -> dict[str, Content]:
            are_these, asked = among(connection, invocation_ids)
            text = f"SELECT id, headers, body FROM invocations WHERE id {are_these}"
            with in_the_driver(connection, text) as driver:
                return {id: Content(headers, body) for id, headers, body in driver.execute(text, (asked,))}

        return await self._database.read(query)


def counted(connection: Connection, wanted: HistoryFilter) -> Counted:
    """As far as counting costs about as much as a page does."""
    conditions, indexed = conditions_of(
        wanted, connection.dialect.name, too_many_for_an_index(connection, wanted)
    )
    part = path_of(wanted)
    is_along_an_index = indexed and part is None
    horizon = None if is_along_an_index else last_looked_at(connection, wanted, looked_along(wanted, None))
    if horizon is not None:
        conditions.append(invocations.c.id >= horizon)
    if part is not None:
        found_there, stopped_at = _with_value(connection, conditions, part, MOST_COUNTED + 1)
        calls, horizon = len(found_there), stopped_at or horizon
        return Counted(min(calls, MOST_COUNTED), calls > MOST_COUNTED or horizon is not None, horizon)
    found = select(invocations.c.id).where(*conditions)
    if keys := looked_up(wanted):
        found = found.join(call_values, call_values.c.invocation_id == invocations.c.id)
        found = found.where(call_values.c.value == keys[0])
    bounded = found.limit(MOST_COUNTED + 1).subquery()
    calls = connection.scalar(select(func.count()).select_from(bounded)) or 0
    return Counted(min(calls, MOST_COUNTED), calls > MOST_COUNTED or horizon is not None, horizon)


def _with_value(
    connection: Connection,
    conditions: list[ColumnElement[bool]],
    part: Part,
    most: int,
) -> tuple[list[str], str | None]:
    """The newest calls that have it in their payload, found by reading one body after another, and the one after which
    the time for that was over."""
    columns = (invocations.c.id, invocations.c.headers, invocations.c.body)
    newest_first = select(*columns).where(*conditions).order_by(invocations.c.id.desc())
    found: list[str] = []
    began = thread_time()
    with connection.execute(newest_first, execution_options={"yield_per": READ_AT_ONCE}) as read:
        for rows in read.partitions():
            for invocation_id, headers, body in rows:
                if is_in_payload(part, headers, body or b""):
                    found.append(invocation_id)
                    if len(found) == most:
                        return found, None
            if thread_time() - began > LONGEST_READING:
                return found, invocation_id
    return found, None


def brief(largest_body: int) -> Select[Any]:
    """Calls with their headers, and with bodies up to that size."""
    body = case((invocations.c.body_size <= largest_body, invocations.c.body)).label("body")
    return select(*_LISTED, invocations.c.headers, body, null().label("trace"))


def conditions_of(
    wanted: HistoryFilter, dialect: str, many: bool = False
) -> tuple[list[ColumnElement[bool]], bool]:
    """The WHERE, and whether an index leads straight to the rows. ``many``: so many are in the state asked
    for that whoever began with them would read them all for one page; then the newest invocations are looked
    through, as in a search."""
    conditions: list[ColumnElement[bool]] = []
    indexed = True
    if wanted.webhook_id is not None:
        # Where a value leads to the calls, the index of the webhook's must not be taken instead.
        column = invocations.c.webhook_id
        owner = func.coalesce(column, "") if looked_up(wanted) else column
        conditions.append(owner == wanted.webhook_id)
    if wanted.since is not None:
        conditions.append(invocations.c.id >= first_id_at("inv", wanted.since))
    if wanted.until is not None:
        conditions.append(invocations.c.id < first_id_at("inv", wanted.until))
    if wanted.status in _NOT_STARTED:
        conditions += [invocations.c.outcome == wanted.status, UNUSUAL_INVOCATIONS]
        if wanted.status == "rejected":  # not those admitted since: they show what became of them
            conditions.append(~was_started())
    elif wanted.status is not None:
        conditions.append(_newest_state() == wanted.status)
        if wanted.status in _USUAL or many:
            indexed = False
        else:
            # Few rows and an index of their own: come from there, not from the history.
            conditions.append(
                invocations.c.id.in_(select(deliveries.c.invocation_id).where(*_in_state(wanted.status)))
            )
    if wanted.bookmarked:
        conditions.append(invocations.c.id.in_(select(bookmarks.c.invocation_id)))
    if wanted.code is not None:
        conditions.append(invocations.c.code == wanted.code)
        if wanted.code == "edited":
            conditions += [invocations.c.outcome == "edited", UNUSUAL_INVOCATIONS]
        elif wanted.code not in ("accepted", *_NOT_STARTED):
            conditions += [invocations.c.outcome == "rejected", UNUSUAL_INVOCATIONS]
    if wanted.answer is not None:
        answered, few = _answered_with(wanted.answer, many)
        conditions.append(answered)
        indexed = indexed and few
    if wanted.value and wanted.value.startswith("inv_"):
        conditions.append(invocations.c.id == wanted.value)
    for beginning in _beginnings(wanted):
        within = call_values.c.value.between(beginning, beginning + b"\xff")  # no text in UTF-8 has this byte
        if many:
            indexed = False
            there = select(call_values.c.value).where(within, call_values.c.invocation_id == invocations.c.id)
            conditions.append(there.correlate(invocations).exists())
        else:
            conditions.append(invocations.c.id.in_(select(call_values.c.invocation_id).where(within)))
    for key in looked_up(wanted):
        probed = call_values.alias()
        found = select(probed.c.value).where(
            probed.c.value == key, probed.c.invocation_id == invocations.c.id
        )
        conditions.append(found.correlate(invocations).exists())
    if wanted.header:
        indexed = False
        conditions.append(_holds(invocations.c.headers, in_headers(part_of(wanted.header)), dialect))
    if wanted.field and path_of(wanted) is None:
        part = part_of(wanted.field)
        indexed = indexed and bool(looked_up(wanted) or _beginnings(wanted))
        conditions.append(_holds(_value_of_newest(deliveries.c.fields), in_fields(part), dialect))
    if wanted.search:
        indexed = False
        text = wanted.search.encode()
        conditions.append(
            or_(
                invocations.c.id == wanted.search,
                *(
                    _holds(column, text, dialect)
                    for column in (invocations.c.body, invocations.c.headers, invocations.c.query)
                ),
            )
        )
    return conditions, indexed


def looked_up(wanted: HistoryFilter) -> list[bytes]:
    """By what the calls are found, the one that fewer have first."""
    values = [value for value in _values(wanted) if beginning_key(value) is None]
    keys = [value_key(value) for value in values]
    return [*keys, address_key(wanted.address)] if wanted.address else keys


def _beginnings(wanted: HistoryFilter) -> list[bytes]:
    return [key for value in _values(wanted) if (key := beginning_key(value)) is not None]


def _values(wanted: HistoryFilter) -> list[str]:
    """Which mapped values, or beginnings of them, are asked for."""
    found = [wanted.value] if wanted.value and not wanted.value.startswith("inv_") else []
    part = part_of(wanted.field) if wanted.field else None
    if part is not None and part.is_mapped and part.value:
        found.append(part.value + "*" * part.begins)
    return found


def _answered_with(answer: str, many: bool) -> tuple[ColumnElement[bool], bool]:
    """The condition, and whether an index leads to what meets it. No call is recorded with a status of 5xx: a
    caller that hears one has waited."""
    first, last = _statuses(answer)
    if many or (answer != "gone" and first < 500):
        noted = select(case((answers.c.reached, answers.c.status), else_=0))
        noted = noted.where(answers.c.invocation_id == invocations.c.id)
        value = noted.correlate(invocations).scalar_subquery()
        if answer == "gone":
            return value == 0, False
        return func.coalesce(value, invocations.c.status).between(first, last), False
    meant = (
        ~answers.c.reached if answer == "gone" else answers.c.status.between(first, last) & answers.c.reached
    )
    return invocations.c.id.in_(select(answers.c.invocation_id).where(meant, UNUSUAL_ANSWERS)), True


def _statuses(answer: str) -> tuple[int, int]:
    if answer == "gone":
        return 0, 0
    return (int(answer[0]) * 100, int(answer[0]) * 100 + 99) if answer.endswith("xx") else (int(answer),) * 2


def _value_of_newest(column: ColumnElement[Any]) -> ScalarSelect[Any]:
    """What the invocation's newest delivery has there. A value, not EXISTS: of that Postgres makes a join,
    and sorts every delivery there is for one page. And nothing about the state in its WHERE: it would be
    looked for among all that wait, once for each row."""
    newest = select(column).where(belongs()).order_by(deliveries.c.emission.desc())
    return newest.correlate(invocations).limit(1).scalar_subquery()


def was_started() -> ColumnElement[bool]:
    """Accepted, or admitted after it had been rejected."""
    return _value_of_newest(deliveries.c.key).is_not(None)


def _newest_state() -> ScalarSelect[str]:
    answered = and_(deliveries.c.state.in_(("started", "completed")), deliveries.c.answer_code == "accepted")
    return _value_of_newest(
        case((answered, "responded"), (deliveries.c.state == "queued", "accepted"), else_=deliveries.c.state)
    )


def _in_state(status: str) -> list[ColumnElement[bool]]:
    """For the states that few deliveries are in and an index holds."""
    if status == "accepted":
        return [deliveries.c.state == literal_column("'queued'")]
    return [deliveries.c.state == status, UNUSUAL_DELIVERIES]


def _holds(column: Any, text: bytes, dialect: str) -> ColumnElement[bool]:
    if dialect == "sqlite":
        return func.instr(column, text) > 0
    return func.position(literal(text).op("IN")(column)) > 0


def too_many_for_an_index(connection: Connection, wanted: HistoryFilter) -> bool:
    if wanted.answer is not None:
        apart = select(answers.c.invocation_id).where(UNUSUAL_ANSWERS)
        if connection.scalar(apart.offset(FEW).limit(1)) is not None:
            return True
    for beginning in _beginnings(wanted):
        within = call_values.c.value.between(beginning, beginning + b"\xff")
        if connection.scalar(select(call_values.c.invocation_id).where(within).offset(MANY).limit(1)):
            return True
    if wanted.status is None or wanted.status in (*_NOT_STARTED, *_USUAL):
        return False
    return (
        connection.scalar(select(deliveries.c.key).where(*_in_state(wanted.status)).offset(FEW).limit(1))
        is not None
    )


def last_looked_at(connection: Connection, wanted: HistoryFilter, along: Select[str]) -> str | None:
    """Where one look ends that goes along there; None where it comes to the end. A search reads the bodies, so
    it is their sizes that bound it."""
    if not wanted.search and path_of(wanted) is None:
        return connection.scalar(along.offset(LONGEST_LOOK - 1).limit(1))
    total = 0
    rows = connection.execute(along.add_columns(invocations.c.body_size).limit(LONGEST_LOOK)).all()
    for number, row in enumerate(rows, 1):
        total += row.body_size
        if total > SEARCHED_BYTES or number == LONGEST_LOOK:
            return str(row.id)
    return None


def looked_along(wanted: HistoryFilter, before: str | None) -> Select[str]:
    if keys := looked_up(wanted):
        found = select(call_values.c.invocation_id.label("id")).where(call_values.c.value == keys[0])
        found = found.join(invocations, invocations.c.id == call_values.c.invocation_id)
        if before is not None:
            found = found.where(call_values.c.invocation_id < before)
        return found.order_by(call_values.c.invocation_id.desc())
    statement = select(invocations.c.id).order_by(invocations.c.id.desc())
    if wanted.webhook_id is not None:
        statement = statement.where(invocations.c.webhook_id == wanted.webhook_id)
    if before is not None:
        statement = statement.where(invocations.c.id < before)
    return statement


def _stories(connection: Connection, found: list[Invocation]) -> list[Story]:
    made = {invocation.id: Story(invocation, []) for invocation in found}
    if made:
        _put_together(connection, made, _deliveries(connection, _of(made)), methodcaller("in_", list(made)))
    return list(made.values())


def _put_together(
    connection: Connection,
    made: dict[str, Story],
    theirs: list[Delivery],
    these: Callable[[ColumnElement[str]], ColumnElement[bool]],
) -> None:
    """What belongs to a call that retention has taken meanwhile is left out."""
    for delivery in theirs:
        if story := made.get(delivery.invocation_id):
            story.deliveries.append(delivery)
    for row in connection.execute(select(answers).where(these(answers.c.invocation_id))):
        if story := made.get(row.invocation_id):
            story.answered = Answered(row.invocation_id, row.status, seconds(row.at), row.reached)
    marked, edited = shown_marks(connection, these)
    for invocation_id, story in made.items():
        story.bookmark, story.edited = marked.get(invocation_id), edited.get(invocation_id)


def _deliveries(connection: Connection, theirs: ColumnElement[bool]) -> list[Delivery]:
    """In the order of their emissions."""
    return sorted(
        (delivery_of(row) for row in connection.execute(select(deliveries).where(theirs)).all()),
        key=lambda delivery: delivery.emission,
    )


def _of(invocation_ids: Iterable[str]) -> ColumnElement[bool]:
    return or_(*(belongs(one) for one in invocation_ids))


def _whole(row: Sequence[Any]) -> Invocation:
    """Of all columns, in their places: to ask for them by their names takes five times as long."""
    one = Invocation(*row)
    one.received_at = seconds(row[_RECEIVED_AT])
    one.trace = one.trace or b"[]"
    return one


def invocation_of(row: Row[Any]) -> Invocation:
    return Invocation(
        id=row.id,
        webhook_id=row.webhook_id,
        received_at=seconds(row.received_at),
        outcome=row.outcome,
        code=row.code,
        status=row.status,
        config_version=row.config_version,
        method=row.method,
        path=row.path,
        query=row.query,
        headers=getattr(row, "headers", b"[]"),
        body=getattr(row, "body", None),
        body_size=row.body_size,
        address=row.address,
        duration_us=row.duration_us,
        matched=row.matched,
        detail=row.detail,
        trace=getattr(row, "trace", None) or b"[]",
        duplicate_of=row.duplicate_of,
    )
