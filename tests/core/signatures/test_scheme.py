"""The model and the verifier: what proves a call, what does not, and that every input gets a verdict."""

import base64
import hmac
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from postern import presets
from postern.core.calls.call import Call
from postern.core.signatures.credential import Unproven, VerifiedCall
from postern.core.signatures.freshness import parse_timestamp
from postern.core.signatures.keys.shared import MOST_CANDIDATES
from postern.core.signatures.scheme import FIELDS, InvalidScheme, SignatureScheme, json_schema, problems
from postern.core.signatures.signature import SignatureCredential

NOW = 1_700_000_000
SECRET = b"it is no secret here"
OTHER = b"another one"
BODY = b'{"id":"evt_1", "total": 10.00}\n'

STRIPE = {
    "signature": "header:Stripe-Signature",
    "itemSeparator": ",",
    "keySeparator": "=",
    "signatureKey": "v1",
    "signedContent": "{timestamp}.{body}",
    "timestamp": "item:t",
    "deliveryId": "body:id",
}
GENERIC = {
    "signature": "header:X-Signature",
    "encoding": "auto",
    "signedContent": "{headers:X-Webhook-*}",
    "timestamp": "header:X-Webhook-Timestamp",
    "timestampRequired": False,
    "bodyDigest": "header:X-Webhook-Content-SHA256",
    "deliveryId": "header:X-Webhook-Id",
}


CERTIFICATE = {
    "algorithm": "certificate_sha256",
    "certificateFrom": "header:X-Cert",
    "certificateAddresses": "https://certs.example.com/*",
    "certificateNames": "certs.example.com",
    "signedContent": "{secret}{body}",
}
AT_THE_END = {"signedContent": "{body}{timestamp}", "timestamp": "header:X-Time"}


def scheme(**document: object) -> SignatureScheme:
    return SignatureScheme.from_document(document)


def call(
    headers: Iterable[tuple[str, str | bytes]] = (),
    body: bytes = BODY,
    *,
    at: float = NOW,
    query: bytes = b"",
    path: bytes = b"/webhook/abc",
    method: str = "POST",
) -> Call:
    pairs = tuple(
        (name.lower().encode(), value.encode() if isinstance(value, str) else value)
        for name, value in headers
    )
    return Call(method, path, query, pairs, body, "192.0.2.1", at, "https://hooks.example.com")


def digest(content: bytes, key: bytes = SECRET) -> bytes:
    return hmac.digest(key, content, "sha256")


def hexed(content: bytes, key: bytes = SECRET) -> str:
    return digest(content, key).hex()


def based(content: bytes, key: bytes = SECRET) -> str:
    return base64.b64encode(digest(content, key)).decode()


def code(document: dict[str, object], request: Call, **settings: object) -> str:
    verdict = SignatureCredential(scheme(**document), SECRET, **settings).check(request)  # type: ignore[arg-type]
    return verdict.code if isinstance(verdict, Unproven) else f"verified by {verdict.matched}"


def stripe(at: object = NOW, body: bytes = BODY, key: bytes = SECRET) -> str:
    return f"t={at},v1={hexed(f'{at}.'.encode() + body, key)}"


def generic(headers: dict[str, str], key: bytes = SECRET) -> list[tuple[str, str]]:
    values = [value for _, value in sorted(headers.items())]
    return [*headers.items(), ("X-Signature", hexed("\n".join(values).encode(), key))]


