"""A setting that is added to `core/webhooks/settings.py` is asked for and answered by that alone. Where people set it and
read of it, it is missed here: each failure says where to go."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from postern.core.webhooks import settings
from postern.core.webhooks.settings import ConditionRow, Setting, WebhookSettings
from postern.surfaces.console.labels import LABELS

TITLED = {part for name in LABELS for part in name.split(".")} | {
    "handshake",
    *ConditionRow.__struct_encode_fields__,
}


def all_of(shape: type[Setting]) -> Iterator[type[Setting]]:
    """The setting, and those that it consists of."""
    yield shape
    for field in msgspec.structs.fields(shape):
        for kind in (field.type, *get_args(field.type)):
            if isinstance(kind, type) and issubclass(kind, Setting):
                yield from all_of(kind)


SHAPES = [pytest.param(shape, id=shape.__name__) for shape in all_of(WebhookSettings)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_console_asks_for_it(shape: type[Setting]) -> None:
    missing = set(shape.__struct_encode_fields__) - TITLED
    assert not missing, f"LABELS in surfaces/console/labels.py has no title of {missing}"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reference_page_tells_it(shape: type[Setting]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "webhook-settings.md").read_text()
    names = {name for name in shape.__struct_encode_fields__ if f"{name}`" not in page}
    assert not names, (
        f"add {shape.__name__} to WEBHOOK_SETTINGS in scripts/reference.py, and run `make reference`"
    )


def test_one_that_is_forgotten_is_missed() -> None:
    planted = msgspec.defstruct(
        "RateLimit", [("quiet_hours", list[int], msgspec.field(default_factory=list))], bases=(settings.RateLimit,),
        kw_only=True, frozen=True, rename="camel",
    )  # fmt: skip
    for test in (test_the_console_asks_for_it, test_the_reference_page_tells_it):
        with pytest.raises(AssertionError, match=r"quietHours|WEBHOOK_SETTINGS"):
            test(planted)
