"""What may be set on a webhook: the bounds of each setting, which of its fields is named where one is wrong, and what
calls meet of it."""

from typing import Any

import pytest

from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT
from postern.core.calls.paths import parse_path
from postern.core.problems import Refused
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.settings import Resolved
from postern.core.webhooks.webhook import Webhook
from postern.usecases import stored_webhook
from postern.usecases.shapes import validated
from postern.usecases.webhooks.compiling import compile_webhook
from postern.usecases.webhooks.requests import WebhookRequest
from support.house import House
from support.refusals import fields_of, fields_refused

TOKEN = {"method": "token", "token": "a token of the tests"}
BASIC = {**TOKEN, "placement": "basic"}
HMAC = {"method": "hmac", "provider": "generic", "secret": "whsec_main"}
CUSTOM = {**HMAC, "provider": "custom", "scheme": {"signature": "header:X-Sig"}}


def request(**settings: Any) -> WebhookRequest:
    given = {"name": "Orders", "authentication": {"method": "none"}, **settings}
    made: WebhookRequest = validated(WebhookRequest, given)
    return made


def wrong(**settings: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        request(**settings)
    return fields_of(caught.value)


async def compiled(house: House, **settings: Any) -> Webhook:
    """As calls meet it."""
    made = await house.webhook(**settings)
    found = house.gateway.runtime.directory.by_id(made.id)
    assert found is not None
    return found


def nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "least", "most", "step"),
    [
        ("synchronousResponse.timeoutSeconds", 1, 60, 0.1),
        ("duplicateProtection.windowSeconds", 60, 7 * 86_400, 1),
        ("payloadLimitBytes", 1, LARGEST_PAYLOAD_LIMIT, 1),
        ("rateLimit.burst", 1, 1_000_000, 1),
        ("historyRetentionDays", 1, 3650, 1),
        ("bodyRetentionDays", 0, 3650, 1),
        ("authentication.toleranceSeconds", 0, 30 * 86_400, 1),
        ("schedule.timeoutSeconds", 1, 60, 0.1),
        ("schedule.pauseAfterFailures", 1, 1000, 1),
    ],
)
def test_a_number_has_its_bounds(path: str, least: float, most: float, step: float) -> None:
    group, _, name = path.rpartition(".")
    needed = {"authentication": HMAC, "schedule": {"url": "https://a.example", "every": 60}}.get(group, {})

    def given(number: float) -> dict[str, Any]:
        return {group: {**needed, name: number}} if group else {name: number}

    for number in (least, most):
        request(**given(number))
    assert wrong(**given(least - step)) == {path: f"must be {least} or more"}
    assert wrong(**given(most + step)) == {path: f"must be {most} or less"}


def test_a_rate_is_more_than_nothing() -> None:
    for number in (0.001, 100_000):
        request(**nested("rateLimit.callsPerSecond", number))
    for number, why in ((0, "must be more than 0"), (100_000.001, "must be 100000 or less")):
        wrong_rate = {"rateLimit.callsPerSecond": why}
        assert wrong(**nested("rateLimit.callsPerSecond", number)) == wrong_rate


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("enabled", "flase", "write true or false"),
        ("name", 5, "write a text, in quotes"),
        ("tags", "eu", "write a list, between [ and ]"),
        ("fieldMapping", "order.number", "write an object, between { and }"),
        ("schedule", "5m", "write an object, between { and }"),
        ("payloadLimitBytes", "10MB", "write a whole number"),
        ("payloadLimitBytes", "5000", "write a whole number, without quotes"),
        ("rateLimit.burst", " 5", "write a whole number, without quotes"),
        ("synchronousResponse.timeoutSeconds", "5", "write a number, without quotes"),
        ("synchronousResponse.enabled", "true", "write true or false, without quotes"),
        ("synchronousResponse.enabled", 1, "write true or false"),
        ("bodyRetentionDays", False, "write a whole number"),
        ("rateLimit.callsPerSecond", True, "write a number"),
        ("rateLimit.burst", 1.5, "write a whole number"),
        ("rateLimit.callsPerSecond", "fast", "write a number"),
        ("rateLimit.callsPerSecond", 1e-320, "write 0.00001 (about one call a day) or more"),
    ],
)
def test_a_value_of_another_type_is_reported_in_words_of_this_program(
    path: str, value: Any, words: str
) -> None:
    assert wrong(**nested(path, value)) == {path: words}