class TestSignatures:
    def test_upper_case_hex_is_the_same_digest(self) -> None:
        assert code({}, call([("X-Signature", hexed(BODY).upper())])) == "verified by main"

    def test_a_base64_signature_may_come_without_its_padding(self) -> None:
        sent = call([("X-Signature", based(BODY).rstrip("="))])
        assert code({"encoding": "base64"}, sent) == "verified by main"

    def test_what_is_not_a_digest_is_malformed(self) -> None:
        texts = [
            "sha256=é".encode(),
            b"\xff" * 64,
            b"zz" * 32,
            b"00" * 31,
            b"0" * 63 + b" ",
            b"0x" + b"0" * 62,
        ]
        for text in (*texts, b" "):
            assert code({}, call([("X-Signature", text)])) in ("signature_malformed", "signature_missing")

    def test_whoever_owns_the_webhook_hears_what_was_sent_in_its_place(self) -> None:
        for sent, why in (
            ("v2=" + "0" * 64, "what was sent in Stripe-Signature has no item v1=…"),
            ("v1=nothing", "is not a SHA-256 digest in hex (64 digits)"),
        ):
            request = call([("Stripe-Signature", f"t={NOW},{sent}")])
            found = SignatureCredential(scheme(**STRIPE), SECRET).check(request)
            assert isinstance(found, Unproven) and found.code == "signature_malformed" and why in found.detail

    def test_base64_padding_is_not_taken_for_a_separator(self) -> None:
        document = {"keySeparator": "=", "signatureKey": "sha256", "encoding": "base64"}
        assert code(document, call([("X-Signature", "sha256=" + based(BODY))])) == "verified by main"

    def test_where_no_key_is_asked_for_any_item_may_be_the_right_one(self) -> None:
        wrong, right = hexed(b""), hexed(BODY)
        for document, value in (
            ({"itemSeparator": ","}, f"{wrong}, {right}"),
            ({"keySeparator": "="}, right),
            ({"itemSeparator": ",", "keySeparator": "="}, f"v1={wrong},{right}"),
            ({"itemSeparator": ",", "keySeparator": "="}, f"{wrong},v1={right}"),
        ):
            assert code(document, call([("X-Signature", value)])) == "verified by main"

    def test_signatures_are_found_in_the_query_too(self) -> None:
        sent = call(query=b"sig=" + hexed(BODY).encode())
        assert code({"signature": "query:sig"}, sent) == "verified by main"

    def test_more_candidates_than_anybody_honest_sends_are_rejected(self) -> None:
        value = ",".join(["v1=" + hexed(b"")] * MOST_CANDIDATES)
        assert code(STRIPE, call([("Stripe-Signature", f"{stripe()},{value}")])) == "signature_malformed"

    def test_text_around_a_signature_has_to_be_there(self) -> None:
        made = hexed(BODY)
        for form, right, wrong in (
            ("*:{signature}", [f"7:{made}", f":{made}"], [made, f"7:8:{made}", f"7{made}"]),
            (":{signature}:", [f":{made}:"], [made, f":{made}", f"{made}:", ":", f"::{made}:"]),
            ("k*/{signature}.", [f"k/{made}.", f"k1/{made}."], [f"1/{made}.", f"k{made}.", f"k/{made}"]),
        ):
            for value in right:
                assert code({"signatureForm": form}, call([("X-Signature", value)])) == "verified by main"
            for value in wrong:
                found = code({"signatureForm": form}, call([("X-Signature", value)]))
                assert found == "signature_malformed", (form, value)
        assert (
            scheme(signatureForm="*:{signature}", signatureKey="v1", keySeparator="=").item("x") == "v1=1:x"
        )

    def test_the_signed_digest_of_a_body_binds_it(self) -> None:
        document = {
            "signedContent": "{method} {header:Content-Digest}",
            "bodyDigest": "header:content-digest",
        }
        assert scheme(**document).signs_body
        assert not scheme(**{**document, "bodyDigest": ["header:Content-Digest", "header:Other"]}).signs_body
        assert not scheme(signedContent="{headers:X-*}", bodyDigest="header:X-Digest").signs_body
        plain = base64.b64encode(sha256(BODY).digest()).decode()
        for value, expected in (
            (f"sha-256=:{plain}:", "verified by main"),
            (f"sha-512=:AAAA:,SHA-256=:{plain}:", "verified by main"),
            (f"SHA-256={plain}", "verified by main"),
            (sha256(BODY).hexdigest(), "verified by main"),
            (f"sha-256=:{plain[:-2]}A=:", "signature_mismatch"),
            ("sha-512=:AAAA:", "signature_malformed"),
            (f"xsha-256=:{plain}:", "signature_malformed"),
            ("", "signature_malformed"),
        ):
            signed = [("Content-Digest", value), ("X-Signature", hexed(f"POST {value}".encode()))]
            assert code(document, call(signed)) == expected, value

    def test_fields_of_a_form_are_signed_and_another_body_is_none(self) -> None:
        form, signed = ("Content-Type", "application/x-www-form-urlencoded"), ("X-Signature", hexed(b"a1b2"))
        document = {"signedContent": "{form}"}
        assert code(document, call([form, signed], b"b=2&a=1")) == "verified by main"
        assert code(document, call([form, signed], b"b=2&a=3")) == "signature_mismatch"
        empty = ("X-Signature", hexed(b""))
        assert code(document, call([empty], b"{}")) == "signature_malformed"


