"""Reading what was typed as texts, numbers and paths. Typer would have Pydantic do it, which takes longer to load than
most commands take to run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import typer.core
from typer._click import Context
from typer._click.exceptions import BadParameter
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

_KNOWN = (str, int, float, bool, Path)


def read_lightly() -> None:
    """Typer makes each parameter's reader with the function that is replaced here."""
    typer.core.build_runtime_param = _reader  # type: ignore[attr-defined]


def _reader(descriptor: TypeDescriptor) -> RuntimeParam:
    if _kind(descriptor.annotation) in _KNOWN:
        return _Light(descriptor.parameter_info, descriptor.annotation)
    return build_runtime_param(descriptor)


@dataclass(frozen=True)
class _Light(RuntimeParam):
    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        if isinstance(value, list | tuple):
            return [self._one(one, param, ctx) for one in value]
        return self._one(value, param, ctx)

    def _one(self, value: Any, param: Any, ctx: Context) -> Any:
        kind = _kind(self.annotation)
        if kind not in (int, float):
            return kind(value)
        try:
            number = kind(value)
        except ValueError:
            raise BadParameter(
                f"{value!r} is no {'whole ' if kind is int else ''}number.", ctx=ctx, param=param
            ) from None
        least, most = self.parameter_info.min, self.parameter_info.max
        if (least is not None and number < least) or (most is not None and number > most):
            raise BadParameter(f"{number} is not from {least} to {most}.", ctx=ctx, param=param)
        return number


def _kind(annotation: Any) -> Any:
    """Of a list, what is in it."""
    return get_args(annotation)[0] if get_origin(annotation) is list else annotation
