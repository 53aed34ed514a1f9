"""The JSON Schema of the file that `apply` takes, so that an editor can complete and check it."""

from postern import presets
from postern.usecases.answers import Schema
from postern.usecases.webhooks.file.planning import VERSION
from postern.usecases.webhooks.requests import SECRETS, WebhookRequest

_REFERENCE: Schema = {"$ref": "#/$defs/SecretReference"}
_SECRET_REFERENCE: Schema = {
    "title": "SecretReference",
    "description": "Where apply finds a secret. The secret itself does not belong into the file.",
    "oneOf": [
        _one_key := {
            "type": "object",
            "description": "In the environment of apply.",
            "properties": {"env": {"type": "string", "minLength": 1}},
            "required": ["env"],
            "additionalProperties": False,
        },
        {
            **_one_key,
            "description": "In a file, its path as seen from this one.",
            "properties": {"file": {"type": "string", "minLength": 1}},
            "required": ["file"],
        },
        {
            **_one_key,
            "description": "One that is made if there is none.",
            "properties": {"generate": {"const": True}},
            "required": ["generate"],
        },
        {"type": "null", "description": "None: a second secret that is there is removed."},
    ],
}


def schema() -> Schema:
    webhook = WebhookRequest.model_json_schema()
    definitions: dict[str, Schema] = webhook.pop("$defs")
    del definitions["Generate"]
    for method, name in (("token", "TokenAuthentication"), ("hmac", "SignatureAuthentication")):
        definitions[name]["properties"] |= dict.fromkeys(SECRETS[method], _REFERENCE)
    definitions["SignatureAuthentication"]["properties"]["provider"] = {
        "title": "Provider",
        "description": "The sender, or custom with a scheme.",
        "enum": ["custom", *presets.names()],
    }
    headers = definitions["ScheduleRequest"]["properties"]["headers"]
    headers["additionalProperties"] = _REFERENCE
    webhook["properties"] = {
        "id": {
            "type": "string",
            "description": "The webhook's id. Without it, the name says which webhook is meant. A new webhook keeps it.",
        },
        "shortCode": {
            "type": "string",
            "pattern": "^[0-9A-Za-z]{22}$",
            "description": "The end of its URL. A new webhook keeps it if no other one has it; without it, the URL is new.",
        },
    } | webhook["properties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Postern's webhooks",
        "type": "object",
        "properties": {
            "version": {"const": VERSION, "description": "The version of this kind of file."},
            "webhooks": {"type": "array", "items": {"$ref": "#/$defs/Webhook"}},
        },
        "required": ["version", "webhooks"],
        "additionalProperties": False,
        "$defs": {
            **definitions,
            "Webhook": {**webhook, "title": "Webhook"},
            "SecretReference": _SECRET_REFERENCE,
        },
    }
