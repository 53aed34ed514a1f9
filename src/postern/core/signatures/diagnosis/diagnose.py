"""Finds why a call does not verify, and what would have to change.

Every answer is tried, not guessed: a change is offered only after the one verifier has accepted the call with
it. The work is bounded, by a number of tries and by the bytes they hash.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from msgspec import structs

from postern.core.calls.call import Call
from postern.core.documents import Patch
from postern.core.signatures.algorithms import ALGORITHM_KINDS, DIGESTS, is_pair, is_shared, is_token
from postern.core.signatures.credential import Matched, Unproven, VerifiedCall
from postern.core.signatures.diagnosis.guesses import other_schemes
from postern.core.signatures.diagnosis.sightings import other_digests
from postern.core.signatures.diagnosis.variants import (
    SenderSetup,
    Trial,
    Variation,
    changed_calls,
    changed_joins,
    changed_secrets,
    changed_times,
    changed_urls,
)
from postern.core.signatures.encoding import STAND_IN, write_digest
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.select import finder, parse_ref
from postern.core.signatures.signature import Reading, SignatureCredential

MOST_TRIALS = 700
MOST_BYTES = 96 * 1024 * 1024
MOST_CHANGES = 6

DiagnosisStep = tuple[str, bool, str]

# A secret for asking what a call looks like, not whether it is genuine: every secret encoding can read it.
_ANY_SECRET = b"abcdef12"

EXPLANATIONS = {
    "signature_missing": "The call carries no signature where the scheme looks for it: the sender has no secret, or is another one.",
    "signature_malformed": "There is something where the signature should be, but not in the form the scheme expects.",
    "signature_mismatch": "The signature is well-formed, and it is not the one these bytes and this secret make.",
    "signing_keys_unavailable": "The sender's keys, with which its calls are checked, are not here.",
    "timestamp_missing": "The scheme signs the time of sending, and the call does not say it.",
    "timestamp_malformed": "The time of sending is not written in the form the scheme expects.",
    "timestamp_expired": "The signature is right, but was made too long before the call arrived: an old call, a queue, or a wrong clock.",
    "timestamp_in_future": "The signature is right, but by its own clock it was made after the call arrived: one of the clocks is wrong.",
}


class Known(Protocol):
    """A preset, as far as a diagnosis wants to know it."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def scheme(self) -> SignatureScheme: ...
    @property
    def identifying_headers(self) -> frozenset[bytes]:
        """Lower-case names of the headers this sender usually sends."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The tester's result. Nothing in it is secret; ``expected`` is for the owner alone, who could compute it too."""

    verified: bool
    matched: Matched
    code: str | None
    explanation: str
    steps: tuple[DiagnosisStep, ...]
    signed_bytes: bytes | None
    """Exactly what the sender must have signed, or None where that is not known."""
    received: tuple[str, ...]
    expected: tuple[tuple[Matched, str], ...]
    """The signature that each secret makes of these bytes, as the sender would write it."""
    would_verify_if: tuple[Variation, ...]


def diagnose(
    setup: SenderSetup, call: Call, at: float | None = None, presets: Mapping[str, Known] | None = None
) -> Diagnosis:
    """Checks the call as if it arrived ``at`` that time, else when it was received, and says why in words."""
    if at is not None:
        call = call.but(received_at=at)
    received = _received(setup.scheme, call)
    try:
        credential = setup.credential()
    except ValueError as error:
        steps: tuple[DiagnosisStep, ...] = (("secret", False, str(error)),)
        changes = _changes(setup, call, "signature_mismatch", presets or {})
        return Diagnosis(
            False, "", "signature_mismatch", sentence(str(error)), steps, None, received, (), changes
        )

    reading = credential.read(call)
    verdict = credential.check(call)
    steps = tuple(
        _steps(credential, call, reading, verdict, (call.fetched or {}).get(credential.keys_at(call), b""))
    )
    content = reading.content if isinstance(reading, Reading) else None
    expected = tuple(_expected(credential, content)) if content is not None else ()
    if isinstance(verdict, VerifiedCall):
        return Diagnosis(
            True, verdict.matched, None, sentence(verdict.step), steps, content, received, expected, ()
        )
    changes = _changes(setup, call, verdict.code, presets or {})
    opening = EXPLANATIONS[verdict.code]
    if verdict.code == "signature_mismatch" and any(
        ok for name, ok, _ in steps if name.startswith("compare")
    ):
        opening = "The signature is right, and the body is not the one it speaks of."
    explanation = " ".join([opening, sentence(verdict.detail), *_remarks(setup, call, verdict, changes)])
    return Diagnosis(False, "", verdict.code, explanation, steps, content, received, expected, changes)