class TestSecrets:
    def test_the_main_secret_is_named_where_both_match(self) -> None:
        headers = [("X-Signature", hexed(BODY, OTHER)), ("X-Signature", hexed(BODY))]
        verdict = SignatureCredential(scheme(), SECRET, OTHER).check(call(headers))
        assert isinstance(verdict, VerifiedCall) and verdict.matched == "main"

    def test_a_base64_secret_is_decoded_after_its_prefix(self) -> None:
        secret = b"whsec_" + base64.b64encode(SECRET)
        document = {"secretEncoding": "base64", "secretPrefix": "whsec_"}
        sent = call([("X-Signature", hexed(BODY))])
        for pasted in (secret, secret.removeprefix(b"whsec_"), secret.rstrip(b"="), secret + b"\n"):
            assert isinstance(SignatureCredential(scheme(**document), pasted).check(sent), VerifiedCall)

    def test_a_plain_secret_is_used_byte_for_byte(self) -> None:
        sent = call([("X-Signature", hexed(BODY, b"whsec_abc "))])
        assert isinstance(SignatureCredential(scheme(), b"whsec_abc ").check(sent), VerifiedCall)

    @pytest.mark.parametrize(
        ("document", "secret"),
        [
            ({}, b""),
            ({}, b"\0\0"),
            ({"secretPrefix": "whsec_"}, b"whsec_"),
            ({"secretEncoding": "hex"}, b"abc"),
            ({"secretEncoding": "base64"}, b"a*c="),
        ],
    )
    def test_a_secret_that_cannot_be_a_key_is_a_mistake_in_the_configuration(
        self, document: dict[str, str], secret: bytes
    ) -> None:
        with pytest.raises(ValueError, match="the secret is"):
            SignatureCredential(scheme(**document), secret)
        with pytest.raises(ValueError, match="the secret is"):
            SignatureCredential(scheme(), SECRET, b"")


