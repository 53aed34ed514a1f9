"""What every request's schema is made of."""

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


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


class FieldProblem(ValueError):
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
