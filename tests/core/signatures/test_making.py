"""Calls as their sender would make them."""

import re

from postern.core.signatures.making import Draft, Occasion, signed
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
