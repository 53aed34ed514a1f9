"""Replays the committed test vectors against the verifier."""

import base64
import json
from pathlib import Path
from typing import Any

from postern import presets
from postern.core.calls.call import Call
from postern.core.signatures.credential import VerifiedCall
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential

VECTORS = Path(__file__).parent.parent / "vectors"

Vector = dict[str, Any]


def providers() -> list[str]:
    return sorted(file.stem for file in VECTORS.glob("*.json"))


def vectors(provider: str) -> list[Vector]:
    file = VECTORS / f"{provider}.json"
    assert file.exists(), (
        f"{provider} has no vectors yet: tests/vectors/make/README.md says how they are made"
    )
    document = json.loads(file.read_text("utf-8"))
    assert document["provider"] == provider
    return document["vectors"]


def replay(provider: str, vector: Vector) -> dict[str, Any]:
    """What the verifier says, in the words of a vector's ``expect``."""
    scheme = (
        SignatureScheme.from_document(vector["scheme"])
        if "scheme" in vector
        else presets.load()[provider].scheme
    )
    second = vector["second_secret"]
    credential = SignatureCredential(
        scheme,
        vector["secret"].encode(),
        second.encode() if second is not None else None,
        public_url=vector["public_url"],
        require_timestamp_and_digest=vector.get("require_timestamp_and_digest", False),
    )
    result = credential.check(call_of(vector))
    if isinstance(result, VerifiedCall):
        return {"verified": True, "matched": result.matched}
    return {"verified": False, "code": result.code}


def call_of(vector: Vector) -> Call:
    call = vector["call"]
    return Call(
        method=call["method"],
        path=call["path"].encode(),
        query=call["query"].encode(),
        headers=tuple((name.lower().encode(), value.encode("latin-1")) for name, value in call["headers"]),
        body=base64.b64decode(call["body_base64"]),
        address="203.0.113.7",
        received_at=vector["at"],
        base_url=call["base_url"],
    )


def accepts_no_secret(scheme: SignatureScheme) -> bool:
    """Can a webhook be configured so that everybody knows its key?"""
    for main, second in (
        (b"", None),
        (scheme.secret_prefix.encode(), None),
        (b"\0", None),
        (b"MfKQ9r8GKYqrTwjU", b""),
    ):
        try:
            SignatureCredential(scheme, main, second)
        except ValueError:
            continue
        return True
    return False


def first_disagreement() -> str | None:
    for provider in providers():
        for vector in vectors(provider):
            result = replay(provider, vector)
            if result != vector["expect"]:
                return f"{provider}: {vector['name']}: {result}"
    for name, preset in presets.load().items():
        if accepts_no_secret(preset.scheme):
            return f"{name}: an empty secret is accepted"
    return None
