"""Reading history. A page is one index range, however many millions of rows there are."""

from collections.abc import Callable, Iterable, Sequence
from operator import methodcaller
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    UnaryExpression,
    case,
    exists,
    func,
    not_,
    null,
    or_,
    select,
    true,
)

from postern.core.history.invocation import (
    AnswerHeard,
    Content,
    Counted,
    Delivery,
    HistoryFilter,
    HistoryPage,
    Invocation,
    Story,
)
from postern.stores.calls.recorder import delivery_of
from postern.stores.history.ahead import newest_first
from postern.stores.history.looking import LONGEST_LOOK, Look, look_up
from postern.stores.history.marks import shown_marks
from postern.stores.sql.bulk import among, in_the_driver
from postern.stores.sql.moments import seconds, value_of
from postern.stores.sql.repository import Repository, reads
from postern.stores.sql.tables import (
    UNUSUAL_INVOCATIONS,
    answers,
    belongs,
    deliveries,
    invocations,
    masked_tokens,
)

MOST_COUNTED = 10_000

_BULKY = ("body", "trace", "headers")
_WHOLE = [invocations.c[name] for name in Invocation.__struct_fields__]
_RECEIVED_AT = Invocation.__struct_fields__.index("received_at")
_LISTED = [column for column in invocations.c if column.name not in _BULKY]


class History(Repository):
    async def page(self, criteria: HistoryFilter, limit: int, before: str | None = None) -> HistoryPage:
        def query(connection: Connection) -> HistoryPage:
            rows: list[Row[Any]] = []
            for since, until in newest_first(connection, before):
                most = limit + 1 - len(rows)
                look = Look(connection, criteria, most, until, since=since)
                rows += connection.execute(look.newest_first(*_LISTED).limit(most))
                if len(rows) > limit or look.horizon is not None:
                    break
            more: str | None = rows[limit - 1].id if len(rows) > limit else look.horizon
            calls = [invocation_of(row) for row in rows[:limit]]
            return HistoryPage(_stories(connection, calls), more)

        return await look_up(self._database, criteria, query)

    async def count(self, criteria: HistoryFilter) -> Counted:
        """Counts as far as that costs about as much as a page."""

        def query(connection: Connection) -> Counted:
            look = Look(connection, criteria, MOST_COUNTED + 1, whole_key=True)
            if look.read is not None:
                calls = len(look.read)
            else:
                bounded = look.calls(invocations.c.id).limit(MOST_COUNTED + 1).subquery()
                calls = connection.scalar(select(func.count()).select_from(bounded)) or 0
            more = calls > MOST_COUNTED or look.horizon is not None
            return Counted(min(calls, MOST_COUNTED), more, look.horizon)

        return await look_up(self._database, criteria, query)

    @reads
    def oldest(self, connection: Connection) -> str | None:
        first_id: str | None = connection.scalar(select(func.min(invocations.c.id)))
        return first_id

    @reads
    def get(self, connection: Connection, invocation_id: str) -> Story | None:
        row = connection.execute(select(invocations).where(invocations.c.id == invocation_id)).first()
        return None if row is None else _stories(connection, [invocation_of(row)])[0]

    @reads
    def call(self, connection: Connection, invocation_id: str) -> Invocation | None:
        """Without its deliveries."""
        row = connection.execute(select(*_WHOLE).where(invocations.c.id == invocation_id)).first()
        return None if row is None else _whole(row)

    @reads
    def rejected(
        self, connection: Connection, webhook_id: str, after: str, limit: int, most_bytes: int
    ) -> list[Invocation]:
        """A webhook's rejected calls behind that one, the oldest first and without those that were admitted: as many as their
        bodies allow, one at least."""
        conditions = (
            invocations.c.webhook_id == webhook_id,
            invocations.c.outcome == "rejected",
            UNUSUAL_INVOCATIONS,
            invocations.c.id > after,
            not_(exists().where(belongs())),
        )
        return _that_fit(connection, conditions, invocations.c.id.asc(), limit, most_bytes)

    @reads
    def taken(
        self, connection: Connection, webhook_id: str, before: str | None, limit: int, most_bytes: int
    ) -> list[Invocation]:
        """A webhook's accepted and filtered calls before that one, the newest first, likewise."""
        conditions = [
            invocations.c.webhook_id == webhook_id,
            invocations.c.outcome.in_(("accepted", "filtered")),
            *([invocations.c.id < before] if before is not None else []),
        ]
        return _that_fit(connection, conditions, invocations.c.id.desc(), limit, most_bytes)

    @reads
    def masked_tokens(self, connection: Connection, invocation_ids: list[str]) -> dict[str, str]:
        """The fingerprints of the tokens that these calls have shown."""
        theirs = select(masked_tokens).where(masked_tokens.c.invocation_id.in_(invocation_ids))
        return {row.invocation_id: row.fingerprint for row in connection.execute(theirs)}

    @reads
    def came_again(self, connection: Connection, rejected: list[Invocation]) -> dict[str, str]:
        """The sender's own retries: for each of a webhook's rejected calls, the oldest first, the first accepted call with the
        same body among the next few thousand."""
        retries: dict[str, str] = {}
        while rejected:
            of_webhook = invocations.c.webhook_id == rejected[0].webhook_id
            behind = select(invocations.c.id).where(of_webhook, invocations.c.id > rejected[0].id)
            behind = behind.order_by(invocations.c.id)
            # Looked through together: all whose next few thousand end before the last one of these.
            reach = connection.scalar(behind.offset(LONGEST_LOOK).limit(1))
            near = [call for call in rejected if reach is None or call.id <= reach]
            accepted: dict[bytes | None, list[str]] = {}
            for invocation_id, body in connection.execute(_alike(behind.limit(2 * LONGEST_LOOK), near)):
                accepted.setdefault(body, []).append(invocation_id)
            for call in near:
                if again := next((id for id in accepted.get(call.body, ()) if id > call.id), None):
                    retries[call.id] = again
            rejected = rejected[len(near) :]
        return retries

    @reads
    def stretch(self, connection: Connection, before: str | None, limit: int, most_bytes: int) -> HistoryPage:
        """The calls before that one, with everything that was recorded of them: as many as their bodies allow, one at
        least. None is left out, so that each table is read as one range. Retention may have taken some just now; it is
        the end where nothing comes next."""
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
        made = {call.id: Story(call, []) for call in map(_whole, rows.all())}
        theirs = deliveries.c.key.between(oldest + ".", newest + "/")
        _put_together(connection, made, _deliveries(connection, theirs), within)
        return HistoryPage(list(made.values()), oldest)

    @reads
    def brief(
        self, connection: Connection, invocation_ids: list[str], largest_body: int | None = None
    ) -> list[Story]:
        """Returns stories with headers, and with bodies up to that size."""
        query = brief(largest_body).where(invocations.c.id.in_(invocation_ids))
        return _stories(connection, [invocation_of(row) for row in connection.execute(query)])

    @reads
    def some(self, connection: Connection, invocation_ids: list[str]) -> list[Story]:
        rows = connection.execute(select(*_LISTED).where(invocations.c.id.in_(invocation_ids)))
        return _stories(connection, [invocation_of(row) for row in rows])

    @reads
    def contents(self, connection: Connection, invocation_ids: list[str]) -> dict[str, Content]:
        """Returns headers and bodies of the calls that are still there."""
        are_these, argument = among(connection, invocation_ids)
        text = f"SELECT id, headers, body FROM invocations WHERE id {are_these}"
        with in_the_driver(connection, text) as driver:
            return {id: Content(headers, body) for id, headers, body in driver.execute(text, (argument,))}


