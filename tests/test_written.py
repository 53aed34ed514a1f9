"""The data in `tests/written/` has one of everything, and what it says is read as it was when it was written. `make written` makes
both by what the program does (`support/everything.py`); what a released version wrote stays.
"""

import json
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from msgspec import inspect

from postern.core.deliveries.delivery import Logged
from postern.core.history.invocation import Delivery, HistoryFilter, Invocation
from postern.core.watch.channels import ChannelState
from postern.core.webhooks.announced import Announced
from postern.core.webhooks.settings import Resolved, WebhookSettings
from postern.stores.sql.tables import deliveries, invocations, metadata
from support.everything import WRITTEN, read
from support.packed import unpack
from test_nothing_forgotten import READ

DOCUMENTS: dict[str, Any] = {
    "webhooks.document": WebhookSettings,
    "webhooks.document.resolved": Resolved,
    "deliveries.log": list[Logged],
    "incidents.told": dict[str, ChannelState],
    "replays.wanted": HistoryFilter,
    "secrets.announced": Announced,
}
"""JSON with members that are read by their names, by where it is stored."""
PLAIN = (
    *("invocations.headers", "invocations.trace", "invocations.body", "deliveries.fields", "deliveries.response_headers"),
    *("deliveries.response_body", "edited_calls.changed", "samples.trigger", "incidents.reasons", "sender_keys.content"),
    *("audit.changes", "chores.summary"),
)  # fmt: skip
"""JSON that is shown as it is, or is lists and dictionaries of texts: `everything.txt` has what is read of it."""
NO_EXAMPLE = {
    "schedules.last_duration_ms": "is less than one where nothing is fetched",
    "tallies.shard": "is another process's",
    "volumes.shard": "is another process's",
}
MADE_ANEW = {"sentence", "warnings", "inWords"}
"""Words for what is stored: they may change."""
ADD_ONE = "make one in tests/support/everything.py, then `make written`. If it has another name now, what is stored has the old one"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    unpack(WRITTEN / "everything.tar.gz", tmp_path / "data")
    return tmp_path


def kept() -> tuple[dict[str, Any], list[str]]:
    """What cannot be read of the data, and the lines that were."""
    first, *lines = (WRITTEN / "everything.txt").read_text("utf-8").splitlines()
    return json.loads(first), lines


def documents(place: str, database: sqlite3.Connection) -> Iterator[Any]:
    table, column, *inner = place.split(".")
    if table == "secrets":  # they are sealed
        secrets = [one["secrets"] for one in map(json.loads, kept()[1]) if "secrets" in one]
        yield from (json.loads(b64decode(one[column])) for one in secrets if column in one)
        return
    for (text,) in database.execute(f"SELECT {column} FROM {table} WHERE {column} <> ''"):
        document = json.loads(text)
        yield document.get(inner[0], {}) if inner else document


def members(kind: inspect.Type) -> Iterator[str]:
    """Each member of what is stored, and each value of a choice but the default, which is not written."""
    match kind:
        case inspect.StructType() | inspect.TypedDictType():
            for one in kind.fields:
                name = f"{kind.cls.__name__}.{one.encode_name}"
                default = f"{getattr(one, 'default', None)} of "
                yield name
                yield from (inner for inner in members(one.type) if not inner.startswith(default))
        case inspect.ListType() | inspect.VarTupleType():
            yield from members(kind.item_type)
        case inspect.DictType():
            yield from members(kind.value_type)
        case inspect.UnionType():
            for arm in kind.types:
                yield from members(arm)
        case inspect.Metadata():
            yield from members(kind.type)
        case inspect.LiteralType():
            for value in kind.values:
                yield f"{value} of {kind.values[0]}, {kind.values[1]}, …"
        case _:
            pass


def examples(kind: inspect.Type, value: Any) -> Iterator[str]:
    """Those that a document has."""
    match kind, value:
        case (inspect.StructType() | inspect.TypedDictType(), dict()):
            for one in kind.fields:
                if one.encode_name in value and value[one.encode_name] != getattr(one, "default", None):
                    yield f"{kind.cls.__name__}.{one.encode_name}"
                    yield from examples(one.type, value[one.encode_name])
        case (inspect.ListType() | inspect.VarTupleType(), list()):
            for one in value:
                yield from examples(kind.item_type, one)
        case (inspect.DictType(), dict()):
            for one in value.values():
                yield from examples(kind.value_type, one)
        case (inspect.UnionType(), _):
            for arm in kind.types:
                if getattr(arm, "tag_field", None) is None or value[arm.tag_field] == arm.tag:
                    yield from examples(arm, value)
        case (inspect.Metadata(), _):
            yield from examples(kind.type, value)
        case (inspect.LiteralType(), _) if value in kind.values:
            yield f"{value} of {kind.values[0]}, {kind.values[1]}, …"
        case _:
            pass


def test_every_member_of_a_stored_document_has_an_example(data: Path) -> None:
    with closing(sqlite3.connect(data / "data" / "postern.db")) as database:
        about = {place: inspect.type_info(kind) for place, kind in DOCUMENTS.items()}
        found = {
            member
            for place in about
            for one in documents(place, database)
            for member in examples(about[place], one)
        }
    lacking = sorted({member for one in about.values() for member in members(one)} - found)
    assert not lacking, f"there is no example of {lacking}: {ADD_ONE}"


def test_every_column_of_every_table_has_an_example(data: Path) -> None:
    kinds = {
        table.name: get_type_hints(kind)
        for table, kind, _ in [*READ, (invocations, Invocation, {}), (deliveries, Delivery, {})]
    }
    lacking, unknown = set(), set()
    with closing(sqlite3.connect(data / "data" / "postern.db")) as database:
        for table in metadata.tables.values():
            for column in table.c:
                place, hint = f"{table.name}.{column.name}", kinds.get(table.name, {}).get(column.name)
                values = {value for (value,) in database.execute(f"SELECT {column.name} FROM {table.name}")}
                lacking |= {place} if not values - {None, "", 0, b""} else set()
                if get_origin(hint) is Literal:
                    lacking |= {f"{place}: {one}" for one in {*get_args(hint)} - values}
                if any(isinstance(one, str | bytes) and one[:1] in ("{", "[", b"{", b"[") for one in values):
                    unknown |= {place} - {*DOCUMENTS, *PLAIN}
    lacking -= NO_EXAMPLE.keys()
    assert not lacking, f"there is no example of {sorted(lacking)}: {ADD_ONE}"
    assert not unknown, f"{unknown} is JSON: say in DOCUMENTS what it is read as, or that it is PLAIN"


async def test_it_is_read_as_when_it_was_written(data: Path) -> None:
    """Members may have been added since; nothing that was there is lost, or is another."""
    unread, lines = kept()
    found = await read(data, unread)
    differing = [*differences([*map(json.loads, lines)], [*map(json.loads, found)], "")]
    assert not differing, "\n".join(differing[:20])


def differences(before: Any, now: Any, place: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before.keys() - MADE_ANEW:
            yield from differences(before[name], now.get(name, "nothing"), f"{place}.{name}")
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{place[1:] or 'it'} had {len(before)} elements, and has {len(now)}"
        for number, (one, other) in enumerate(zip(before, now, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif before != now:
        yield f"{place[1:]} was {before!r}, and is {now!r}"
