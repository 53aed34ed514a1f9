"""Calls as their sender would make them."""

import re

import pytest

from postern.core.signatures.making import CannotMake, Draft, Occasion, Value, signed, unsigned
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential


def test_a_delivery_id_among_the_parts_of_the_signature_is_made_anew_for_each_call() -> None:
    scheme = SignatureScheme.from_document(
        {
            "signature": "header:X-Signature",
            "itemSeparator": ",",
            "keySeparator": "=",
            "signatureKey": "v1",
            "signedContent": "{body}",
            "deliveryId": "item:id",
        }
    )
    credential = SignatureCredential(scheme, b"a secret of the tests")
    made = [signed(credential, Draft(), Occasion(0.0, chance), {}) for chance in (b"1", b"2")]
    ids = [re.search("id=([0-9a-f-]{36}),", dict(one.headers)["X-Signature"]) for one in made]
    assert all(ids) and ids[0] and ids[1] and ids[0][1] != ids[1][1]


def test_a_call_of_which_nothing_is_said_has_an_empty_object() -> None:
    assert unsigned(Draft(), Occasion(0.0, b"1"), {}).body == b"{}"


def test_a_value_is_set_where_its_path_leads_and_what_stands_beside_it_stays() -> None:
    draft = Draft(body=b'{"a":{"b":1,"c":2},"d":[1,{"e":1}]}')
    changes: dict[str, Value] = {"a.b": 3, "d[1].e": 4, "f.g": 5}
    assert (
        unsigned(draft, Occasion(0.0, b"1"), changes).body
        == b'{"a":{"b":3,"c":2},"d":[1,{"e":4}],"f":{"g":5}}'
    )


def test_where_the_body_is_not_signed_no_call_has_another_one() -> None:
    scheme = SignatureScheme.from_document(
        {"signature": "header:X-Signature", "signedContent": "{timestamp}", "timestamp": "header:X-Time"}
    )
    credential = SignatureCredential(scheme, b"a secret of the tests")
    with pytest.raises(CannotMake, match="does not sign the body"):
        signed(credential, Draft(), Occasion(0.0, b"1"), {}, "body")