class TestTimestamps:
    @pytest.mark.parametrize(
        ("age", "expected"),
        [
            (0, "verified by main"),
            (300, "verified by main"),
            (301, "timestamp_expired"),
            (-300, "verified by main"),
            (-301, "timestamp_in_future"),
        ],
    )
    def test_the_window_lies_on_both_sides_of_the_time_of_receipt(self, age: int, expected: str) -> None:
        assert code(STRIPE, call([("Stripe-Signature", stripe(NOW))], at=NOW + age + 0.4)) == expected

    def test_a_webhook_may_have_its_own_tolerance(self) -> None:
        old = call([("Stripe-Signature", stripe(NOW - 1000))])
        assert code(STRIPE, old, tolerance_seconds=1000) == "verified by main"
        assert code(STRIPE, old, tolerance_seconds=0) == "verified by main"
        assert code(STRIPE, old) == "timestamp_expired"

    def test_a_wrong_signature_is_a_mismatch_however_old(self) -> None:
        assert code(STRIPE, call([("Stripe-Signature", stripe(1, key=OTHER))])) == "signature_mismatch"

    @pytest.mark.parametrize("text", ["soon", "-1", "1_0", "1e9", "١٧", "9" * 20, "1700000000.0", "+1"])
    def test_a_timestamp_in_another_form_is_malformed_even_if_signed(self, text: str) -> None:
        assert code(STRIPE, call([("Stripe-Signature", stripe(text))])) == "timestamp_malformed"

    def test_two_signature_headers_of_the_same_time_are_fine_and_of_two_times_are_not(self) -> None:
        wrong = hexed(b"")
        same = [("Stripe-Signature", f"t={NOW},v1={wrong}"), ("Stripe-Signature", stripe())]
        other = [("Stripe-Signature", f"t={NOW - 1},v1={wrong}"), ("Stripe-Signature", stripe())]
        assert code(STRIPE, call(same)) == "verified by main"
        assert code(STRIPE, call(other)) == "timestamp_malformed"

    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ("unix_ms", "1700000000000"),
            ("iso8601", "2023-11-14T22:13:20Z"),
            ("iso8601", "2023-11-14T22:13:20.123456789Z"),
            ("iso8601", "2023-11-15T00:13:20+02:00"),
            ("http_date", "Tue, 14 Nov 2023 22:13:20 GMT"),
        ],
    )
    def test_each_form_is_read_and_signed_verbatim(self, form: str, text: str) -> None:
        document = {**AT_THE_END, "timestampFormat": form, "toleranceSeconds": 5}
        headers = [("X-Time", text), ("X-Signature", hexed(BODY + text.encode()))]
        assert code(document, call(headers)) == "verified by main"
        assert code(document, call(headers, at=NOW + 7)) == "timestamp_expired"
        wrong = code({**document, "timestampFormat": "unix"}, call(headers))
        assert wrong in ("timestamp_malformed", "timestamp_in_future")

    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ("iso8601", "2023-13-14T22:13:20Z"),
            ("iso8601", "2023-11-14"),
            ("http_date", "Tue, 31 Feb 2023 22:13:20 GMT"),
            ("http_date", "now"),
        ],
    )
    def test_a_date_that_is_none_is_malformed(self, form: str, text: str) -> None:
        sent = call([("X-Time", text), ("X-Signature", hexed(BODY + text.encode()))])
        assert code({**AT_THE_END, "timestampFormat": form}, sent) == "timestamp_malformed"

    @pytest.mark.parametrize("month", range(1, 13))
    def test_a_date_of_http_is_read_in_every_month(self, month: int) -> None:
        then = datetime(2026, month, 15, 12, 30, 5, tzinfo=UTC)
        text = then.strftime("%a, %d %b %Y %H:%M:%S GMT").encode()
        assert parse_timestamp(text, "http_date") == then.timestamp()

    def test_the_first_name_that_is_present_wins(self) -> None:
        names = ["header:webhook-timestamp", "header:svix-timestamp"]
        document: dict[str, object] = {"signedContent": "{timestamp}.{body}", "timestamp": names}
        signed = ("X-Signature", hexed(b"%d." % NOW + BODY))
        svix, other = ("svix-timestamp", str(NOW)), ("webhook-timestamp", str(NOW + 1))
        assert code(document, call([svix, signed])) == "verified by main"
        assert code(document, call([svix, other, signed])) == "signature_mismatch"
        assert code(document, call([svix, svix, signed])) == "timestamp_malformed"


class TestWhatIsSigned:
    def test_the_id_is_needed_once_where_it_is_signed(self) -> None:
        document = {"deliveryId": "header:X-Id", "signedContent": "{id}.{body}"}
        one, two = ("X-Id", "a"), ("X-Id", "b")
        signed, without = ("X-Signature", hexed(b"a." + BODY)), ("X-Signature", hexed(b"." + BODY))
        assert code(document, call([one, signed])) == "verified by main"
        assert code(document, call([without])) == "signature_malformed"
        assert code(document, call([one, two, signed])) == "signature_malformed"

    def test_the_body_counts_as_signed_only_where_its_digest_is_required(self) -> None:
        assert not SignatureCredential(scheme(**GENERIC), SECRET).body_is_signed
        strict = SignatureCredential(scheme(**GENERIC), SECRET, require_timestamp_and_digest=True)
        assert strict.body_is_signed
        assert SignatureCredential(scheme(), SECRET).body_is_signed


