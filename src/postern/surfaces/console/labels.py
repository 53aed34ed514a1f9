"""The labels beside the inputs, by the names of the settings: a message on a page, and the audit log, use the words that the
page shows."""

import json
import re
from collections.abc import Iterator
from typing import Any

from postern.core.documents import Document
from postern.core.watch.channels import AN_ADDRESS
from postern.surfaces.console import senders, words
from postern.usecases.webhooks.views import PLACED

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
    """A setting's value, as people write it."""
    if field == "authentication.provider":
        return {**words.PROVIDER_TITLES, **senders.titles()}.get(value, str(value))
    if field in CHOICES and value is not None:
        return CHOICES[field].get(value, str(value))
    if field in UNITS and isinstance(value, int | float):
        size, unit = UNITS[field]
        return f"{value / size:g} {unit}"
    if value in (None, "", [], {}):
        return "nothing"
    match value:
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:g}"
        case list():
            return ", ".join(_value(f"{field}.0", one) for one in value)
        case {"of": of, "is": comparison, "values": values}:
            return " ".join([of, words.OPERATORS.get(comparison, comparison), *values])
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


CHOICES: dict[str, dict[Any, str]] = {
    "authentication.method": {method: title for method, (title, _, _) in words.METHODS.items()},
    "authentication.placement": {**PLACED},
    "target.forward": {**words.FORWARD},
}
"""The words of settings whose value is a name."""


def changes_of(noted: Document, above: str = "") -> Iterator[tuple[str, str | None, str]]:
    """Tells a note of the audit log, setting by setting: its title, what was before if that is noted, and what is after. One that
    is set or taken away as a whole is told by its parts."""
    for name, value in noted.items():
        field = above + name
        match value:
            case {"before": before, "after": after} if isinstance(before, dict) or isinstance(after, dict):
                was, now = before or {}, after or {}
                pairs = {part: {"before": was.get(part), "after": now.get(part)} for part in was | now}
                differ = {
                    part: one
                    for part, one in pairs.items()
                    if (one["before"] or None) != (one["after"] or None)
                }
                yield from changes_of(differ, f"{field}.")
            case {"before": before, "after": after}:
                yield title(field), _value(field, before), _value(field, after)
            case dict():
                yield from changes_of(value, f"{field}.")
            case None | False if value is None or above == "filter.":  # it leaves no call out
                pass
            case _:
                yield title(field), None, _value(field, value)


GROUPS = {
    "target": "Where it goes",
    "synchronousResponse": "Response",
    "acceptedAnswer": "Another answer at once",
    "schedule": "Schedule",
    "alarms": "Alarms",
    "secret": "Secret",
    "filter": "Filter",
}
"""Settings whose labels say enough only below the heading of their group."""


def title(field: str) -> str:
    """A setting's name where it stands alone: its label without the unit, or its name as words where no page asks for it."""
    group, _, rest = field.partition(".")
    named = LABELS.get(field)
    if named is None:
        name = rest if group in GROUPS and rest else field
        spaced = re.sub("[A-Z]", lambda capital: f" {capital[0].lower()}", name) if name.isalpha() else name
        named = spaced if name == rest else spaced[:1].upper() + spaced[1:]
    named = named.removesuffix(" in hours").removesuffix(", KiB")
    return f"{GROUPS[group]}: {named}" if group in GROUPS and rest else named


LABELS = {
    "address": "Address",
    "name": "Name",
    "folder": "Folder",
    "tags": "Tags",
    "enabled": "Enabled",
    "authentication.method": "Method",
    "authentication.placement": "Where the token is sent",
    "authentication.requireTimestampAndDigest": "Require the timestamp and the body digest",
    "secret.second": "Second valid secret",
    "secret.targetKey": "Key that signs",
    "secret.sendAgain": "Token of the sender’s API",
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
    "synchronousResponse.enabled": "Synchronous response",
    "synchronousResponse.timeoutSeconds": "Wait at most",
    "duplicateProtection.enabled": "Duplicate delivery protection",
    "duplicateProtection.key": "Recognise a call by",
    "duplicateProtection.windowSeconds": "Window in hours",
    "cors.enabled": "Pages of other sites may call",
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
    "target.url": "URL",
    "target.forward": "It gets",
    "target.headers": "Headers to send",
    "target.timeoutSeconds": "Wait at most",
    "target.signingSecret": "Key that signs",
    "alarms.rejected": "Calls are rejected",
    "alarms.notStarted": "Workflows cannot be started",
    "alarms.runsFailed": "Workflows fail",
    "alarms.answers": "Waiting callers get an error, or no answer in time",
    "alarms.sharePercent": "Percent of the latest calls",
    "alarms.waitsMinutes": "Minutes until a start that fails is reported",
    "alarms.rhythm.rows": "Longest quiet, in minutes",
    "alarms.rhythm.timeZone": "Time zone",
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
    "schedule.onlyWhenChanged": "Only when it has changed",
    "schedule.splitArray": "One call for each item of a list",
    "schedule.enabled": "Runs on its schedule",
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