def _that_fit(
    connection: Connection,
    conditions: Sequence[ColumnElement[bool]],
    order: UnaryExpression[str],
    limit: int,
    most_bytes: int,
) -> list[Invocation]:
    """As many as their bodies allow, one at least."""
    sizes = select(invocations.c.id, func.coalesce(func.length(invocations.c.body), 0))
    ids: list[str] = []
    total = 0
    for invocation_id, size in connection.execute(sizes.where(*conditions).order_by(order).limit(limit)):
        total += size
        if ids and total > most_bytes:
            break
        ids.append(invocation_id)
    there = select(*_WHOLE).where(invocations.c.id.in_(ids)).order_by(order)
    return [_whole(row) for row in connection.execute(there)] if ids else []


def brief(largest_body: int | None) -> Select[Any]:
    """Selects calls with headers, and with bodies up to that size."""
    small = true() if largest_body is None else invocations.c.body_size <= largest_body
    body = case((small, invocations.c.body)).label("body")
    return select(*_LISTED, invocations.c.headers, body, null().label("trace"))


def _alike(among: Select[Any], calls: list[Invocation]) -> Select[Any]:
    """Selects the accepted calls that have the body of one of these."""
    there = among.subquery()
    bodies = {call.body for call in calls if call.body is not None}
    alike = select(invocations.c.id, invocations.c.body).join(there, there.c.id == invocations.c.id)
    return alike.where(
        invocations.c.outcome == "accepted",
        invocations.c.body_size.in_({call.body_size for call in calls}),
        invocations.c.body.in_(bodies),
    ).order_by(invocations.c.id)


def _stories(connection: Connection, calls: list[Invocation]) -> list[Story]:
    made = {invocation.id: Story(invocation, []) for invocation in calls}
    if made:
        _put_together(connection, made, _deliveries(connection, _of(made)), methodcaller("in_", list(made)))
    return list(made.values())


def _put_together(
    connection: Connection,
    made: dict[str, Story],
    theirs: list[Delivery],
    these: Callable[[ColumnElement[str]], ColumnElement[bool]],
) -> None:
    """Adds to each call what belongs to it. Rows of a call that retention has just taken are left out."""
    for delivery in theirs:
        if story := made.get(delivery.invocation_id):
            story.deliveries.append(delivery)
    for row in connection.execute(select(answers).where(these(answers.c.invocation_id))):
        if story := made.get(row.invocation_id):
            story.answered = AnswerHeard(row.invocation_id, row.status, seconds(row.at), row.reached)
    marked, edited = shown_marks(connection, these)
    for invocation_id, story in made.items():
        story.bookmark, story.edited = marked.get(invocation_id), edited.get(invocation_id)


def _deliveries(connection: Connection, theirs: ColumnElement[bool]) -> list[Delivery]:
    return sorted(
        (delivery_of(row) for row in connection.execute(select(deliveries).where(theirs)).all()),
        key=lambda delivery: delivery.emission,
    )


def _of(invocation_ids: Iterable[str]) -> ColumnElement[bool]:
    return or_(*(belongs(invocation_id) for invocation_id in invocation_ids))


def _whole(row: Sequence[Any]) -> Invocation:
    """Reads a row of all columns by their places: reading them by their names takes five times as long."""
    call = Invocation(*row)
    call.received_at = seconds(row[_RECEIVED_AT])
    call.trace = call.trace or b"[]"
    return call


def invocation_of(row: Row[Any]) -> Invocation:
    """Reads a row. Columns that were not selected are empty."""
    trace = getattr(row, "trace", None) or b"[]"
    return value_of(
        Invocation, row, headers=getattr(row, "headers", b"[]"), body=getattr(row, "body", None), trace=trace
    )