class TestDeliveryIds:
    def found(self, document: dict[str, object], request: Call) -> tuple[bytes | None, bool]:
        verdict = SignatureCredential(scheme(**document), SECRET).check(request)
        assert isinstance(verdict, VerifiedCall)
        return verdict.delivery_id, verdict.delivery_id_signed

    def test_an_id_in_the_signed_body_is_signed(self) -> None:
        assert self.found(STRIPE, call([("Stripe-Signature", stripe())])) == (b"evt_1", True)

    def test_an_id_in_a_header_beside_the_signature_is_not(self) -> None:
        document: dict[str, object] = {"deliveryId": ["header:X-Id", "header:X-Old-Id"]}
        signed = ("X-Signature", hexed(BODY))
        assert self.found(document, call([signed, ("X-Id", "7")])) == (b"7", False)
        assert self.found(document, call([signed, ("X-Old-Id", "8")])) == (b"8", False)
        assert self.found(document, call([signed])) == (None, False)

    def test_an_id_in_the_template_or_under_a_signed_glob_is_signed(self) -> None:
        document: dict[str, object] = {"deliveryId": "header:X-Id", "signedContent": "{id}.{body}"}
        sent = call([("X-Id", "7"), ("X-Signature", hexed(b"7." + BODY))])
        assert self.found(document, sent) == (b"7", True)
        assert self.found(dict(GENERIC), call(generic({"X-Webhook-Id": "9"}))) == (b"9", True)

    def test_an_id_in_a_body_that_is_not_signed_is_not(self) -> None:
        document = {**GENERIC, "deliveryId": "body:id"}
        assert self.found(document, call(generic({"X-Webhook-A": "1"}))) == (b"evt_1", False)


