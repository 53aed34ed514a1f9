"""What is stored of a webhook's settings, and what is read from it again by this version and by others."""

import json
from typing import Any

import msgspec
import pytest

from postern.core.webhooks.settings import (
    AlarmSettings,
    FieldMapping,
    RateLimit,
    Resolved,
    RhythmSetting,
    ScheduleSetting,
    SignatureAuthentication,
    TokenAuthentication,
    UnreadableSettings,
    WebhookSettings,
    as_document,
    read_document,
    without_defaults,
    write_document,
)

BARE = {"name": "Orders", "authentication": {"method": "none"}}


def read(**document: Any) -> WebhookSettings:
    return read_document(json.dumps({**BARE, **document}))[0]


def test_what_a_document_lacks_has_its_default() -> None:
    settings, resolved = read_document(json.dumps(BARE))
    assert settings == WebhookSettings(name="Orders", authentication=settings.authentication)
    assert resolved == Resolved()
    assert read(rateLimit={"burst": 5}).rate_limit == RateLimit(burst=5)
    token = read(authentication={"method": "token"}).authentication
    assert token == TokenAuthentication(placement="header", header_name="X-Api-Key")


def test_what_is_stored_is_read_back() -> None:
    settings = WebhookSettings(
        name="Orders",
        authentication=SignatureAuthentication(provider="custom", scheme={"signature": "header:X-Sig"}),
        field_mapping=FieldMapping(field_two="customer.email"),
        schedule=ScheduleSetting(url="https://example.com/", every="15m", headers=["X-A"]),
        body_retention_days=0,
    )
    resolved = Resolved(preset_version=3, sends_arrays=True)
    assert read_document(write_document(settings, resolved)) == (settings, resolved)


def test_only_what_differs_from_the_defaults_is_stored() -> None:
    settings = read(rateLimit={"burst": 5, "callsPerSecond": 100}, cors={"enabled": False})
    assert json.loads(write_document(settings, Resolved())) == {**BARE, "rateLimit": {"burst": 5}}
    assert without_defaults(settings) == {**BARE, "rateLimit": {"burst": 5}}


def test_a_setting_that_is_added_later_is_read_from_what_was_stored_before() -> None:
    later = msgspec.defstruct(
        "Later", [("quiet_hours", list[int], msgspec.field(default_factory=list))], bases=(WebhookSettings,),
        kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True,
    )  # fmt: skip
    assert msgspec.convert(without_defaults(read(rateLimit={"burst": 5})), later).quiet_hours == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"newerSetting": True}, "newerSetting"),
        ({"rateLimit": {"newerSetting": 1}}, "newerSetting"),
        ({"authentication": {"method": "mtls"}}, "mtls"),
        ({"payloadLimitBytes": "much"}, "payloadLimitBytes"),
        ({"resolved": {"scheme": {"newerSetting": 1}}}, "newerSetting"),
    ],
)
def test_what_this_version_does_not_know_is_refused_and_named(document: dict[str, Any], named: str) -> None:
    with pytest.raises(UnreadableSettings, match=named):
        read(**document)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"name": "Orders"}', '"text"'])
def test_a_document_that_says_nothing_of_authentication_is_not_taken_for_one_without(text: str) -> None:
    with pytest.raises(UnreadableSettings):
        read_document(text)


def test_limits_bind_what_is_written_and_not_what_is_stored() -> None:
    """A limit that is narrowed later must not take webhooks offline that were saved before."""
    assert read(historyRetentionDays=100_000, name="x" * 1000).history_retention_days == 100_000


def test_released_defaults_stay_as_they_are() -> None:
    """Stored documents, exported files and patches count on them. Who changes one writes a migration that puts
    the former value into every stored document that lacks it."""
    schedule = ScheduleSetting(url="", every=60)
    token = TokenAuthentication()
    signature = SignatureAuthentication(provider="")
    alarms = AlarmSettings(rhythm=RhythmSetting(rows=["Mon-Sun 0-24: 1500"], time_zone="UTC"))
    settings = WebhookSettings(name="", authentication=token, schedule=schedule, alarms=alarms)
    assert as_document(settings) == {
        "name": "",
        "authentication": {
            "method": "token",
            "placement": "header",
            "headerName": "X-Api-Key",
            "username": None,
            "parameterName": "token",
            "tokenPath": "token",
        },
        "path": None,
        "onlyPath": False,
        "folder": None,
        "tags": [],
        "fieldMapping": {"fieldOne": None, "fieldTwo": None, "fieldThree": None, "fieldFour": None},
        "synchronousResponse": {"enabled": False, "timeoutSeconds": None},
        "conditions": [],
        "target": None,
        "turns": None,
        "duplicateProtection": {"enabled": False, "key": None, "windowSeconds": 86400},
        "cors": {"enabled": False, "origins": []},
        "ipAllowlist": [],
        "payloadLimitBytes": 1048576,
        "arrays": None,
        "acceptsEmpty": False,
        "acceptsXml": False,
        "acceptedAnswer": None,
        "handshake": None,
        "sendAgain": None,
        "rateLimit": {"callsPerSecond": 100.0, "burst": 200},
        "schedule": {
            "url": "",
            "every": 60,
            "cron": None,
            "timeZone": "UTC",
            "headers": [],
            "timeoutSeconds": 10.0,
            "onlyWhenChanged": False,
            "splitArray": False,
            "pauseAfterFailures": 10,
            "enabled": True,
        },
        "alarms": {
            "rejected": True,
            "notStarted": True,
            "runsFailed": True,
            "answers": True,
            "sharePercent": 50,
            "waitsMinutes": 5,
            "rhythm": {"rows": ["Mon-Sun 0-24: 1500"], "timeZone": "UTC"},
        },
        "historyRetentionDays": None,
        "bodyRetentionDays": None,
        "filteredRetentionDays": None,
    }
    assert as_document(signature) == {
        "method": "hmac",
        "provider": "",
        "publicUrl": None,
        "toleranceSeconds": None,
        "scheme": None,
        "requireTimestampAndDigest": False,
    }
    assert as_document(Resolved()) == {
        "scheme": None,
        "presetVersion": None,
        "answerTimeoutSeconds": None,
        "sendsArrays": False,
    }
