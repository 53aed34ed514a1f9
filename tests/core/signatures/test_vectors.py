"""The verifier against signatures that the vendors' own SDKs, openssl and published examples made
(``tests/vectors``)."""

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postern import presets
from postern.core.calls.call import Call
from postern.core.problems import PROBLEMS
from postern.core.signatures.algorithms import is_certificate, is_token
from postern.core.signatures.credential import VerifiedCall
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential

VECTORS = Path(__file__).parents[2] / "vectors"

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
    call = call_of(vector)
    call.fetched = {address: text.encode() for address, text in vector.get("fetched", {}).items()}
    result = credential.check(call)
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


def kinds(text: str) -> set[str]:
    return set(text.split())


EVERYBODY = kinds(
    """
    valid main_of_two second_secret second_secret_not_set wrong_secret wrong_secrets empty_key
    altered_body body_with_more non_ascii_body not_utf8_body trailing_newline_body odd_json_body empty_body
    altered_signature missing_signature empty_signature half_signature malformed_signature latin1_signature
    header_case repeated_right_last repeated_right_first repeated_wrong
    """
)
TIMED = kinds(
    """
    edge_past edge_future stale very_stale future far_future altered_timestamp missing_timestamp malformed_timestamp
    """
)
LISTED = kinds("list_right_last list_right_first list_wrong list_second_secret list_with_other_items")
TOKENS = kinds(
    """
    valid main_of_two second_secret wrong_secret other_account other_issuer unsigned stale missing_signature malformed_signature
    altered_signature repeated
    """
)
CERTIFICATES = kinds(
    """
    valid main_of_two second_secret second_secret_not_set wrong_secret wrong_key altered_body altered_time stale rotated
    other_certificate other_address odd_address not_fetched no_certificate expired other_digest missing_signature
    malformed_signature
    """
)
INSIDE = kinds(
    "valid main_of_two second_secret wrong_secret altered_body missing_signature malformed_signature not_json_body"
)
GENERIC = kinds(
    """
    valid order run_together in_wire_order nothing_signed header_twice header_added header_removed any_body digest altered_body
    strict strict_missing_timestamp strict_missing_digest stale future no_timestamp in_base64 second_secret
    """
)

CASES = [(provider, vector) for provider in providers() for vector in vectors(provider)]
PRESETS = [preset for preset in presets.load().values() if preset.name != presets.GENERIC]


@pytest.mark.parametrize(
    ("provider", "vector"), CASES, ids=[f"{provider}: {vector['name']}" for provider, vector in CASES]
)
def test_the_verifier_agrees_with_the_vector(provider, vector):
    assert replay(provider, vector) == vector["expect"], f"made with {vector['made_with']}"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_has_every_kind_of_vector_that_applies_to_it(preset):
    scheme = preset.scheme
    made = {one["kind"] for one in vectors(preset.name)}
    if is_token(scheme.algorithm):
        assert not TOKENS - made
        return
    if is_certificate(scheme.algorithm):
        assert not CERTIFICATES - made
        return
    if scheme.signature[0].startswith("body:"):
        assert not (INSIDE | ({"stale"} if scheme.timestamp else set())) - made
        return
    wanted = set(EVERYBODY)
    if preset.has_public_key:
        wanted -= {"empty_key"}
    wanted |= TIMED if scheme.timestamp else {"late"}
    if scheme.timestamp and not scheme.timestamp[0].startswith("body:"):
        wanted |= {"two_timestamps"}
    if scheme.item_separator:
        wanted |= LISTED
    if scheme.signature_key:
        wanted |= {"other_scheme", "no_prefix"}
    if "{id}" in scheme.signed_content:
        wanted |= {"missing_id", "altered_id"}
    if len(scheme.signature) > 1:
        wanted |= {"alias_header"}
    if preset.signs_url:
        wanted |= {"other_url", "no_public_url", "url_with_query", "altered_query"}
    if scheme.url_unescape:
        wanted |= {"url_escapes"}
    assert not wanted - made


def test_there_are_vectors_for_each_preset_the_generic_scheme_and_custom_ones():
    assert providers() == sorted(["custom", "generic", *(preset.name for preset in PRESETS)])


def test_the_generic_scheme_has_every_kind_of_vector():
    assert not GENERIC - {vector["kind"] for vector in vectors("generic")}


def test_a_vector_expects_a_code_that_exists():
    codes = {vector["expect"]["code"] for _, vector in CASES if not vector["expect"]["verified"]}
    assert codes <= set(PROBLEMS)
    assert {code for code in PROBLEMS if code.startswith(("signature_", "timestamp_"))} <= codes


def test_names_are_unique_within_a_file():
    for provider in providers():
        names = [vector["name"] for vector in vectors(provider)]
        assert len(names) == len(set(names))


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


@pytest.mark.parametrize("preset", presets.load().values(), ids=lambda preset: preset.name)
def test_an_empty_secret_is_refused(preset):
    assert not accepts_no_secret(preset.scheme)


MAKE = VECTORS / "make" / "make.py"


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MAKE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl signs the vectors")
def test_one_sender_s_vectors_are_made_alone_and_come_out_the_same(tmp_path: Path) -> None:
    made = make("woocommerce", "bigcommerce", "--into", str(tmp_path))
    assert made.returncode == 0, made.stderr
    for name in ("woocommerce", "bigcommerce"):  # the second has an SDK that the project has installed, too
        assert made_now(tmp_path, name) == made_now(VECTORS, name)


def made_now(folder: Path, name: str) -> list[object]:
    vectors = json.loads((folder / f"{name}.json").read_text())["vectors"]
    return [{**vector, "made_with": ""} for vector in vectors]  # with which version of its SDK


def test_what_cannot_be_made_is_reported(tmp_path: Path) -> None:
    assert "no such sender: acme" in make("acme", "--into", str(tmp_path)).stderr
    assert "pip install stripe==" in make("stripe", "--into", str(tmp_path)).stderr
    assert list(tmp_path.iterdir()) == []
