"""A setting that is added to `core/webhooks/settings.py` and forgotten elsewhere is missed here: each failure says
where to go."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import postern
from postern.core.webhooks import settings
from postern.core.webhooks.settings import Setting, WebhookSettings
from postern.usecases.webhooks import configuration, schedule_setting
from postern.usecases.webhooks.views import Webhook

CONSOLE = "".join(
    file.read_text() for file in (Path(postern.__file__).parent / "surfaces" / "console").rglob("*.py")
)

Field = msgspec.structs.FieldInfo


def inner(field: Field) -> list[type[Setting]]:
    """The settings that this one consists of, if it does."""
    kinds = (field.type, *get_args(field.type))
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Setting)]


def all_of(shape: type[Setting]) -> Iterator[type[Setting]]:
    yield shape
    for field in msgspec.structs.fields(shape):
        for one in inner(field):
            yield from all_of(one)


SHAPES = [pytest.param(shape, id=shape.__name__) for shape in all_of(WebhookSettings)]
REQUESTS: dict[str, Any] = {**vars(configuration), "WebhookSettings": configuration.WebhookRequest} | {
    "ScheduleSetting": schedule_setting.ScheduleSetting
}
BESIDE = {
    "enabled",
    "method",
    "token",
    "second_token",
    "secret",
    "second_secret",
    "verify_token",
    "preset_version",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_it_can_be_asked_for_with_the_same_default(shape: type[Setting]) -> None:
    request = REQUESTS[shape.__name__]
    stated = {field.name: field for field in msgspec.structs.fields(shape)}
    missing = stated.keys() - request.model_fields.keys()
    assert not missing, f"add {missing} to {request.__name__} in usecases/webhooks/configuration.py"
    unknown = request.model_fields.keys() - stated.keys() - BESIDE
    assert not unknown, f"add {unknown} to {shape.__name__} in core/webhooks/settings.py"
    for name, field in stated.items():
        asked = request.model_fields[name]
        assert asked.is_required() == field.required, f"{name}: required here or there"
        if not field.required and not inner(field) and name != "headers":
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            assert asked.default == default, f"{name}: another default in {request.__name__}"


def test_it_is_answered(shape: type[Setting] = WebhookSettings) -> None:
    """What it consists of is answered as the type that it is."""
    missing = set(shape.__struct_fields__) - set(Webhook.__struct_fields__)
    assert not missing, f"add {missing} to Webhook in usecases/webhooks/views.py"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_console_asks_for_it(shape: type[Setting]) -> None:
    missing = {name for name in shape.__struct_encode_fields__ if f'"{name}"' not in CONSOLE}
    assert not missing, f"the forms of surfaces/console/views do not set {missing}"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reference_page_tells_it(shape: type[Setting]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "webhook-settings.md").read_text()
    names = {name for name in shape.__struct_encode_fields__ if f"{name}`" not in page}
    assert not names, (
        f"add {shape.__name__} to WEBHOOK_SETTINGS in scripts/reference.py, and run `make reference`"
    )


def test_one_that_is_forgotten_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = msgspec.defstruct(
        "RateLimit", [("quiet_hours", list[int], msgspec.field(default_factory=list))], bases=(settings.RateLimit,),
        kw_only=True, frozen=True, rename="camel",
    )  # fmt: skip
    for test in (
        test_it_can_be_asked_for_with_the_same_default,
        test_the_console_asks_for_it,
        test_the_reference_page_tells_it,
    ):
        with pytest.raises(AssertionError, match=r"quiet_?[hH]ours|WEBHOOK_SETTINGS"):
            test(planted)
    planted = msgspec.defstruct(
        "WebhookSettings",
        [("quiet_hours", list[int], [])],
        bases=(WebhookSettings,),
        kw_only=True,
        frozen=True,
    )
    with pytest.raises(AssertionError, match="quiet_hours"):
        test_it_is_answered(planted)