def resembles(call: Call, presets: Mapping[str, Known]) -> list[str]:
    """The presets whose senders make calls of such names and forms, best first."""
    names = frozenset(name for name, _ in call.headers)
    scores = {}
    for name, preset in presets.items():
        present = any(finder(parse_ref(text))(call) for text in preset.scheme.signature)
        secret = STAND_IN.encode() if is_pair(preset.scheme.algorithm) else _ANY_SECRET
        if present and isinstance(SignatureCredential(preset.scheme, secret).read(call), Reading):
            scores[name] = len(preset.identifying_headers & names)
    return sorted(scores, key=lambda name: -scores[name])


def _changes(
    setup: SenderSetup, call: Call, code: str, presets: Mapping[str, Known]
) -> tuple[Variation, ...]:
    """The single changes first; only where none of them helps, several at once."""
    spent = _Spending(setup, call)
    variations: dict[tuple[str, str], Variation] = {}
    tiers: list[Iterable[Trial]]
    if code in ("timestamp_expired", "timestamp_in_future", "timestamp_malformed"):
        tiers = [changed_times(setup, call)]
    else:
        tiers = [_other_presets(setup, call, presets)]
        tiers += [
            change(setup, call) for change in (changed_secrets, changed_urls, changed_calls, changed_joins)
        ]
    for tier in tiers:
        _try(tier, spent, variations)
    if not variations:
        _try(other_schemes(setup, call), spent, variations)
    return tuple(variations.values())[:MOST_CHANGES]


class _Spending:
    """Counts how much more may be tried."""

    def __init__(self, setup: SenderSetup, call: Call) -> None:
        self._trials = MOST_TRIALS
        self._bytes = MOST_BYTES
        self._each = (len(call.body) + 1000) * (1 if setup.second is None else 2)

    def allows_one_more(self) -> bool:
        self._trials -= 1
        self._bytes -= self._each
        return self._trials >= 0 and self._bytes >= 0


def _try(trials: Iterable[Trial], spent: _Spending, variations: dict[tuple[str, str], Variation]) -> None:
    for trial in trials:
        if len(variations) >= MOST_CHANGES or not spent.allows_one_more():
            return
        if not trial.setup.without_clock().verifies(trial.call):
            continue
        change = trial.change
        late = trial.setup.rejection(trial.call)
        if late is not None:
            change = structs.replace(
                change,
                explanation=f"{change.explanation} Then the time would still be rejected: {late.detail}.",
            )
        variations.setdefault((change.change, str(change.patch)), change)


def _other_presets(setup: SenderSetup, call: Call, presets: Mapping[str, Known]) -> Iterator[Trial]:
    for name in resembles(call, presets):
        preset = presets[name]
        if preset.scheme != setup.scheme and _takes(preset.scheme, setup):
            scheme, place = preset.scheme, preset.scheme.signature[0].partition(":")[2]
            how = f"{scheme.encoding} {ALGORITHM_KINDS[scheme.algorithm].words} of {scheme.signed_content} in {place}"
            explanation = f"The call is signed the way {preset.title} signs: {how}."
            patch: Patch = {"provider": name, "scheme": None}
            if setup.tolerance_seconds is not None:
                patch["toleranceSeconds"] = None
            change = Variation(f"Choose {preset.title} as the sender", explanation, patch)
            yield Trial(replace(setup, scheme=preset.scheme, tolerance_seconds=None), call, change)


