"""What every request's schema is made of, and what is read alike in several."""

import base64

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from postern.core.problems import FieldError, Refused


class Shape(BaseModel):
    """Camel case outside, snake case inside, and nothing unknown: a misspelt setting must not be silently
    ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        str_strip_whitespace=False,
        hide_input_in_errors=True,
        allow_inf_nan=False,  # some readers of JSON take 1e999 for a number, and no integer can be made of it
        defer_build=True,  # a command asks one operation of sixty, and building all takes a fifth of its time
    )


class FieldRefused(ValueError):
    """Names the field within the model that the validator stands on."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""For whole numbers, after their bounds. 5.0 is one, in JSON as in YAML: some programs write every number so."""


def checked(value: str, problem: str | None) -> str:
    if problem:
        raise ValueError(problem)
    return value


def decoded(text: str, field: str) -> bytes:
    """What this field holds as base64, or ``Refused`` by its name."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # also of a letter that is not ASCII, which is no error of base64's own
        raise Refused("invalid_request", errors=[FieldError(field, "is not base64")]) from None


def given_body(body: str | None, body_base64: str | None, within: str = "") -> bytes | None:
    """The body that a request gives, as text or to the byte; None where it gives none. What is wrong is refused by its
    field's name, with what it stands ``within`` before it."""
    if body is not None and body_base64 is not None:
        wrong = FieldError(f"{within}body", "give body or bodyBase64, one of them")
        raise Refused("invalid_request", errors=[wrong])
    if body_base64 is not None:
        return decoded(body_base64, f"{within}bodyBase64")
    return None if body is None else body.encode()