def test_a_whole_number_may_be_written_with_a_point() -> None:
    """Some programs write every number so."""
    made = request(payloadLimitBytes=5000.0, rateLimit={"burst": 7.0}, historyRetentionDays=3.0)
    assert [made.payload_limit_bytes, made.rate_limit.burst, made.history_retention_days] == [5000, 7, 3]
    assert all(type(one) is int for one in (made.payload_limit_bytes, made.rate_limit.burst))


@pytest.mark.parametrize(
    ("longest", "field", "before", "beside"),
    [
        (200, "name", "", {}),
        (200, "folder", "", {}),
        (100, "authentication.headerName", "", TOKEN),
        (100, "authentication.parameterName", "", {**TOKEN, "placement": "url"}),
        (100, "authentication.username", "", {**TOKEN, "placement": "basic"}),
        (1024, "authentication.token", "", TOKEN),
        (1024, "authentication.secondToken", "", TOKEN),
        (4096, "authentication.secret", "", HMAC),
        (4096, "authentication.secondSecret", "", HMAC),
        (1024, "authentication.verifyToken", "", HMAC),
        (1992, "authentication.publicUrl", "https://", HMAC),
        (100, "duplicateProtection.key", "header:", {}),
    ],
)
def test_a_text_has_its_longest(longest: int, field: str, before: str, beside: dict[str, Any]) -> None:
    group, _, name = field.rpartition(".")

    def given(length: int) -> dict[str, Any]:
        text = before + "x" * length
        return {group: {**beside, name: text}} if group else {name: text}

    request(**given(longest))
    assert wrong(**given(longest + 1)).keys() == {field}


def test_a_list_has_its_longest() -> None:
    origins = [f"https://{number}.example.com" for number in range(101)]
    ranges = [f"10.{number // 250}.{number % 250}.0/24" for number in range(1001)]
    tags = [f"tag {number}" for number in range(21)]
    request(cors={"origins": origins[:100]}, ipAllowlist=ranges[:1000], tags=tags[:20] * 10)
    request(tags=["x" * 40])
    assert wrong(tags=["x" * 41]).keys() == {"tags.0"}
    assert wrong(cors={"origins": origins}).keys() == {"cors.origins"}
    assert wrong(ipAllowlist=ranges).keys() == {"ipAllowlist"}
    assert wrong(tags=tags) == {"tags": "a webhook has at most 20 tags"}
    assert wrong(tags=["eu"] * 201).keys() == {"tags"}


@pytest.mark.parametrize(
    ("settings", "field", "expected"),
    [
        ({"name": " "}, "name", "printable text on one line"),
        ({"name": "a\nb"}, "name", "printable text on one line"),
        ({"name": None}, "name", ""),
        ({"authentication": {}}, "authentication.method", "none, token or hmac"),
        ({"authentication": {"method": "magic"}}, "authentication.method", "none, token or hmac"),
        ({"authentication": {**TOKEN, "token": ""}}, "authentication.token", "1 to 1024 bytes"),
        ({"authentication": BASIC}, "authentication.username", "needs a username"),
        ({"authentication": {**BASIC, "username": "a:b"}}, "authentication.username", "no colon"),
        ({"authentication": {**TOKEN, "headerName": "Host"}}, "authentication.headerName", "reserved"),
        ({"authentication": {**TOKEN, "secret": "x"}}, "authentication.secret", "is not a known setting"),
        *(
            ({"authentication": {**HMAC, "publicUrl": url}}, "authentication.publicUrl", "https://")
            for url in ("hooks.example.com", *(f"https://{rest}" for rest in ("a b", "[", "/w", "é", "a\n")))
        ),
        ({"authentication": {"method": "hmac", "secret": "s"}}, "authentication.provider", "is required"),
        ({"fieldMapping": {"fieldOne": "a..b"}}, "fieldMapping.fieldOne", ""),
        ({"fieldMapping": {"fieldOne": "Header:ce-type"}}, "fieldMapping.fieldOne", "out of the body"),
        ({"fieldMapping": {"fieldFive": "a"}}, "fieldMapping.fieldFive", "is not a known setting"),
        ({"duplicateProtection": {"key": "a..b"}}, "duplicateProtection.key", ""),
        ({"duplicateProtection": {"key": "body:a..b"}}, "duplicateProtection.key", ""),
        ({"tags": ["eu", "a,b"]}, "tags.1", "without a comma"),
        ({"schedule": {"every": "15m"}}, "schedule.url", "is required"),
    ],
)
def test_what_is_wrong_is_named_by_the_field_that_its_writer_knows(
    settings: dict[str, Any], field: str, expected: str
) -> None:
    errors = wrong(**settings)
    assert errors.keys() == {field} and expected in errors[field]