def _takes(scheme: SignatureScheme, setup: SenderSetup) -> bool:
    """Returns whether the secret that is set can be a key of this scheme."""
    try:
        return bool(replace(setup, scheme=scheme).credential())
    except ValueError:
        return False


def _steps(
    credential: SignatureCredential,
    call: Call,
    reading: Reading | Unproven,
    verdict: VerifiedCall | Unproven,
    fetched: bytes,
) -> Iterator[DiagnosisStep]:
    if isinstance(reading, Unproven):
        yield ("read the signature", False, reading.detail)
        return
    count = len(reading.candidates)
    yield (
        "read the signature",
        True,
        f"{count} signature{'' if count == 1 else 's'} found, {credential.scheme.encoding}",
    )
    if reading.timestamp:
        yield ("read the timestamp", True, reading.timestamp.decode("latin-1"))
    yield (
        "put together what is signed",
        True,
        f"{credential.scheme.signed_content}: {len(reading.content)} bytes",
    )
    matches = False
    shared = is_shared(credential.scheme.algorithm)
    for which, key in credential.keys.items():
        made = key.matches(credential.content_of(which, reading, call), reading.candidates, fetched)
        matches |= made
        if is_token(credential.scheme.algorithm):
            words = "the token proves it" if made else "the token does not prove it"
        elif shared:
            words = "the same" if made else "another signature"
        else:
            words = "made with its private half"
            words = words if made else f"not {words} over these bytes"
        yield (f"compare with the {which} {key.noun}", made, words)
    if matches and isinstance(verdict, Unproven):
        yield ("check time and body digest", False, verdict.detail)
    elif matches and reading.signed_at is not None and credential.tolerance:
        yield ("check time and body digest", True, f"within {credential.tolerance} s of the time of receipt")


def _expected(credential: SignatureCredential, content: bytes) -> Iterator[tuple[Matched, str]]:
    scheme = credential.scheme
    for which, key in credential.keys.items():
        if scheme.algorithm in DIGESTS:  # of a pair of keys nobody but the sender can say it
            yield which, scheme.item(write_digest(key.sign(content), scheme.encoding))


def _received(scheme: SignatureScheme, call: Call) -> tuple[str, ...]:
    return tuple(
        value.decode("latin-1") for text in scheme.signature for value in finder(parse_ref(text))(call)
    )[:32]


def _remarks(
    setup: SenderSetup, call: Call, verdict: Unproven, changes: tuple[Variation, ...]
) -> Iterator[str]:
    for algorithm in other_digests(call) if not changes and verdict.code.startswith("signature") else ():
        yield f"The call carries a digest as long as {algorithm} makes them, and no signature of it is verified here."
    secret = "key" if is_pair(setup.scheme.algorithm) else "secret"
    if verdict.code == "signature_mismatch" and not changes and not is_token(setup.scheme.algorithm):
        if "{url}" in setup.scheme.signed_content:
            url = setup.public_url or call.base_url + call.path.decode("latin-1")
            yield f"Nothing else that was tried matched either. This sender signs the URL it was given: where that is not {url}, set the public URL to it. Else the {secret} is another one, or something changed the body on its way."
        else:
            yield f"Nothing else that was tried matched either: most likely the {secret} is another one, or something changed the body on its way."


def sentence(text: str) -> str:
    is_host = "." in text.partition(" ")[0].rstrip(".")  # a host's name begins as it is
    return (text if is_host else text[:1].upper() + text[1:]) + (
        "" if text.endswith((".", "!", "?")) else "."
    )
