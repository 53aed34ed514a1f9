"""A scheme that was found by trying is described by what differs from the present one, and by nothing else."""

from postern.core.calls.call import Call
from postern.core.signatures.diagnosis.guesses import other_schemes
from postern.core.signatures.diagnosis.variants import SenderSetup
from postern.core.signatures.scheme import SignatureScheme

NOW = SignatureScheme.from_document(
    {"signature": "header:X-Signature", "signedContent": "{body}", "encoding": "hex"}
)
CALL = Call(
    "POST",
    b"/webhook/x",
    b"",
    ((b"x-signature", b"5f1d" * 16), (b"x-timestamp", b"1700000000")),
    b"{}",
    "127.0.0.1",
    1_700_000_000.0,
)


def test_what_differs_is_named_and_nothing_else() -> None:
    mentioned = set()
    for trial in other_schemes(SenderSetup(NOW, b"c2VjcmV0", None), CALL):
        then, words = trial.setup.scheme, trial.change.change.lower()
        named = {
            "read the signature as": (NOW.signature, NOW.encoding) != (then.signature, then.encoding),
            "as what is signed": NOW.signed_content != then.signed_content,
            "use the secret ": (NOW.secret_encoding, NOW.secret_prefix)
            != (then.secret_encoding, then.secret_prefix),
        }
        for part, differs in named.items():
            assert (part in words) == differs, words
            if differs:
                mentioned.add(part)
    assert len(mentioned) == 3


def test_a_signature_of_the_body_where_headers_are_signed_has_words_of_its_own() -> None:
    over_headers = SignatureScheme.from_document(
        {"signature": "header:X-Signature", "signedContent": "{headers:X-Webhook-*}", "encoding": "hex"}
    )
    changes = {
        trial.change.change
        for trial in other_schemes(SenderSetup(over_headers, b"secret", None), CALL)
        if trial.setup.scheme.signed_content == "{body}"
    }
    assert changes == {"Use a custom scheme that signs the body"}
