"""The types of a webhook's payload, made from its recorded calls."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from postern.core.problems import Refused
from postern.usecases.history import samples as payload_types_module
from postern.usecases.history.samples import payload_types
from postern.workflows.scaffold import module_of_types
from postern.workflows.shapes import JsonShape
from support.house import OWNER, House
from support.refusals import refused
from support.waiting import PATIENCE

CALLS: list[dict[str, Any]] = [
    {
        "id": 1,
        "total": 10,
        "customer": {"email": "a", "address": {"city": "x"}},
        "items": [{"sku": "a"}],
        "note": None,
    },
    {
        "id": "two",
        "total": 10.5,
        "customer": {"email": "b", "phone": None},
        "note": "text",
        "paid": True,
        "items": [{"sku": "b", "count": 2}, 7],
        "first-name": "x",
        "class": 1,
        "tags": [],
    },
    # What strangers may call a field: a type, a class of ours, a name that Python would change.
    {
        "id": 3,
        "total": 1,
        "customer": {"email": "c", "str": 1, "Any": 2},
        "items": [],
        "note": "n",
        "Customer": {"Customer": 1},
        "Event": 1,
        "Payload": {"x": 1},
        "__x": 1,
        "": 1,
        '"""\\\n': "\u202e",
    },
]


def source_of(calls: list[Any]) -> str:
    shape = JsonShape()
    for one in calls:
        shape.add(one)
    return module_of_types("wh_1", shape, len(calls))


def test_types_say_what_is_there_always_and_what_sometimes() -> None:
    source = source_of(CALLS[:2])
    for line in (
        "class Address(TypedDict):\n    city: str\n",
        "class Customer(TypedDict):\n    address: NotRequired[Address]\n    email: str\n    phone: NotRequired[Any]\n",
        "class Items(TypedDict):\n    count: NotRequired[int]\n    sku: str\n",
        '        "items": list[Items | int],\n',
        '        "id": str | int,\n',
        '        "note": str | None,\n',
        '        "total": int | float,\n',
        '        "paid": NotRequired[bool],\n',
        '        "tags": NotRequired[list[Any]],\n',
        '        "first-name": NotRequired[str],\n',
        "class Event(TypedDict):\n    webhookId: str\n",
        "    payload: Payload\n",
    ):
        assert line in source, source
    assert "Customer_ = TypedDict(\n" in source_of(CALLS), "a field called str is not to stand for the type"
    assert source.startswith("# Written by `postern workflows types` from 2 recorded calls of wh_1.")


def test_the_same_calls_give_the_same_text_in_whatever_order_they_came() -> None:
    shuffled = [dict(sorted(one.items(), key=lambda _: random.random())) for one in reversed(CALLS)]
    assert source_of(shuffled) == source_of(CALLS)


def test_the_file_can_be_imported_and_passes_a_strict_type_checker(tmp_path: Path) -> None:
    file = tmp_path / "orders_types.py"
    file.write_text(source_of(CALLS))
    assert file.read_text().isascii()
    made: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), made)
    assert set(get_type_hints(made["Event"])["payload"].__annotations__) == set().union(*CALLS)
    user = tmp_path / "orders.py"
    user.write_text(
        "from orders_types import Event\n"
        "def city(event: Event) -> str:\n"
        '    customer = event["payload"]["customer"]\n'
        '    return customer["address"]["city"] if "address" in customer else customer["email"]\n'
        "def wrong(event: Event) -> int:\n"
        '    return event["payload"]["customer"]["email"]\n'
    )
    # In a process of its own: what it knows of Python stays for ever, and each collection of this one would look through it.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={os.devnull}"]
    ran = subprocess.run([*command, str(file), str(user)], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[:-1] == [
        f'{user}:6: error: Incompatible return value type (got "str", expected "int")  [return-value]'
    ], ran.stdout


def test_names_that_are_values_are_no_fields() -> None:
    by_id = [
        {"stock": {f"sku-{number}-{call}": {"left": number} for number in range(30)}} for call in range(4)
    ]
    assert "    stock: dict[str, Stock]\n" in source_of(by_id)
    wide = [{f"a{number}": {"b": 1} for number in range(20_000)}]
    deep: Any = 1
    for _ in range(90):
        deep = {"a": [deep]}
    for calls in (wide, [{"deep": deep}], [], [{}]):
        compile(source_of(calls), "made.py", "exec")
    assert "payload: dict[str, Any]" in source_of([])


async def test_it_reads_the_newest_accepted_calls_of_the_webhook(house: House) -> None:
    webhook, other = await house.webhook(), await house.webhook()
    for number in range(3):
        await house.call(webhook, json.dumps({"number": number}).encode())
    await house.call(webhook, b'{"number": "text"}')
    await house.call(webhook, b"not json")
    await house.call(other, b'{"other": 1}')
    found = await payload_types(house.gateway, OWNER, webhook.id)
    assert found.calls == 4 and "    number: str | int\n" in found.source and "other" not in found.source
    newest = await payload_types(house.gateway, OWNER, webhook.id, calls=1)
    assert (newest.calls, "    number: str\n" in newest.source) == (1, True)
    with pytest.raises(Refused):
        await payload_types(house.gateway, OWNER, webhook.id, calls=0)
    assert (await refused(payload_types(house.gateway, OWNER, "wh_" + "0" * 32))).code == "not_found"


async def numbered(house: House, count: int) -> str:
    """A webhook with so many calls, each with a field of its own beside the common one."""
    webhook = await house.webhook()
    for number in range(count):
        await house.call(webhook, b'{"n":%d,"of_%d":1}' % (number, number))
    return webhook.id


async def test_a_large_body_is_not_read_and_after_so_many_bytes_it_is_enough(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_types_module, "CALLS_AT_ONCE", 1)
    webhook = await numbered(house, 4)  # of 16 bytes each
    with monkeypatch.context() as patched:
        patched.setattr(payload_types_module, "MOST_BYTES", 2 * 16)
        assert (await payload_types(house.gateway, OWNER, webhook)).calls == 2
    await house.call(await house.webhook(), b"{}")
    large = await house.webhook()
    for size in (512 * 1024, 512 * 1024 + 1):
        await house.call(large, b'{"n":1}'.ljust(size))
        assert (await payload_types(house.gateway, OWNER, large.id)).calls == 1


async def test_a_payload_that_cannot_be_read_is_left_out_and_the_others_are_not(house: House) -> None:
    webhook = await house.webhook()
    for body in (b'{"first":1}', b'{"large":1e999}', b'{"last":1}'):
        await house.call(webhook, body)
    found = await payload_types(house.gateway, OWNER, webhook.id)
    assert found.calls == 2 and "first" in found.source and "last" in found.source
    assert "large" not in found.source