@pytest.mark.parametrize(
    ("settings", "field", "meant"),
    [
        ({"fieldMaping": {}}, "fieldMaping", "fieldMapping"),
        ({"fieldMapping": {"fieldOen": "a"}}, "fieldMapping.fieldOen", "fieldOne"),
        ({"authentication": {**TOKEN, "headername": "X"}}, "authentication.headername", "headerName"),
        ({"authentication": {**TOKEN, "provider": "stripe"}}, "authentication.provider", None),
        ({"authentication": {**HMAC, "publicUri": ""}}, "authentication.publicUri", "publicUrl"),
        ({"schedule": {"url": "https://a.example", "evry": 60}}, "schedule.evry", "every"),
        ({"anything": 1}, "anything", None),
    ],
)
def test_a_misspelt_setting_is_answered_with_the_one_that_was_meant(
    settings: dict[str, Any], field: str, meant: str | None
) -> None:
    expected = "is not a known setting" + (f": did you mean {meant}?" if meant else "")
    assert wrong(**settings)[field] == expected


def test_an_address_is_kept_without_the_blanks_around_it_and_otherwise_as_it_was_written() -> None:
    written = [" 10.0.0.0/8 ", "\t192.0.2.7/32\n", "2001:DB8::1"]
    assert request(ipAllowlist=written).ip_allowlist == ["10.0.0.0/8", "192.0.2.7/32", "2001:DB8::1"]


def test_every_wrong_field_is_reported_at_once_and_none_twice() -> None:
    bad = {"token": 7, "headerName": "a b", "more": 1}
    errors = wrong(name="", payloadLimitBytes=0, authentication={**TOKEN, **bad})
    assert errors.keys() == {"name", "payloadLimitBytes", *(f"authentication.{field}" for field in bad)}
    assert validated(WebhookRequest, {"name": "n", "authentication": {"method": "none"}}).enabled is True


NOT_A_HEADER = "two words\n"
SPACED = {**TOKEN, "token": NOT_A_HEADER, "secondToken": NOT_A_HEADER}
LATER = {
    "url": "ftp://a",
    "every": 7,
    "cron": "* * * *",
    "timeZone": "Mars",
    "headers": {"Host": "a", "b_c": "", "d": ""},
}


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        (
            {"name": "", "authentication": {"method": "hmac", "provider": "nope"}},
            "name authentication.provider authentication.secret",
        ),
        (
            {
                "name": "a\nb",
                "authentication": {**CUSTOM, "scheme": {"signature": "X", "encoding": "morse", "foo_bar": 1}},
            },
            "name authentication.scheme.signature authentication.scheme.encoding authentication.scheme.foo_bar",
        ),
        (
            {"name": "", "authentication": {**CUSTOM, "scheme": None, "secret": ""}},
            "name authentication.scheme authentication.secret",
        ),
        ({"name": "", "authentication": SPACED}, "name authentication.token authentication.secondToken"),
        (
            {"name": "", "authentication": {"method": "token", "placement": "basic"}},
            "name authentication.username authentication.token",
        ),
        (
            {"cors": {"origins": ["a", "*", "b"]}, "tags": ["a,b", "c", ""]},
            "cors.origins.0 cors.origins.2 tags.0 tags.2",
        ),
        (
            {"ipAllowlist": ["a", "b", "10.0.0.1", "c"], "payloadLimitBytes": 0},
            "ipAllowlist.0 ipAllowlist.1 ipAllowlist.3 payloadLimitBytes",
        ),
        (
            {"schedule": LATER},
            "schedule.url schedule.every schedule.cron schedule.timeZone schedule.headers.Host schedule.headers.b_c schedule.headers.d",
        ),
        (
            {"schedule": {"url": "a", "headers": {"A": None}}, "sendAgain": {}},
            "schedule.url schedule.cron schedule.headers.A sendAgain.token",
        ),
        (
            {"tags": [""], "arrays": "each", "synchronousResponse": {"enabled": True}, "handshake": "meta"},
            "tags.0 arrays handshake",
        ),
    ],
)
def test_no_wrong_field_hides_another(settings: dict[str, Any], fields: str) -> None:
    assert sorted(wrong(**settings)) == sorted(fields.split())


