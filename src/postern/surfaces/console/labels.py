"""The labels beside the inputs, by the names of the settings: a message on a page uses the words that the page
shows."""

from typing import Any

from postern.core.watch.channels import AN_ADDRESS
from postern.surfaces.console import words

IN_UNITS = {
    "duplicateProtection.windowSeconds": "write a number of hours, from 0.02 (about a minute) to 168",
    "payloadLimitBytes": "write a number of KiB, up to 25600",
}
"""Error texts for numbers that the page asks for in another unit than the setting has."""


UNITS = {"duplicateProtection.windowSeconds": (3600, "hours"), "payloadLimitBytes": (1024, "KiB")}


def message(field: str, text: str) -> str:
    if text == AN_ADDRESS:  # the page asks for its parts
        return "paste the whole address, beginning with https://, or write mail addresses; Telegram needs a chat, and a webhook a signing secret"
    return text if text.startswith(BOTH) else IN_UNITS.get(field, text)


BOTH = "somebody saved"
"""The beginning of the message about a setting that two people changed differently."""


def both(field: str, theirs: Any, mine: Any) -> str:
    return f"{BOTH} {_value(field, theirs)} meanwhile, and here it is {_value(field, mine)}; saving again keeps yours"


def _value(field: str, value: Any) -> str:
    if field in UNITS and isinstance(value, int | float):
        size, unit = UNITS[field]
        return f"{value / size:g} {unit}"
    return f"{value:g}" if isinstance(value, float) else words.shown(value)


LABELS = {
    "address": "Address",
    "name": "Name",
    "folder": "Folder",
    "tags": "Tags",
    "understood": "What follows",
    "authentication.provider": "Signature provider",
    "authentication.secret": "Signing secret",
    "authentication.token": "Token",
    "authentication.secondSecret": "Second valid secret",
    "authentication.secondToken": "Second valid secret",
    "authentication.verifyToken": "Verify token",
    "authentication.publicUrl": "URL the sender was given",
    "authentication.toleranceSeconds": "Valid for seconds",
    "authentication.username": "Basic username",
    "authentication.headerName": "Auth header name",
    "authentication.parameterName": "URL parameter name",
    "authentication.tokenPath": "Field of the body",
    "authentication.scheme": "Custom scheme",
    "authentication.scheme.signature": "Where the signature is",
    "authentication.scheme.encoding": "Encoded as",
    "authentication.scheme.signedContent": "What is signed",
    "authentication.scheme.itemSeparator": "Items are separated by",
    "authentication.scheme.keySeparator": "Key and value by",
    "authentication.scheme.signatureKey": "The signature’s key",
    "authentication.scheme.signatureForm": "Text around the signature",
    "authentication.scheme.freeValue": "The value without a border",
    "authentication.scheme.audiences": "Meant for",
    "authentication.scheme.timestamp": "Where the time is",
    "authentication.scheme.timestampFormat": "Time format",
    "authentication.scheme.toleranceSeconds": "Valid for seconds",
    "authentication.scheme.deliveryId": "Where the event’s id is",
    "authentication.scheme.secretEncoding": "The secret is",
    "authentication.scheme.secretPrefix": "Without its beginning",
    "fieldMapping.fieldOne": "Field one",
    "fieldMapping.fieldTwo": "Field two",
    "fieldMapping.fieldThree": "Field three",
    "fieldMapping.fieldFour": "Field four",
    "synchronousResponse.timeoutSeconds": "Wait at most",
    "duplicateProtection.key": "Recognise a call by",
    "duplicateProtection.windowSeconds": "Window in hours",
    "cors.origins": "Which sites",
    "ipAllowlist": "Addresses that may call",
    "payloadLimitBytes": "Largest payload, KiB",
    "arrays": "A body that is an array",
    "acceptsEmpty": "Calls without a body",
    "acceptsXml": "XML",
    "acceptedAnswer.status": "Status",
    "acceptedAnswer.contentType": "Content type",
    "acceptedAnswer.body": "Body",
    "rateLimit.callsPerSecond": "Calls a second",
    "rateLimit.burst": "At once",
    "turns.atOnce": "Runs together",
    "turns.by": "One at a time for each",
    "turns.newestAfterSeconds": "Only the newest, after seconds",
    "turns.longestWaitSeconds": "At the latest after seconds",
    "path": "End of the URL",
    "onlyPath": "Give up the short code",
    "historyRetentionDays": "Keep calls for days",
    "bodyRetentionDays": "Keep bodies for days",
    "filteredRetentionDays": "Keep bodies of filtered calls for days",
    "conditions": "What starts",
    "sendAgain.account": "Account at the sender",
    "sendAgain.token": "Token of the sender’s API",
    "sendAgain.api": "Address of the sender’s API",
    "schedule.url": "Source URL",
    "schedule.every": "Timer interval",
    "schedule.cron": "Cron expression",
    "schedule.timeZone": "Time zone",
    "schedule.headers": "Headers to send",
    "schedule.timeoutSeconds": "Give up after seconds",
    "schedule.pauseAfterFailures": "Pause after failures in a row",
    "level": "Access level",
    "oldPassword": "Current password",
    "newPassword": "New password",
    "status": "Status",
    "since": "after",
    "until": "before",
}


def label(field: str) -> str:
    """The input's label, and the line of a list; of what no page asks for, the name as it is."""
    parent, _, last = field.rpartition(".")
    if field in LABELS or not parent:
        return LABELS.get(field, field)
    if last.isdigit():
        return f"{label(parent)}, line {int(last) + 1}"
    parent_label = label(parent)
    return f"{parent_label}, {last}" if parent_label != parent else field
