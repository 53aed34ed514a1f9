"""The presets are complete. That each verifies what its sender signs is asked by the vectors, and that its samples are taken by
`usecases/signatures/test_sending.py`."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postern import presets
from postern.core.calls.content import RECORDED, Payload, read_object
from postern.core.calls.event import event_name
from postern.core.calls.paths import parse_path, walk
from postern.core.signatures.algorithms import is_token
from postern.core.signatures.credential import NoCredential
from postern.core.signatures.redact import Mask
from postern.core.signatures.select import parse_ref
from postern.core.signatures.signature import Reading, SignatureCredential
from postern.core.webhooks.conditions import CompiledRow, shown
from postern.core.webhooks.making import Draft, Occasion, signed
from postern.core.webhooks.settings import Resolved, as_document
from postern.usecases.answers import as_json
from postern.usecases.signatures.senders import about
from postern.usecases.signatures.views import Provider
from postern.usecases.webhooks.resolving import preset_update
from postern.usecases.webhooks.views import PresetUpdate, SchemeChange
from support.calls import NOW, call
from support.every_kind import secret_of
from support.waiting import PATIENCE

SENDERS = [name for name in presets.names() if name != presets.GENERIC]


def test_senders_come_by_title_and_the_generic_scheme_last() -> None:
    titles = [preset.title.lower() for preset in presets.load().values()]
    assert titles[:-1] == sorted(titles[:-1])
    assert presets.names()[-1] == presets.GENERIC


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_says_what_to_paste_and_how_its_sender_behaves(name: str) -> None:
    preset = presets.get(name)
    assert preset.title and preset.setup and preset.secret.paste and preset.secret.where
    assert preset.sender.retries and preset.version >= 1
    # A caller that waits is answered before its sender hangs up.
    if preset.synchronous_timeout_seconds is not None and preset.sender.timeout_seconds is not None:
        assert 0 < preset.synchronous_timeout_seconds < preset.sender.timeout_seconds


@pytest.mark.parametrize("name", SENDERS)
def test_no_preset_says_how_its_sender_behaves_without_a_source(name: str) -> None:
    sender = presets.get(name).sender
    if not sender.source:
        assert sender.retries == "Not known."
        assert not (sender.retry_hours or sender.then or sender.timeout_seconds)


WEAK, NARROW = {"algorithm"}, {"signedContent"}
OLD_OR_NARROW = {
    **dict.fromkeys(("intercom", "segment", "vercel", "twilio", "trello"), WEAK),
    **dict.fromkeys(("adyen", "mailgun", "pubsub", "sns", "paypal"), NARROW),
    "braintree": NARROW | WEAK,
}
"""Senders that sign with SHA-1, or not the whole body: they offer nothing else."""


@pytest.mark.parametrize("name", SENDERS)
def test_a_preset_covers_the_body_and_its_timestamp(name: str) -> None:
    scheme = presets.get(name).scheme
    refs = [parse_ref(text) for text in scheme.timestamp]
    has_signed_time = "{timestamp}" in scheme.signed_content or all(map(scheme.signs, refs))
    weak = {
        "algorithm": scheme.algorithm == "hmac_sha1",
        "signedContent": not scheme.signs_body,
        "timestamp": not (has_signed_time or is_token(scheme.algorithm)),
        "toleranceSeconds": refs and not scheme.tolerance_seconds,
    }
    assert {field for field, is_so in weak.items() if is_so} == OLD_OR_NARROW.get(name, set())


def test_a_sender_has_its_usual_events() -> None:
    for name in presets.names():
        samples = presets.get(name).samples
        assert len({sample.event for sample in samples}) == len(samples) >= 3, name
    files = (Path(presets.__file__).parent / "samples").iterdir()
    assert {file.stem for file in files} == set(presets.names())


@pytest.mark.parametrize(
    ("name", "event", "headers", "paths"),
    [
        ("stripe", "invoice.payment_failed", "user-agent", "api_version request.id pending_webhooks"),
        ("standardwebhooks", "invoice.paid", "webhook-id webhook-timestamp webhook-signature", "type"),
        ("standardwebhooks", "user.created", "svix-id svix-timestamp svix-signature", "data.object"),
        ("standardwebhooks", "email.bounced", "svix-id svix-timestamp svix-signature", "data.email_id"),
        ("paddle", "transaction.completed", "paddle-signature", "data.items data.payments data.details.line_items"),
        ("paddle", "subscription.canceled", "paddle-signature", "data.items data.billing_cycle.interval"),
        ("github", "push", "x-github-delivery", "head_commit.id sender.login compare repository.owner.login"),
        ("slack", "reaction_added", "x-slack-signature", "token authorizations event.event_ts event.item_user"),
        ("woocommerce", "order.created", "x-wc-webhook-resource x-wc-webhook-event", "id"),
    ],
)  # fmt: skip
def test_a_sample_has_what_the_senders_own_libraries_look_for(
    name: str, event: str, headers: str, paths: str
) -> None:
    (sample,) = (one for one in presets.get(name).samples if one.event == event)
    sent = {header.lower() for header, _ in sample.headers}
    assert set(headers.split()) <= sent
    assert not ("svix-id" in sent and "webhook-id" in sent)
    body = re.sub(r":(\{\w+\})", r":0", sample.body).encode()
    assert [path for path in paths.split() if walk(body, parse_path(path)) is None] == []


@pytest.mark.parametrize(
    ("name", "delivery"), [("linear", "linear-delivery"), ("shopify", "x-shopify-event-id")]
)
def test_the_id_of_a_delivery_is_found_in_one_place_alone(name: str, delivery: str) -> None:
    """Code that takes another id for it would pass a test call, and fail in earnest."""
    for sample in presets.get(name).samples:
        sent = {header.lower(): value for header, value in sample.headers}
        assert sent.pop(delivery) == "{uuid}"
        assert "{uuid}" not in " ".join([*sent.values(), sample.body])


def test_the_id_of_a_delivery_is_where_its_preset_says() -> None:
    for name, preset in presets.load().items():
        credential = SignatureCredential(preset.scheme, secret_of(name).encode())
        for sample in preset.samples if preset.scheme.delivery_id and credential.can_sign else ():
            draft = Draft(sample.headers, sample.body.encode(), sample.event)
            occasion = Occasion(NOW, b"chance", "https://hooks.example.com", "/webhook/abc")
            made = signed(credential, draft, occasion, {})
            reading = credential.read(call(made.body, *made.headers, query=made.query.encode()))
            assert isinstance(reading, Reading) and reading.delivery_id, (name, sample.event)


def test_samples_are_not_read_when_the_program_starts() -> None:
    seen = "import postern.wiring.serving, postern.presets as p; p.load(); print(p._samples.cache_info().currsize)"
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.stdout == "0\n", ran.stderr


def test_senders_that_hang_up_early_have_a_handshake_or_sign_the_url_say_so() -> None:
    for name, seconds in (("slack", 2.5), ("shopify", 4.5), ("paddle", 4.5), ("github", 9)):
        assert presets.get(name).synchronous_timeout_seconds == seconds
    for name, handshake in (
        ("slack",) * 2,
        ("meta",) * 2,
        ("xero",) * 2,
        ("woocommerce", "woocommerce_ping"),
    ):
        assert presets.get(name).scheme.handshake == handshake
    for name in ("square", "hubspot"):
        assert presets.get(name).signs_url and about(name).needs_public_url


def saved(name: str, **scheme: Any) -> Resolved:
    """What was saved when the preset had another version."""
    return Resolved(scheme=msgspec.structs.replace(presets.get(name).scheme, **scheme), preset_version=0)


def test_what_a_newer_preset_would_change_is_reported_with_both_values() -> None:
    assert preset_update("paddle", saved("paddle")) == PresetUpdate(version=1, changes=[])
    update = preset_update("paddle", saved("paddle", tolerance_seconds=30, delivery_id=()))
    assert update is not None
    changes = {change.field: (change.saved, change.present) for change in update.changes}
    assert changes == {"toleranceSeconds": (30, 5), "deliveryId": ([], ["body:event_id"])}


def test_a_field_that_a_newer_version_added_counts_as_unused_in_an_older_one() -> None:
    def before_handshakes(name: str) -> Resolved:
        document = as_document(saved(name))
        del document["scheme"]["handshake"]
        return msgspec.convert(document, Resolved)

    added = SchemeChange(field="handshake", saved="none", present="slack")
    assert preset_update("slack", before_handshakes("slack")) == PresetUpdate(version=1, changes=[added])
    assert preset_update("paddle", before_handshakes("paddle")) == PresetUpdate(version=1, changes=[])


def test_that_a_sender_sends_arrays_now_is_a_change_of_its_preset() -> None:
    change = SchemeChange(field="sendsArrays", saved=False, present=True)
    assert preset_update("quickbooks", saved("quickbooks")) == PresetUpdate(version=2, changes=[change])


def test_what_is_answered_about_a_preset_can_be_read_again() -> None:
    for name in presets.names():
        assert msgspec.json.decode(as_json(about(name)), type=Provider) == about(name)
    assert about("square").needs_public_url and about("meta").needs_verify_token


def test_an_unknown_name_is_reported() -> None:
    with pytest.raises(KeyError, match="nobody"):
        presets.get("nobody")


def test_generic_is_the_scheme_that_is_written_for_own_code() -> None:
    scheme = presets.get("generic").scheme
    assert scheme.signed_content == "{headers:X-Webhook-*}" and not scheme.timestamp_required


@pytest.mark.parametrize("name", [name for name, preset in presets.load().items() if preset.actor])
def test_who_has_caused_an_event_stands_where_the_preset_says(name: str) -> None:
    preset = presets.get(name)
    found = [
        path
        for sample in preset.samples
        for path in preset.actor
        if walk(re.sub(r"\{\w+\}", "1", sample.body).encode(), parse_path(path)) is not None
    ]
    assert found, "a sample has it in one of these places"
    assert set(preset.actor) - set(found) <= {"event.bot_id"}, "only bots have it"


def test_a_row_reads_the_event_that_the_history_names() -> None:
    for name, preset in presets.load().items():
        places = presets.event_places(name)
        row = CompiledRow("event", "notThere", mask=Mask(NoCredential()), event=places)
        for sample in preset.samples:
            sent = call(re.sub(r"\{\w+\}", "1", sample.body).encode(), *sample.headers)
            payload = read_object(sent, RECORDED)
            if isinstance(payload, Payload):
                named = event_name(places, sent.first_header, lambda found=payload: found)
                said = row.problem(sent, payload)
                wanted = f"the event is {shown(named)}, where nothing may be" if named else ""
                assert said.replace('"', "") == wanted.replace('"', ""), name