@pytest.mark.parametrize("placement", ["header", "bearer", "basic", "url"])
def test_only_a_token_in_a_header_is_printable_ascii(placement: str) -> None:
    how = {**TOKEN, "placement": placement, "username": "ada"}
    for token in (" a", "a ", "ä", "a\x7f"):
        for given in ({"token": token}, {"secondToken": token}):
            if placement in ("header", "bearer"):
                assert wrong(authentication={**how, **given}).keys() == {
                    f"authentication.{one}" for one in given
                }
            else:
                request(authentication={**how, **given})
    request(authentication={**how, "token": "a b"})


async def test_a_secret_may_be_bytes_that_are_no_text_of_one_alphabet(house: House) -> None:
    assert wrong(authentication={**HMAC, "secret": "é" * 2049}).keys() == {"authentication.secret"}
    made = await compiled(house, authentication={**HMAC, "secret": "é" * 2048})
    assert isinstance(made.credential, SignatureCredential)


async def test_by_what_duplicates_are_known(house: House) -> None:
    for key, header, path in (
        (None, None, None),
        ("", None, None),
        ("header:X-Event_Id", b"x-event_id", None),
        ("HEADER:X-Event", b"x-event", None),
        ("order.id", None, "order.id"),
        ("body:order.id", None, "order.id"),
    ):
        made = await compiled(house, duplicateProtection={"enabled": True, "key": key, "windowSeconds": 60})
        assert made.duplicates is not None and made.duplicates.window_seconds == 60
        assert made.duplicates.header == header
        assert made.duplicates.path == (None if path is None else parse_path(path))
        off = await compiled(house, duplicateProtection={"enabled": False, "key": key})
        assert off.duplicates is None


async def test_what_is_not_switched_on_is_not_asked_of_calls(house: House) -> None:
    plain = await compiled(house, cors={"origins": ["https://a.example"]})
    assert (plain.cors, plain.allowlist, plain.handshake, plain.answer_timeout) == (None, None, None, None)
    assert (plain.method, plain.provider, plain.takes.arrays) == ("none", "", "refused")
    assert plain.recording_until == 0.0
    made = await compiled(
        house,
        cors={"enabled": True, "origins": ["https://a.example"]},
        ipAllowlist=["10.0.0.0/8"],
        payloadLimitBytes=77,
        rateLimit={"callsPerSecond": 5, "burst": 7},
        authentication={**HMAC, "provider": "meta", "verifyToken": "three"},
        synchronousResponse={"enabled": True},
    )
    assert made.cors is not None and made.allowlist is not None and made.handshake is not None
    assert (made.payload_limit, made.calls_per_second, made.burst) == (77, 5, 7)
    assert (made.method, made.provider, made.answer_timeout) == ("hmac", "meta", 25)
    assert made.secret_ids.keys() == {"main", "verifyToken"}
    assert (await compiled(house, authentication=TOKEN)).handshake is None
    assert (await compiled(house, authentication={**HMAC, "provider": "github"})).handshake is None


async def test_a_sender_brings_its_own_scheme(house: House) -> None:
    own = {"signature": "header:X"}
    for how, field, expected in (
        ({"provider": "custom"}, "authentication.scheme", "is required for a custom scheme"),
        ({"scheme": own}, "authentication.scheme", "belongs to the provider custom"),
        ({"presetVersion": 99}, "authentication.presetVersion", "the present version is"),
        ({"provider": "nobody"}, "authentication.provider", "choose one of"),
    ):
        errors = await fields_refused(house.webhook(authentication={**HMAC, **how}))
        assert errors.keys() == {field} and expected in errors[field]


async def test_a_scheme_that_is_sent_back_as_it_was_shown_is_taken(house: House) -> None:
    for how in (HMAC, {**HMAC, "provider": "stripe"}, CUSTOM):
        made: Any = (await house.webhook(authentication=how)).authentication
        again = {**how, "scheme": made.scheme}
        if how is not CUSTOM:
            again["presetVersion"] = made.preset_version
        assert (await house.webhook(authentication=again)).authentication.scheme == made.scheme  # type: ignore[union-attr]
    assert made.preset_version is None and made.preset_update is None


async def test_one_that_was_stored_without_its_scheme_is_not_served_and_says_why(house: House) -> None:
    made = await house.webhook(authentication=CUSTOM)
    stored = await stored_webhook.stored(house.gateway, made.id)
    stored.resolved = Resolved()
    with pytest.raises(ValueError, match="the stored settings lack the signature scheme"):
        compile_webhook(stored)
