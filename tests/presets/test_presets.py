"""The presets are complete, and each verifies its own sample, signed here by nothing but the words of its
scheme."""

import base64
import hmac
import re
import subprocess
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postern import presets
from postern.core.calls.call import Call, Headers
from postern.core.calls.content import Payload, read_object
from postern.core.signatures.credential import Unproven, VerifiedCall
from postern.core.signatures.scheme import SignatureScheme, warnings
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.settings import Resolved, as_document
from postern.usecases.answers import as_json
from postern.usecases.signatures.senders import about
from postern.usecases.signatures.views import Provider
from postern.usecases.webhooks.resolving import preset_update
from postern.usecases.webhooks.views import PresetUpdate, SchemeChange
from support.waiting import PATIENCE

NOW = 1_700_000_000
SENDERS = [name for name in presets.names() if name != presets.GENERIC]
BASE_URL = "https://hooks.example.com"
KEY = b"0123456789abcdef0123456789abcdef"


def filled(text: str, event: str, timestamp: str) -> str:
    fixed = {"event": event, "timestamp": timestamp, "uuid": "72d3162e-cc78-41e3-a1ab-4c9367dc0958"}
    fixed |= {"unique": "2kwpbgllafxdpx2ai54ppj85", "number": "820982911946"}
    fixed |= {"unix": "1700000000", "unix_ms": "1700000000000", "iso": "2023-11-14T22:13:20Z"}
    for name, value in fixed.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def signed_sample(preset: presets.Preset, at: int = NOW, number: int = 0) -> Call:
    moment = datetime.fromtimestamp(at, UTC)
    timestamp = {
        "unix": str(at),
        "unix_ms": str(at * 1000),
        "iso8601": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "http_date": format_datetime(moment, usegmt=True),
    }[preset.scheme.timestamp_format]
    sample = preset.samples[number]
    body = filled(sample.body, sample.event, timestamp)
    digest = sha256(body.encode()).hexdigest()
    headers = {
        name.lower(): filled(value, sample.event, timestamp).replace("{body_sha256}", digest)
        for name, value in sample.headers
    }
    ids = [
        headers[ref.split(":")[1].lower()]
        for ref in preset.scheme.delivery_id
        if ref.split(":")[1].lower() in headers
    ]
    values = {
        "{body}": body,
        "{timestamp}": timestamp,
        "{id}": ids[0] if ids else "",
        "{method}": "POST",
        "{url}": f"{BASE_URL}/webhook/abc",
        "{headers:X-Webhook-*}": "\n".join(
            headers[name] for name in sorted(headers) if name.startswith("x-webhook-")
        ),
    }
    content = re.sub(r"\{[^}]*\}", lambda match: values[match[0]], preset.scheme.signed_content)
    signature = hmac.digest(KEY, content.encode(), "sha256")
    text = (
        base64.b64encode(signature).decode()
        if preset.scheme.encoding.startswith("base64")
        else signature.hex()
    )
    pairs = tuple(
        (name.encode(), value.replace("{signature}", text).encode()) for name, value in headers.items()
    )
    return Call("POST", b"/webhook/abc", b"", pairs, body.encode(), "192.0.2.1", at, BASE_URL)


def credential(preset: presets.Preset) -> SignatureCredential:
    secret = (
        preset.scheme.secret_prefix.encode() + base64.b64encode(KEY)
        if preset.scheme.secret_encoding == "base64"
        else KEY
    )
    return SignatureCredential(preset.scheme, secret)


SLACKS_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA"
    b"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554"
    b"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)


@pytest.mark.parametrize(
    ("name", "secret", "at", "headers", "body"),
    [
        (
            "github",
            b"It's a Secret to Everybody",
            NOW,
            (
                (
                    b"x-hub-signature-256",
                    b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
                ),
            ),
            b"Hello, World!",
        ),
        (
            "slack",
            b"8f742231b10e8888abcd99yyyzzz85a5",
            1531420618,
            (
                (b"x-slack-request-timestamp", b"1531420618"),
                (
                    b"x-slack-signature",
                    b"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
                ),
            ),
            SLACKS_BODY,
        ),
    ],
)
def test_the_examples_that_senders_publish_verify(
    name: str, secret: bytes, at: int, headers: Headers, body: bytes
) -> None:
    call = Call("POST", b"/webhook/abc", b"", headers, body, "192.0.2.1", at, BASE_URL)
    assert isinstance(SignatureCredential(presets.get(name).scheme, secret).check(call), VerifiedCall)


def test_senders_come_by_title_and_the_generic_scheme_last() -> None:
    titles = [preset.title.lower() for preset in presets.load().values()]
    assert titles[:-1] == sorted(titles[:-1])
    assert presets.names()[-1] == presets.GENERIC


def test_the_readme_counts_the_senders_right() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"{len(SENDERS)} senders built in" in readme


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_says_what_to_paste_and_how_its_sender_behaves(name: str) -> None:
    preset = presets.get(name)
    assert (
        preset.title
        and preset.setup
        and preset.secret.paste
        and preset.secret.where
        and preset.sender.retries
    )
    assert preset.version >= 1


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_verifies_its_sample_and_rejects_it_altered(name: str) -> None:
    preset = presets.get(name)
    for number in range(len(preset.samples)):
        call = signed_sample(preset, number=number)
        verdict = credential(preset).check(call)
        assert isinstance(verdict, VerifiedCall), verdict
    call.body += b" "
    verdict = credential(preset).check(call)
    assert isinstance(verdict, Unproven) and verdict.code == "signature_mismatch"


