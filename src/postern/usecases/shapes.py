"""The base of all requests, and what is wrong with one, in our words."""

import base64
import re
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from postern.core.problems import FieldError, FieldsRefused, Refused, invalid
from postern.core.webhooks.settings import Method


class Shape(BaseModel):
    """Camel case outside, snake case inside, and nothing unknown: a misspelt setting must not be ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        str_strip_whitespace=False,
        hide_input_in_errors=True,
        allow_inf_nan=False,  # some readers of JSON take 1e999 for a number, and no integer can be made of it
        defer_build=True,  # a command asks one operation of sixty, and building all takes a fifth of its time
    )


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Stands after the bounds of whole numbers. 5.0 is one: some programs write every number so."""


def decoded(text: str, field: str) -> bytes:
    """The bytes that this field holds as base64. Raises ``Refused``."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # not base64's own error, which a letter beyond ASCII does not cause
        raise invalid(field, "is not base64") from None


def given_body(body: str | None, body_base64: str | None, within: str = "") -> bytes | None:
    """The body that a request gives, as text or to the byte, if any. A wrong field is refused by its name after ``within``."""
    if body is not None and body_base64 is not None:
        raise invalid(f"{within}body", "give body or bodyBase64, one of them")
    if body_base64 is not None:
        return decoded(body_base64, f"{within}bodyBase64")
    return None if body is None else body.encode()


# --- what is wrong with a request, in our words ------------------------------------------------------------------------

# Beside the fields, pydantic's paths name the member of a union that it has tried.
_METHODS = get_args(Method)
_KINDS_OF_VALUE = {"str", "int", "function-before[secret_length(), str]"}
_GENERATE = "Generate"


def validated(shape: type[Shape], data: object, context: object = None) -> Any:
    """Reads a request. Raises ``Refused`` with a message for every wrong field."""
    try:
        return shape.model_validate(
            data, strict=True, context=context
        )  # "5" is no number, and "yes" no truth value
    except ValidationError as error:
        raise Refused("invalid_request", errors=field_errors(error, shape)) from None


MOST_MEANT = 20
"""Unknown fields for which the meant one is looked for: looking takes longer than writing such a field."""


def field_errors(error: ValidationError, model: Any = None) -> list[FieldError]:
    """Pydantic's errors in our words: a dotted path in the caller's spelling, and never the value, which may be a secret.
    ``model``: the type of the request, to find the name that a misspelt one means."""
    messages: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        path = [str(step) for step in detail["loc"]]
        if len(path) > 1 and path[0] == "authentication" and path[1] in _METHODS:
            del path[1]
        path = [step for step in path if step != _GENERATE]
        while path and path[-1] in _KINDS_OF_VALUE:
            path.pop()
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, FieldsRefused):
            for within, wrong in cause.errors.items():
                messages.setdefault(".".join([*path, within]), wrong)
            continue
        if detail["type"].startswith("union_tag"):
            path.append("method")
        message = str(cause) if isinstance(cause, ValueError) else _in_words(detail)
        quoted = _QUOTED.get(detail["type"])
        if quoted and isinstance(detail["input"], str) and quoted.fullmatch(detail["input"]):
            message += ", without quotes"
        if detail["type"] == "extra_forbidden" and len(messages) < MOST_MEANT:
            message += _meant(model, detail["loc"])
        messages.setdefault(".".join(path), message)
    return [FieldError(path, message) for path, message in messages.items()]


def _meant(model: Any, place: tuple[int | str, ...]) -> str:
    *way, name = map(str, place)
    kinds = _shapes(model)
    for step in way:
        if step in _METHODS:  # which of several it is
            kinds = [
                kind
                for kind in kinds
                if "method" in kind.model_fields
                and get_args(kind.model_fields["method"].annotation) == (step,)
            ]
        elif not step.isdigit():
            fields = [field for kind in kinds for field in kind.model_fields.values() if field.alias == step]
            kinds = [inner for field in fields for inner in _shapes(field.annotation)]
    known = sorted({field.alias or "" for kind in kinds for field in kind.model_fields.values()})
    near = get_close_matches(name[:80], known, 1, 0.75)
    return f": did you mean {near[0]}?" if near else ""


def _shapes(kind: Any) -> list[type[Shape]]:
    if isinstance(kind, type) and issubclass(kind, Shape):
        return [kind]
    return [shape for part in get_args(kind) for shape in _shapes(part)]


def _in_words(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind.startswith("union_tag"):
        return f"method must be {', '.join(_METHODS[:-1])} or {_METHODS[-1]}"
    if kind == "string_too_short" and context["min_length"] == 1:
        return "is required"
    if kind == "literal_error":
        return f"choose one of: {context['expected'].replace(' or ', ', ').replace(chr(39), '')}"
    if sentence := _SENTENCES.get(kind):
        return sentence.format(**{name: _whole(value) for name, value in context.items()})
    return error["msg"][:1].lower() + error["msg"][1:]


_SENTENCES = {
    kind: sentence
    for kinds, sentence in (
        ("missing", "is required"),
        ("extra_forbidden", "is not a known setting"),
        ("bool_type bool_parsing", "write true or false"),
        ("int_type int_parsing int_parsing_size int_from_float", "write a whole number"),
        ("float_type float_parsing finite_number", "write a number"),
        ("greater_than", "must be more than {gt}"),
        ("greater_than_equal", "must be {ge} or more"),
        ("less_than", "must be less than {lt}"),
        ("less_than_equal", "must be {le} or less"),
        ("string_type", "write a text, in quotes"),
        ("string_too_short", "must have {min_length} characters or more"),
        ("string_too_long", "must have {max_length} characters or fewer"),
        ("string_pattern_mismatch", "is not a cursor of this list"),
        ("string_unicode", "has half of a character in it (a surrogate without the other one)"),
        ("list_type tuple_type", "write a list, between [ and ]"),
        ("too_short", "must have {min_length} entries or more"),
        ("too_long", "must have {max_length} entries or fewer"),
        ("dict_type model_type model_attributes_type", "write an object, between {{ and }}"),
    )
    for kind in kinds.split()
}

_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,20}(\.[0-9]{1,20})?\s*")
_QUOTED = {"int_type": _NUMBER, "float_type": _NUMBER, "bool_type": re.compile("true|false", re.IGNORECASE)}
"""By the kind of error: a text that would be right without its quotes."""
