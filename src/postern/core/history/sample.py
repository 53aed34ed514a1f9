"""A recorded trigger as the variables of which a workflow is made, each with what to write to get at it."""

import re
from collections.abc import Iterator
from functools import reduce
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
    """What Record Events knows about a webhook: whether it is armed, and the trigger (JSON) it recorded
    last."""

    webhook_id: str
    armed_until: float | None = None
    stored_at: float | None = None
    invocation_id: str | None = None
    trigger: bytes | None = None


class Variable(msgspec.Struct, frozen=True):
    """``expressions``: how each kind of workflow writes it; a kind that cannot is left out."""

    path: str
    type: str
    example: Any
    expressions: dict[str, str]


def sample_of(webhook_id: str, invocation_id: str, fields: dict[str, str], payload: bytes) -> bytes:
    """What a workflow is given of this call: the six variables, and the payload exactly as sent."""
    given = variables_of(webhook_id, invocation_id, fields)
    return msgspec.json.encode({**given, "payload": msgspec.Raw(payload)})


def event_in(trigger: bytes) -> Document | None:
    """What ``sample_of`` made, read; None where a number in it is larger than can be read. JSON sets numbers no bound, and
    such a call is accepted like any other."""
    try:
        return msgspec.json.decode(trigger, type=Document)
    except msgspec.DecodeError:
        return None


def variables(event: Document) -> list[Variable]:
    """The fixed six, then what is inside a field that holds JSON, then the payload. Bounded, for a payload
    may be anything."""
    found = [_variable((name,), event.get(name, ""), ()) for name in _FIXED]
    for name in FIELD_NAMES:
        held = _json_in(event.get(name, ""))
        if held is not None:
            found += [_variable((name,), value, steps) for steps, value in _inside(held, MOST_VARIABLES)]
    payload = event.get("payload")
    if isinstance(payload, dict):
        found += [
            _variable(("payload", *steps), value, ()) for steps, value in _inside(payload, MOST_VARIABLES)
        ]
    return found[:MOST_VARIABLES]


def _json_in(text: Any) -> Any:
    """What a field's text holds when it is an object or an array."""
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _inside(value: Any, left: int, steps: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every named place within; of an array its first element, for the others are alike."""
    if len(steps) >= DEEPEST:
        return
    items: list[tuple[str | int, Any]] = (
        list(value.items()) if isinstance(value, dict) else [(0, value[0])] if value else []
    )
    for key, inner in items:
        if left <= 0:
            return
        left -= 1
        yield (*steps, key), inner
        if isinstance(inner, dict | list):
            for one in _inside(inner, left, (*steps, key)):
                left -= 1
                yield one


def _variable(outer: Path, value: Any, inner: Path) -> Variable:
    """``inner`` are the steps within a text that has to be parsed first."""
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
    return Variable(reduce(extended, (*outer, *inner), ""), _type(value), _example(value), expressions)


def _in_script(step: str | int) -> str:
    is_plain = isinstance(step, str) and _PLAIN.fullmatch(step)
    return f".{step}" if is_plain else _in_brackets(step)


def _in_brackets(step: str | int) -> str:
    return f"[{msgspec.json.encode(step).decode()}]"


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "array"
        case _:
            return "object"


def _example(value: Any) -> Any:
    if isinstance(value, dict | list):
        value = msgspec.json.encode(value).decode()
    if isinstance(value, str) and len(value) > LONGEST_EXAMPLE:
        return value[:LONGEST_EXAMPLE] + "…"
    return value
