"""The variables of a recorded trigger, each with the expression that reads it in a workflow."""

import re
from collections.abc import Iterator
from functools import reduce
from itertools import islice
from types import NoneType
from typing import Any

import msgspec

from postern.core.calls.paths import Path, extended
from postern.core.deliveries.delivery import FIELD_NAMES, variables_of
from postern.core.documents import Document

MOST_VARIABLES = 200
DEEPEST = 8
LONGEST_EXAMPLE = 200

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIXED = ("webhookId", *FIELD_NAMES, "invocationId")


class Sample(msgspec.Struct, frozen=True):
    """Record Events of one webhook: until when it is armed, and the trigger (JSON) that it recorded last."""

    webhook_id: str
    armed_until: float | None = None
    stored_at: float | None = None
    invocation_id: str | None = None
    trigger: bytes | None = None


class Variable(msgspec.Struct, frozen=True, rename="camel"):
    """``expressions``: by the kind of workflow. A kind that cannot read it is left out."""

    path: str
    type: str
    example: Any
    expressions: dict[str, str]


def sample_of(webhook_id: str, invocation_id: str, fields: dict[str, str], payload: bytes) -> bytes:
    """A trigger as JSON: the six variables, and the payload exactly as sent."""
    given = variables_of(webhook_id, invocation_id, fields)
    return msgspec.json.encode({**given, "payload": msgspec.Raw(payload)})


def event_in(trigger: bytes) -> Document | None:
    """Reads what ``sample_of`` made. Returns None if a number is too large: JSON has no bound, and such calls are accepted."""
    try:
        return msgspec.json.decode(trigger, type=Document)
    except msgspec.DecodeError:
        return None


def variables(event: Document) -> list[Variable]:
    """The fixed six, then what is inside a field that holds JSON, then the payload. Bounded: a payload may be anything."""
    return list(islice(_all_variables(event), MOST_VARIABLES))


def _all_variables(event: Document) -> Iterator[Variable]:
    for name in _FIXED:
        yield _variable((name,), event.get(name, ""), ())
    for name in FIELD_NAMES:
        for steps, value in _inside(_json_in(event.get(name, ""))):
            yield _variable((name,), value, steps)
    for steps, value in _inside(event.get("payload")):
        yield _variable(("payload", *steps), value, ())


def _json_in(text: Any) -> Any:
    """The object or array that a field's text holds, or None."""
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _inside(value: Any, steps: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every named place within. An array shows its first element: the others are alike."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list) and value:
        items = [(0, value[0])]
    for key, inner in items if len(steps) < DEEPEST else ():
        yield (*steps, key), inner
        yield from _inside(inner, (*steps, key))


def _variable(outer: Path, value: Any, inner: Path) -> Variable:
    """``inner``: the steps within a text that has to be parsed first."""
    python = "event" + "".join(map(_in_brackets, outer))
    script = "".join(map(_in_script, outer))
    n8n, node_red = f"$json.body{script}", f"msg.payload{script}"
    if inner:
        python = f"json.loads({python})" + "".join(map(_in_brackets, inner))
        within = "".join(map(_in_script, inner))
        n8n, node_red = f"JSON.parse({n8n}){within}", f"JSON.parse({node_red}){within}"
    expressions = {"python": python, "n8n": f"{{{{ {n8n} }}}}", "nodeRed": node_red}
    if not inner:  # Liquid has nothing that parses JSON
        first, *rest = outer
        expressions["liquid"] = f"{{{{ {first}{''.join(map(_in_script, rest))} }}}}"
    return Variable(
        reduce(extended, (*outer, *inner), ""),
        _TYPES.get(type(value), "object"),
        _example(value),
        expressions,
    )


def _in_script(step: str | int) -> str:
    is_plain = isinstance(step, str) and _PLAIN.fullmatch(step)
    return f".{step}" if is_plain else _in_brackets(step)


def _in_brackets(step: str | int) -> str:
    return f"[{msgspec.json.encode(step).decode()}]"


_TYPES = {NoneType: "null", bool: "boolean", int: "number", float: "number", str: "text", list: "array"}


def _example(value: Any) -> Any:
    if isinstance(value, dict | list):
        value = msgspec.json.encode(value).decode()
    if isinstance(value, str) and len(value) > LONGEST_EXAMPLE:
        return value[:LONGEST_EXAMPLE] + "…"
    return value
