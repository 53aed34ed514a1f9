"""What a log or a traceback prints of a value holds no secret: each class that may hold one is given a canary."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pydantic
import pytest

import postern
from postern.settings import Settings
from postern.usecases.webhooks.requests import TokenAuthentication
from support.calls import call

CANARY = "canary-5c1e"
SECRET = re.compile(
    r"secrets?|.*_secret|.*token|plainToken|.*password|password_hash|.*_keys?|key|value|main|second|headers"
)
BY_ANOTHER_NAME = {"SeenRequest.request", "SeenRequest.answer"}
# Named like secrets, and none.
HARMLESS = {
    "*": {
        "key": "a delivery's key, a path's key, a key in a signature header",
        "duplicate_key": "a digest",
        "delivery_key": "an id",
        "signature_key": "the name of a part of a header",
        "needs_verify_token": "whether",
        "has_public_key": "whether",
        "secret": "whose: main or second; of a sender: what to paste",
    },
    "Invocation.headers": "masked before it is kept",
    "Content.headers": "masked before they are kept",
    "SentBody.headers": "masked before they are kept",
    "Comparison.headers": "masked before they are kept",
    "RecordedRequest.headers": "masked before they are kept",
    "Fixture.headers": "without credentials and signatures",
    "Answer.headers": "said to whoever called",
    "CallerAnswer.headers": "said to whoever called",
    "WorkflowResponse.headers": "said to whoever called",
    "Response.headers": "said to whoever called",
    "ResponseAction.headers": "said to whoever called",
    "ScheduleSetting.headers": "names",
    "TargetSetting.headers": "names",
    "Original.headers": "masked before they are kept",
    "SampleCall.headers": "of an example",
    "SendAgain.token": "which one it has to be",
    **dict.fromkeys(
        (
            *("ContentPart.value", "HistoryFilter.value", "FilterRequest.value", "HistoryQuery.value"),
            *("ReplayFilter.value", "ReplayedCalls.value"),
        ),
        "what is looked for, as the page's address says it, too",
    ),
    "SeenValue.value": "an event's name, or who caused it, as the history shows it",
    "ShownSetting.value": "of a secret whether it is set",
    "Restored.missing_keys": "whether",
    "ShownRotation.main": "how often it was used",
    "ShownRotation.second": "how often it was used",
}
NEVER_HARMLESS = {"NewApiKey.key", "SignatureAuthentication.secret", "ScheduleRequest.headers"}


def classes() -> Iterator[type[Any]]:
    for found in pkgutil.walk_packages(postern.__path__, "postern."):
        if "migrations" in found.name or found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for one in vars(module).values():
            if inspect.isclass(one) and one.__module__ == found.name and fields_of(one):
                yield one


def fields_of(one: type[Any]) -> list[str]:
    if dataclasses.is_dataclass(one):
        return [field.name for field in dataclasses.fields(one)]
    if issubclass(one, msgspec.Struct):
        return [field.name for field in msgspec.structs.fields(one)]
    return list(one.model_fields) if issubclass(one, pydantic.BaseModel) else []


def planted(one: type[Any], fields: list[str]) -> Any:
    values = {name: CANARY if name in fields else "" for name in fields_of(one)}
    if issubclass(one, pydantic.BaseModel):
        return one.model_construct(**values)
    if issubclass(one, msgspec.Struct):
        return one(**values)
    made = one.__new__(one)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def shown(one: type[Any]) -> list[str]:
    place = f"{one.__module__.rpartition('.')[2]}.{one.__name__}"
    found = []
    for name in fields_of(one):
        named = {f"{one.__name__}.{name}", f"{place}.{name}"}
        harmless = name in HARMLESS["*"] or f"{one.__name__}.{name}" in HARMLESS
        if not (SECRET.fullmatch(name) or named & BY_ANOTHER_NAME) or (
            harmless and not named & NEVER_HARMLESS
        ):
            continue
        if CANARY in repr(planted(one, [name])):
            found.append(f"{place}.{name}")
    return found


def test_no_class_prints_a_secret_of_its_own() -> None:
    looked_at = list(classes())
    assert len(looked_at) > 100
    assert [place for one in looked_at for place in shown(one)] == [], (
        "give the field repr=False (a Struct a __repr__ of its own), or say above why it is harmless"
    )


def test_one_that_does_is_seen() -> None:
    @dataclasses.dataclass
    class Leaking:
        second_token: str

    assert [place.rpartition(".")[2] for place in shown(Leaking)] == ["second_token"]


def test_neither_a_request_nor_the_settings_are_printed_with_what_they_carry() -> None:
    secret = CANARY.encode()
    request = call(secret, ("x-api-key", secret), query=b"token=" + secret)
    settings = Settings({"POSTERN_ADMIN_KEY": CANARY * 4, "POSTERN_SECRET_KEYS": CANARY * 4})
    assert CANARY not in f"{request!r} {settings!r}"
    with pytest.raises(pydantic.ValidationError) as error:
        TokenAuthentication.model_validate({"method": "token", "token": [CANARY]})
    assert CANARY not in str(error.value)