class TestDocuments:
    def test_the_schema_takes_what_a_scheme_is_and_names_every_member_with_its_meaning(self) -> None:
        schema = json_schema()
        assert tuple(schema["properties"]) == FIELDS
        assert all(len(one["description"]) > 20 for one in schema["properties"].values())
        takes = Draft202012Validator(schema)
        for preset in presets.load().values():
            assert takes.is_valid(preset.scheme.to_document()), preset.name
        assert takes.is_valid({**STRIPE, "itemSeparator": "comma"})
        for wrong in (
            {"encodings": "hex"},
            {"encoding": "rot13"},
            {"signature": 5},
            {"keySeparator": "dash"},
        ):
            assert not takes.is_valid(wrong) and problems(wrong), wrong

    def test_a_document_and_its_scheme_say_the_same(self) -> None:
        document = scheme(**STRIPE).to_document()
        assert tuple(document) == FIELDS
        assert SignatureScheme.from_document(document).to_document() == document
        assert document["signature"] == ["header:Stripe-Signature"] and document["toleranceSeconds"] == 300

    def test_an_empty_text_or_list_means_not_used(self) -> None:
        texts = dict.fromkeys(("itemSeparator", "signatureKey", "deliveryId", "encoding", "urlUnescape"), "")
        assert scheme(**texts, keySeparator=None, timestamp=[], bodyDigest=[""]) == SignatureScheme()

    @pytest.mark.parametrize(
        ("word", "character"), [("none", ""), ("space", " "), ("comma", ","), ("semicolon", ";"), (";", ";")]
    )
    def test_separators_are_kept_as_the_character(self, word: str, character: str) -> None:
        assert scheme(itemSeparator=word).item_separator == character

    def test_a_timestamp_brings_a_tolerance_unless_one_is_given(self) -> None:
        assert scheme(timestamp="header:X-T").tolerance_seconds == 300
        assert scheme(timestamp="header:X-T", toleranceSeconds=0).tolerance_seconds == 0
        assert scheme().tolerance_seconds == 0

    @pytest.mark.parametrize(
        ("document", "field"),
        [
            ({"signature": []}, "signature"),
            ({"signature": "X-Signature"}, "signature"),
            ({"signature": "header:*"}, "signature"),
            ({"signature": "header:X-*-Y"}, "signature"),
            ({"signature": "header:X Y"}, "signature"),
            ({"signature": "item:v1"}, "signature"),
            ({"signature": ["header:A"] * 9}, "signature"),
            ({"signature": 5}, "signature"),
            ({"deliveryId": "body:a..b"}, "deliveryId"),
            ({"itemSeparator": "|"}, "itemSeparator"),
            ({"itemSeparator": ["a"]}, "itemSeparator"),
            ({"signatureKey": "v1"}, "keySeparator"),
            ({"itemSeparator": ",", "keySeparator": ","}, "keySeparator"),
            ({"timestamp": "item:t"}, "keySeparator"),
            ({"certificateFrom": "header:X-Cert"}, "certificateFrom"),
            ({**CERTIFICATE, "encoding": "auto"}, "encoding"),
            ({"signatureForm": "v1"}, "signatureForm"),
            ({"signatureForm": "*{signature}"}, "signatureForm"),
            ({"signatureForm": "{signature}*"}, "signatureForm"),
            ({"signatureForm": "*:*:{signature}"}, "signatureForm"),
            ({"signatureForm": "{signature}{signature}"}, "signatureForm"),
            ({"algorithm": "jwt_hs256", "signatureForm": "x{signature}"}, "signedContent"),
            ({"encoding": "base32"}, "encoding"),
            ({"encoding": ["hex"]}, "encoding"),
            ({"signedContent": ""}, "signedContent"),
            ({"signedContent": "just text"}, "signedContent"),
            ({"signedContent": "{bodies}"}, "signedContent"),
            ({"signedContent": "{body"}, "signedContent"),
            ({"signedContent": "{header:X-*}"}, "signedContent"),
            ({"signedContent": "{headers:*}"}, "signedContent"),
            ({"signedContent": "{body}" * 33}, "signedContent"),
            ({"signedContent": "{body}" + "x" * 1000}, "signedContent"),
            ({"signedContent": "{body}\ud800"}, "signedContent"),
            ({"signedContent": "{timestamp}{body}"}, "timestamp"),
            ({"signedContent": "{id}{body}"}, "deliveryId"),
            ({**AT_THE_END, "timestampRequired": False}, "timestampRequired"),
            ({"toleranceSeconds": -1}, "toleranceSeconds"),
            ({"toleranceSeconds": True}, "toleranceSeconds"),
            ({"timestampRequired": "yes"}, "timestampRequired"),
            ({"secretEncoding": "rot13"}, "secretEncoding"),
            ({"secretPrefix": "x" * 65}, "secretPrefix"),
            ({"urlUnescape": "%"}, "urlUnescape"),
            ({"handshake": "hands"}, "handshake"),
            ({"algorithm": "sha1"}, "algorithm"),
        ],
    )
    def test_what_is_wrong_is_reported_at_the_field(self, document: dict[str, object], field: str) -> None:
        found = problems(document)
        assert [error.field for error in found] == [field] and found[0].message
        with pytest.raises(InvalidScheme):
            SignatureScheme.from_document(document)

    def test_a_scheme_knows_whether_it_signs_the_body(self) -> None:
        assert scheme(**STRIPE).signs_body
        assert not scheme(signedContent="{header:X-A}").signs_body


