"""The schema of the file says what `apply` says."""

from typing import Any

from jsonschema import Draft202012Validator

from postern.core.problems import Refused
from postern.usecases.answers import as_plain
from postern.usecases.webhooks import as_code
from postern.usecases.webhooks.file.schema import schema
from postern.usecases.webhooks.requests import WebhookRequest
from support.every_kind import REQUESTS
from support.house import OWNER, House

VALIDATOR = Draft202012Validator(schema())
TOKEN: dict[str, Any] = {"method": "token", "token": {"generate": True}}
HMAC = {"method": "hmac", "provider": "stripe"}
CUSTOM = {"method": "hmac", "provider": "custom", "secret": {"env": "SECRET"}}


def one(**settings: Any) -> dict[str, Any]:
    return {"version": 1, "webhooks": [{"name": "Orders", "authentication": TOKEN, **settings}]}


async def test_every_export_is_valid(house: House) -> None:
    for number, request in enumerate(REQUESTS):
        await house.webhook(**{"name": f"Webhook {number}", **request})
    document = as_plain(await as_code.export(house.gateway, OWNER))
    assert len(document["webhooks"]) == len(REQUESTS)
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []


GOOD = [
    one(),
    one(id="wh_1", enabled=False),
    one(authentication={"method": "none"}),
    one(authentication={**TOKEN, "token": {"generate": True}, "secondToken": None}),
    one(authentication={**HMAC, "secret": {"env": "SECRET"}, "secondSecret": {"file": "second.secret"}}),
    one(authentication={**HMAC, "secret": {"env": "S"}, "secondSecret": {"file": "s"}}),
    one(schedule={"url": "https://example.com/", "every": "5m", "headers": {"X-Key": {"env": "KEY"}}}),
    one(authentication={**CUSTOM, "scheme": {"signature": "header:X-S", "encoding": "base64"}}),
]
BAD = [
    {},
    {"webhooks": []},
    {"version": 2, "webhooks": []},
    {"version": 1, "webhooks": {}},
    {"version": 1, "webhooks": [], "more": 1},
    {"version": 1, "webhooks": [{"name": "Orders"}]},
    one(fieldMaping={}),
    one(authentication={**CUSTOM, "scheme": {"signatur": "header:X-S"}}),
    one(authentication={**CUSTOM, "scheme": {"encoding": "base32"}}),
    one(enabled="perhaps"),
    one(payloadLimitBytes=0),
    one(authentication={"method": "magic"}),
    one(authentication={**TOKEN, "token": "a secret in clear"}),
    one(authentication={**HMAC, "secret": {"env": ""}}),
    one(authentication={**HMAC, "secret": {"env": "A", "file": "b"}}),
    one(authentication={**HMAC, "provider": "nobody"}),
    one(schedule={"url": "https://example.com/", "every": "5m", "headers": {"X-Key": "a secret in clear"}}),
]


async def test_it_takes_and_refuses_what_apply_takes_and_refuses(house: House) -> None:
    for document in [*GOOD, *BAD]:
        try:
            await as_code.apply(house.gateway, OWNER, document, lambda *_: "a secret", dry_run=True)
            taken = True
        except Refused:
            taken = False
        assert VALIDATOR.is_valid(document) is taken is (document in GOOD), document


def test_every_setting_is_in_it() -> None:
    fields = {field.alias for field in WebhookRequest.model_fields.values()}
    assert schema()["$defs"]["Webhook"]["properties"].keys() == {*fields, "id", "shortCode"}
