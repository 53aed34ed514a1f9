"""Counts per minute, and their sums per quarter of an hour, in which whatever is longer ago than that is
read.

The sums are made afterwards, when nothing is counted into them any more: counting is on every call's
way, summing is not.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, insert, literal, select, update

from postern.core.history.volume import Volume, is_call
from postern.stores.calls.recorder import count_unrecorded
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import LATENCY_BOUNDS_MS, chores, tallies, volume_rollups, volumes, webhooks
from postern.stores.sql.upsert import insert_first

QUARTER = 15
STEP = 16 * QUARTER
"""Minutes summed up at once, where there is much to catch up with: calls wait for the writer meanwhile."""
SETTLED_AFTER = 5
"""Minutes after which nothing is counted into a minute any more."""
ALL = ""
"""Stands in place of a webhook's id for the sum over all of them."""

_ROLL_UP = chores.c.name == "volumes"
WITHIN = [f"within_{bound}" for bound in LATENCY_BOUNDS_MS]


class Volumes(Repository):
    @reads
    def buckets(
        self, connection: Connection, webhook_id: str | None, since: int, until: int, step: int
    ) -> dict[int, Volume]:
        """Volumes by the bucket's first minute, without empty buckets. ``webhook_id``: None for all webhooks."""
        # The key begins with the webhook: naming each makes it one short range a webhook instead of one look at
        # everything.
        unsummed = (
            volumes.c.webhook_id == webhook_id
            if webhook_id
            else volumes.c.webhook_id.in_(select(webhooks.c.id))
        )
        summed = volume_rollups.c.webhook_id == (webhook_id or ALL)
        totals: dict[int, Volume] = {}
        for table, first, end in parts(connection, since, until, step):
            condition = summed if table is volume_rollups else unsummed
            bucket = table.c.minute - table.c.minute % step
            sums = (func.sum(table.c[column]) for column in ("calls", *WITHIN))
            statement = select(bucket, table.c.code, *sums).where(
                condition, table.c.minute >= first, table.c.minute < end
            )
            for minute, code, calls, *within in connection.execute(statement.group_by(bucket, table.c.code)):
                totals.setdefault(int(minute), Volume()).add(
                    code, int(calls), [int(count) for count in within]
                )
        return totals

    @reads
    def calls(
        self, connection: Connection, webhook_ids: Sequence[str] | None, since: int, until: int, step: int
    ) -> dict[str, Counter[int]]:
        """Returns by webhook how many calls came, by the bucket's first minute. ``webhook_ids``: None for all that were called."""
        counts = defaultdict[str, Counter[int]](Counter)
        among = called_since(since) if webhook_ids is None else webhook_ids
        for table, first, end in parts(connection, since, until, step):
            condition = table.c.webhook_id.in_(among)
            bucket = table.c.minute - table.c.minute % step
            statement = select(table.c.webhook_id, bucket, table.c.code, func.sum(table.c.calls))
            statement = statement.where(condition, table.c.minute >= first, table.c.minute < end)
            for webhook_id, minute, code, calls in connection.execute(
                statement.group_by(table.c.webhook_id, bucket, table.c.code)
            ):
                if is_call(code):
                    counts[webhook_id][int(minute)] += int(calls)
        return counts

    @writes
    def count(self, connection: Connection, counted: Mapping[tuple[str, int, str], int], now: float) -> None:
        """Counts calls that are not in the history, by webhook, minute and code. All were answered at once."""
        # Counts that could not be written in time are counted late: the minutes before are summed up already.
        earliest = int(now // 60) - SETTLED_AFTER + 1
        summed: Counter[tuple[str, int, str]] = Counter()
        for (webhook_id, minute, code), calls in counted.items():
            summed[webhook_id, max(minute, earliest), code] += calls
        count_unrecorded(connection, summed, now)

    @writes
    def roll_up(self, connection: Connection, now: float) -> bool:
        """Sum up the next quarters of an hour that are over, a few hours of them at most. Whether there are more."""
        over = int(now // 60) - SETTLED_AFTER
        over -= over % QUARTER
        first = min(_begun(connection, over), take_sums_back(connection, int(now // 60)))
        until = min(first + STEP, over)
        if until <= first:
            return False
        _sum_up(connection, volumes, volumes.c.webhook_id, first, until)
        _sum_up(connection, volume_rollups, literal(ALL), first, until)
        connection.execute(update(chores).where(_ROLL_UP).values(at=milliseconds(now), reached=str(until)))
        return until < over


def take_sums_back(connection: Connection, minute: int) -> int:
    """Takes back the sums of a time that is yet to come: the clock was set back since, and there will be more to sum up. Returns
    how far they may reach."""
    over = minute - SETTLED_AFTER
    over -= over % QUARTER
    reached = connection.scalar(select(chores.c.reached).where(_ROLL_UP).with_for_update())
    if reached is not None and int(reached) > over:
        for of in (
            volume_rollups.c.webhook_id.in_(select(webhooks.c.id)),
            volume_rollups.c.webhook_id == ALL,
        ):
            connection.execute(delete(volume_rollups).where(of, volume_rollups.c.minute >= over))
        connection.execute(update(chores).where(_ROLL_UP).values(reached=str(over)))
    return over


def called_since(minute: int) -> Select[tuple[str]]:
    """The webhooks with a call since then."""
    last = tallies.c.last_at >= milliseconds(minute * 60)
    return select(tallies.c.webhook_id).where(tallies.c.name == "calls", last)


def parts(connection: Connection, since: int, until: int, step: int) -> list[tuple[Table, int, int]]:
    """Returns the tables to read the range from: sums as far as they have been made, minutes from there on."""
    reached = connection.scalar(select(chores.c.reached).where(_ROLL_UP)) if step % QUARTER == 0 else None
    border = min(max(since, int(reached or 0)), until)
    ranges = [(volume_rollups, since, border), (volumes, border, until)]
    return [(table, first, end) for table, first, end in ranges if first < end]


def _begun(connection: Connection, over: int) -> int:
    """Returns where to go on. Locked until the commit: one of two processes sums up, and the other finds it done."""
    reached = connection.scalar(select(chores.c.reached).where(_ROLL_UP).with_for_update())
    if reached is not None:
        return int(reached)
    oldest = select(func.min(volumes.c.minute)).where(volumes.c.webhook_id == webhooks.c.id).scalar_subquery()
    first = connection.scalar(select(func.min(oldest)).select_from(webhooks))
    first = over if first is None else min(int(first) - int(first) % QUARTER, over)
    # Where somebody else has begun meanwhile, nothing is left to do for us now.
    begun = insert_first(connection, chores, {"name": "volumes", "at": 0, "reached": str(first)})
    return first if begun else over


def _sum_up(
    connection: Connection, table: Table, as_webhook: ColumnElement[str], first: int, until: int
) -> None:
    columns = ("calls", *WITHIN)
    bucket = table.c.minute - table.c.minute % QUARTER
    sums = select(as_webhook, bucket, table.c.code, *(func.sum(table.c[column]) for column in columns))
    sums = sums.where(
        table.c.webhook_id.in_(select(webhooks.c.id)), table.c.minute >= first, table.c.minute < until
    )
    sums = sums.group_by(
        *([] if as_webhook is not table.c.webhook_id else [table.c.webhook_id]), bucket, table.c.code
    )
    connection.execute(insert(volume_rollups).from_select(["webhook_id", "minute", "code", *columns], sums))
