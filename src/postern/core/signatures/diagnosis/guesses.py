"""Guesses how a call was signed whose sender nobody described: what looks like a signature, over what senders usually sign."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from postern.core.calls.call import Call
from postern.core.signatures.algorithms import (
    ALGORITHM_KINDS,
    ALGORITHMS,
    DIGESTS,
    Algorithm,
    is_pair,
    is_shared,
    is_token,
)
from postern.core.signatures.diagnosis.sightings import ids, moments, shapes
from postern.core.signatures.diagnosis.variants import (
    SenderSetup,
    Trial,
    Variation,
    custom_patch,
    secret_forms,
    secret_words,
)
from postern.core.signatures.scheme import InvalidScheme, SignatureScheme
from postern.core.signatures.select import finder, in_words, parse_ref

CONTENTS = (
    "{body}",
    "{timestamp}.{body}",
    "{timestamp}:{body}",
    "{timestamp}{body}",
    "{body}{timestamp}",
    "v0:{timestamp}:{body}",
    "{id}.{timestamp}.{body}",
    "{id}{timestamp}{body}",
    "{url}{body}",
    "{method}{url}{body}{timestamp}",
    "{body_sha256}",
)
"""The usual signed contents, most common first."""


def other_schemes(setup: SenderSetup, call: Call) -> Iterator[Trial]:
    """All that looks like a digest, over all that senders usually sign, with every form of the secret."""
    if is_token(setup.scheme.algorithm):
        return
    secrets = [setup.scheme, *(scheme for scheme, _ in secret_forms(setup))]
    seen = shapes(call, tuple(DIGESTS) if is_shared(setup.scheme.algorithm) else tuple(_of_this_key(setup)))
    for content, timestamp, form, delivery_id in _contents(setup, call):
        for shape in seen:
            for secret in secrets:
                document = {
                    **setup.scheme.to_document(),
                    "signature": shape.ref,
                    "itemSeparator": shape.item_separator,
                    "keySeparator": shape.key_separator,
                    "signatureKey": shape.key,
                    "algorithm": shape.algorithm,
                    "encoding": shape.encoding,
                    "signedContent": content,
                    "secretEncoding": secret.secret_encoding,
                    "secretPrefix": secret.secret_prefix,
                    "timestamp": timestamp,
                    "timestampFormat": form,
                    "toleranceSeconds": (setup.scheme.tolerance_seconds or None) if timestamp else 0,
                    "timestampRequired": "{timestamp}" in content or setup.scheme.timestamp_required,
                    "deliveryId": delivery_id or list(setup.scheme.delivery_id),
                    "bodyDigest": [],
                }
                try:
                    scheme = SignatureScheme.from_document(document)
                except InvalidScheme:
                    continue
                yield Trial(
                    replace(setup, scheme=scheme), call, _described(setup.scheme, scheme, shape.words)
                )


def _of_this_key(setup: SenderSetup) -> Iterator[Algorithm]:
    """The algorithms whose key it may be."""
    for algorithm in ALGORITHMS:
        if is_pair(algorithm):
            scheme = structs.replace(setup.scheme, algorithm=algorithm)
            try:
                replace(setup, scheme=scheme).credential()
            except ValueError:
                continue
            yield algorithm


def _contents(setup: SenderSetup, call: Call) -> Iterator[tuple[str, str, str, str]]:
    seen = moments(call, call.received_at)
    own = setup.scheme.timestamp[0] if setup.scheme.timestamp else ""
    for content in dict.fromkeys([setup.scheme.signed_content, *CONTENTS]):
        if "{timestamp}" in content:
            times = [(moment.ref, moment.form) for moment in seen]
        else:
            # A time outside of what is signed proves nothing, so a new scheme does not ask for it.
            kept = own if content == setup.scheme.signed_content or own.startswith("body:") else ""
            times = [(kept, setup.scheme.timestamp_format)]
        for timestamp, form in times[:2]:
            for delivery_id in _delivery_ids(setup.scheme, call) if "{id}" in content else [""]:
                yield content, timestamp, form, delivery_id


def _delivery_ids(scheme: SignatureScheme, call: Call) -> list[str]:
    """Returns the places where the id may be. An empty text is the present scheme's own place, if the call has an id there."""
    own = [""] if any(finder(parse_ref(ref))(call) for ref in scheme.delivery_id) else []
    return own + [ref for ref in ids(call) if ref not in scheme.delivery_id]


def _described(now: SignatureScheme, then: SignatureScheme, seen: str) -> Variation:
    """The differences in words. A body signature where the generic scheme is set, the usual mistake, has its own."""
    if then.signed_content == "{body}" and "{headers:" in now.signed_content:
        words = f"This looks like a body signature ({seen}), not one over headers. Choose the sender's preset or this custom scheme."
        return Variation("Use a custom scheme that signs the body", words, custom_patch(then))
    differing = []
    if (now.signature, now.item_separator, now.key_separator, now.signature_key, now.encoding) != (
        then.signature,
        then.item_separator,
        then.key_separator,
        then.signature_key,
        then.encoding,
    ):
        differing.append(f"read the signature as {seen}")
    if now.algorithm != then.algorithm:
        differing.append(f"take it as {ALGORITHM_KINDS[then.algorithm].words}")
    if now.signed_content != then.signed_content:
        differing.append(f"take {then.signed_content} as what is signed")
    if (now.secret_encoding, now.secret_prefix) != (then.secret_encoding, then.secret_prefix):
        differing.append(f"use the secret {secret_words(then)}")
    if now.timestamp != then.timestamp and then.timestamp:
        differing.append(f"take the timestamp from {in_words(then.timestamp[0])}")
    words = " and ".join(differing) or "use this custom scheme"
    return Variation(
        words[:1].upper() + words[1:],
        "With these settings of a custom scheme the signature is right.",
        custom_patch(then),
    )