@pytest.mark.parametrize("name", [name for name in SENDERS if presets.get(name).scheme.timestamp])
def test_a_preset_with_a_timestamp_rejects_yesterdays_and_tomorrows_call(name: str) -> None:
    preset = presets.get(name)
    for at, code in (
        (NOW - preset.scheme.tolerance_seconds - 1, "timestamp_expired"),
        (NOW + preset.scheme.tolerance_seconds + 1, "timestamp_in_future"),
    ):
        call = signed_sample(preset, at)
        call.received_at = NOW
        verdict = credential(preset).check(call)
        assert isinstance(verdict, Unproven) and verdict.code == code


@pytest.mark.parametrize("name", SENDERS)
def test_a_preset_covers_the_body_and_its_timestamp(name: str) -> None:
    assert warnings(presets.get(name).scheme) == []


@pytest.mark.parametrize("name", presets.names())
def test_a_sample_is_a_json_object_once_filled_in(name: str) -> None:
    for sample in presets.get(name).samples:
        body = filled(sample.body, sample.event, "1").encode()
        read = read_object(Call("POST", b"", b"", (), body, "", NOW), presets.get(name).sends_arrays)
        assert isinstance(read, Payload)
        assert any("{signature}" in value for _, value in sample.headers)


@pytest.mark.parametrize("name", presets.names())
def test_a_sender_has_its_usual_events(name: str) -> None:
    samples = presets.get(name).samples
    assert len({sample.event for sample in samples}) == len(samples) >= 3
    assert {file.stem for file in (Path(presets.__file__).parent / "samples").iterdir()} == set(
        presets.names()
    )


def test_samples_are_not_read_when_the_program_starts() -> None:
    seen = "import postern.wiring.serving, postern.presets as p; p.load(); print(p._samples.cache_info().currsize)"
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.stdout == "0\n", ran.stderr


@pytest.mark.parametrize("name", SENDERS)
def test_a_caller_that_waits_is_answered_before_its_sender_hangs_up(name: str) -> None:
    preset = presets.get(name)
    if preset.synchronous_timeout_seconds is not None:
        assert preset.sender.timeout_seconds is not None
        assert 0 < preset.synchronous_timeout_seconds < preset.sender.timeout_seconds


@pytest.mark.parametrize(
    ("name", "seconds"), [("slack", 2.5), ("shopify", 4.5), ("paddle", 4.5), ("github", 9)]
)
def test_senders_that_hang_up_early_bring_their_own_time_out(name: str, seconds: float) -> None:
    assert presets.get(name).synchronous_timeout_seconds == seconds


@pytest.mark.parametrize(
    ("name", "handshake"),
    [("slack", "slack"), ("meta", "meta"), ("xero", "xero"), ("woocommerce", "woocommerce_ping")],
)
def test_senders_with_a_handshake_name_it(name: str, handshake: str) -> None:
    assert presets.get(name).scheme.handshake == handshake


@pytest.mark.parametrize("name", ["square", "hubspot"])
def test_senders_that_sign_the_url_say_so(name: str) -> None:
    assert presets.get(name).signs_url and about(name).needs_public_url


def saved(name: str, **scheme: Any) -> Resolved:
    """What was saved when the preset had another version."""
    return Resolved(scheme=msgspec.structs.replace(presets.get(name).scheme, **scheme), preset_version=0)


def test_what_a_newer_preset_would_change_is_reported_with_both_values() -> None:
    assert preset_update("paddle", saved("paddle")) == PresetUpdate(version=1, changes=[])
    update = preset_update("paddle", saved("paddle", tolerance_seconds=30, delivery_id=()))
    assert {
        change.field: (change.saved, change.present) for change in (update.changes if update else [])
    } == {
        "toleranceSeconds": (30, 5),
        "deliveryId": ([], ["body:event_id"]),
    }


def test_a_field_that_a_newer_version_added_counts_as_unused_in_an_older_one() -> None:
    def before_handshakes(name: str) -> Resolved:
        document = as_document(saved(name))
        del document["scheme"]["handshake"]
        return msgspec.convert(document, Resolved)

    assert preset_update("slack", before_handshakes("slack")) == PresetUpdate(
        version=1, changes=[SchemeChange(field="handshake", saved="none", present="slack")]
    )
    assert preset_update("paddle", before_handshakes("paddle")) == PresetUpdate(version=1, changes=[])


def test_what_is_answered_about_a_preset_can_be_read_again() -> None:
    for name in presets.names():
        assert msgspec.json.decode(as_json(about(name)), type=Provider) == about(name)
    assert about("square").needs_public_url and about("meta").needs_verify_token


def test_an_unknown_name_is_reported() -> None:
    with pytest.raises(presets.UnknownPreset, match="nobody"):
        presets.get("nobody")


def test_generic_is_the_scheme_that_is_written_for_own_code() -> None:
    scheme = presets.get("generic").scheme
    assert (
        isinstance(scheme, SignatureScheme)
        and scheme.signed_content == "{headers:X-Webhook-*}"
        and not scheme.timestamp_required
    )
