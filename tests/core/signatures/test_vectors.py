"""The verifier against signatures that the vendors' own SDKs, openssl and published examples made
(``tests/vectors``)."""

import pytest

from postern import presets
from postern.core.problems import PROBLEMS
from support.vector_replay import accepts_no_secret, providers, replay, vectors


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
    wanted = set(EVERYBODY)
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
    assert not wanted - {vector["kind"] for vector in vectors(preset.name)}


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


@pytest.mark.parametrize("preset", presets.load().values(), ids=lambda preset: preset.name)
def test_an_empty_secret_is_refused(preset):
    assert not accepts_no_secret(preset.scheme)