anything = st.one_of(
    st.binary(max_size=80),
    st.sampled_from([b"t=1700000000,v1=00", b"v1=" + b"0" * 64, b"\xff", b"t=1,t=2", b"1700000000", b"[{]"]),
)
places = st.sampled_from(["header:x-signature", "header:x-*", "query:q", "body:a.0.b"])
references = places | st.just("item:t")
contents = [
    "body",
    "timestamp",
    "id",
    "url",
    "path",
    "method",
    "headers:x-*",
    "header:x-a",
    "query:q",
    "bodyfield:a.b",
    "body_sha256",
]
documents = st.fixed_dictionaries(
    {"signature": st.lists(places, min_size=1, max_size=3)},
    optional={
        "itemSeparator": st.sampled_from(["", ",", ";", " "]),
        "keySeparator": st.sampled_from(["=", ","]),
        "signatureKey": st.sampled_from(["", "v1"]),
        "encoding": st.sampled_from(["hex", "base64", "base64url", "auto"]),
        "signedContent": st.lists(st.sampled_from([f"{{{one}}}" for one in contents]), min_size=1).map(
            "".join
        ),
        "timestamp": st.lists(references, max_size=2),
        "timestampFormat": st.sampled_from(["unix", "unix_ms", "iso8601", "http_date"]),
        "deliveryId": st.lists(references, max_size=2),
        "bodyDigest": st.lists(places, max_size=2),
        "urlUnescape": st.just(":/?@"),
    },
)


@given(
    document=documents,
    headers=st.lists(
        st.tuples(st.sampled_from([b"x-signature", b"x-a", b"x-time", b"x-id"]), anything), max_size=5
    ),
    body=st.one_of(anything, st.just(b'{"a":{"b":1}}'), st.just(b"[" * 5000)),
    query=anything,
    path=anything,
    method=st.text(max_size=5),
    at=st.floats(min_value=0, max_value=1e11),
)
def test_any_bytes_give_a_verdict(
    document: dict[str, object],
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    query: bytes,
    path: bytes,
    method: str,
    at: float,
) -> None:
    if problems(document):
        return
    request = Call(method, path, query, tuple(headers), body, "", at, "https://hooks.example.com")
    verdict = SignatureCredential(scheme(**document), SECRET, OTHER).check(request)
    # Nobody here knows the key, so nothing may pass.
    assert isinstance(verdict, Unproven)


@given(
    document=st.dictionaries(
        st.sampled_from([*FIELDS, "other"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.text(max_size=20),
            st.lists(st.one_of(st.integers(), st.text(max_size=9)), max_size=3),
        ),
    )
)
def test_any_document_is_a_scheme_or_a_list_of_problems(document: dict[str, object]) -> None:
    if not problems(document):
        kept = SignatureScheme.from_document(document)
        assert SignatureScheme.from_document(kept.to_document()) == kept


@given(
    body=st.binary(max_size=200), position=st.integers(min_value=0), bit=st.integers(min_value=0, max_value=7)
)
def test_one_flipped_bit_anywhere_in_the_body_is_rejected(body: bytes, position: int, bit: int) -> None:
    signed = call([("X-Signature", hexed(body))], body)
    assert code({}, signed) == "verified by main"
    if body:
        altered = bytearray(body)
        altered[position % len(body)] ^= 1 << bit
        assert code({}, call([("X-Signature", hexed(body))], bytes(altered))) == "signature_mismatch"


def test_an_item_without_a_value_is_none() -> None:
    sent = call([("Stripe-Signature", f"t,v1={hexed(BODY)}")])
    assert code(STRIPE, sent) == "timestamp_missing"


def test_a_signature_in_the_query_is_stored_so_that_it_can_be_checked_again() -> None:
    in_query = SignatureCredential(scheme(signature="query:sig", signedContent="{body}"), SECRET)
    in_header = SignatureCredential(scheme(signature="header:X-Signature", signedContent="{body}"), SECRET)
    assert (in_query.signature_parameters, in_query.signature_headers) == ({b"sig"}, frozenset())
    assert (in_header.signature_parameters, in_header.signature_headers) == (frozenset(), {b"x-signature"})
