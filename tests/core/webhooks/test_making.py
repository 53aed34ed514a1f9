"""Calls as their sender would make them."""

import re

import pytest

from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.making import CannotMake, Draft, Occasion, Value, Wrong, signed, unsigned


def credential(**document: object) -> SignatureCredential:
    return SignatureCredential(SignatureScheme.from_document(document), b"a secret of the tests")


def test_a_delivery_id_among_the_parts_of_the_signature_is_made_anew_for_each_call() -> None:
    parts = {"itemSeparator": ",", "keySeparator": "=", "signatureKey": "v1", "deliveryId": "item:id"}
    made = [signed(credential(**parts), Draft(), Occasion(0.0, chance), {}) for chance in (b"1", b"2")]
    ids = [re.search("id=([0-9a-f-]{36}),", dict(one.headers)["X-Signature"]) for one in made]
    assert all(ids) and ids[0] and ids[1] and ids[0][1] != ids[1][1]


def test_a_call_without_an_example_has_an_empty_object() -> None:
    assert unsigned(Draft(), Occasion(0.0, b"1"), {}).body == b"{}"


def test_a_value_is_set_where_its_path_leads_and_what_stands_beside_it_stays() -> None:
    draft = Draft(body=b'{"a":{"b":1,"c":2},"d":[1,{"e":1}]}')
    changes: dict[str, Value] = {"a.b": 3, "d[1].e": 4, "f.g": 5}
    made = unsigned(draft, Occasion(0.0, b"1"), changes)
    assert made.body == b'{"a":{"b":3,"c":2},"d":[1,{"e":4}],"f":{"g":5}}'


def test_what_cannot_be_signed_is_reported() -> None:
    def why(by: SignatureCredential, draft: Draft = Draft(), wrong: Wrong | None = None) -> str:
        with pytest.raises(CannotMake) as cannot:
            signed(by, draft, Occasion(1_700_000_000.0, b"1"), {}, wrong)
        return str(cannot.value)

    over_time = credential(signedContent="{timestamp}", timestamp="header:X-Time")
    assert "does not sign the body" in why(over_time, wrong="body")
    assert "signs no time" in why(credential(), wrong="stale")
    ageless = credential(timestamp="header:X-Time", toleranceSeconds=0)
    assert "any age" in why(ageless, wrong="stale")
    assert "characters that HTTP does not carry" in why(credential(), Draft((("X-A", "\u4e00"),)))
    twice = Draft((("X-A", "1"), ("X-A", "2")))
    assert "sent 2 times" in why(credential(signedContent="{header:X-A}.{body}"), twice)
    parts = credential(timestamp="item:t", keySeparator="=", signedContent="{timestamp}.{body}")
    assert "does not say what divides the parts" in why(parts)
    assert "the body is not JSON" in why(credential(timestamp="body:at"), Draft(body=b"a=1"))


def test_a_signature_that_is_too_old_is_so_by_a_minute() -> None:
    timed = credential(timestamp="header:X-Time", signedContent="{timestamp}.{body}")
    made = signed(timed, Draft(), Occasion(1_700_000_000.0, b"1"), {}, "stale")
    assert dict(made.headers)["X-Time"] == str(1_700_000_000 - 300 - 60)
