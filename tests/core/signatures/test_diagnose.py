"""The tester: it says why a call does not verify, and offers only changes with which it does."""

import base64
import hashlib
import hmac
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern import presets
from postern.core.calls.call import Call
from postern.core.signatures.diagnosis.diagnose import (
    EXPLANATIONS,
    MOST_BYTES,
    MOST_TRIALS,
    Diagnosis,
    diagnose,
    resembles,
    sentence,
)
from postern.core.signatures.diagnosis.guesses import other_schemes
from postern.core.signatures.diagnosis.sightings import ids, moments, shapes
from postern.core.signatures.diagnosis.variants import SenderSetup
from postern.core.signatures.keys.public import KeyOfPair, new_private_key, read_key
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from support import calls

NOW = 1_700_000_000
SECRET = b"it is no secret here"
BODY = b'{"id":"evt_1","text":"gr\xc3\xbc\xc3\x9fe","total":10}'
URL = b"https://hooks.example.com/webhook/abc"
PASTED = b"whsec_" + base64.b64encode(SECRET)
SPACED = BODY.replace(b",", b", ").replace(b":", b": ")
COMPACT = b'{"b":"/","a":1}'
KNOWN = presets.load()
SHOPIFY, STRIPE, GITHUB, SQUARE, GENERIC = (
    KNOWN[name].scheme for name in ("shopify", "stripe", "github", "square", "generic")
)
STANDARD = KNOWN["standardwebhooks"].scheme


def call(headers: dict[str, str], body: bytes = BODY, query: bytes = b"") -> Call:
    return calls.call(body, *headers.items(), query=query)


def to_shopify(signature: str, body: bytes = BODY) -> Call:
    return call({"X-Shopify-Hmac-Sha256": signature}, body)


def to_square(signed: bytes, query: bytes = b"", **headers: str) -> Call:
    return call({"x-square-hmacsha256-signature": based(signed), **headers}, query=query)


def in_ascii(body: bytes) -> bytes:
    return body.replace("ü".encode(), b"\\u00fc").replace("ß".encode(), b"\\u00df")


def digest(content: bytes, key: bytes = SECRET) -> bytes:
    return hmac.digest(key, content, "sha256")


def based(content: bytes, key: bytes = SECRET) -> str:
    return base64.b64encode(digest(content, key)).decode()


def stripe(body: bytes = BODY, at: int = NOW, key: bytes = SECRET) -> dict[str, str]:
    return {"Stripe-Signature": f"t={at},v1={digest(b'%d.' % at + body, key).hex()}"}


def standard(body: bytes = BODY, key: bytes = SECRET) -> dict[str, str]:
    return {
        "webhook-id": "m_1",
        "webhook-timestamp": str(NOW),
        "webhook-signature": f"v1,{based(b'm_1.%d.' % NOW + body, key)}",
    }


UNKNOWN = call({"X-Signature": "5f1d" * 16, "X-Timestamp": str(NOW)}, b"{}")


def diagnosed(
    scheme: SignatureScheme,
    request: Call,
    secret: bytes = SECRET,
    second: bytes | None = None,
    at: float | None = None,
    **settings: object,
) -> Diagnosis:
    return diagnose(SenderSetup(scheme, secret, second, **settings), request, at, KNOWN)  # type: ignore[arg-type]


def patches(diagnosis: Diagnosis) -> list[dict[str, object] | None]:
    return [change.patch for change in diagnosis.would_verify_if]


class TestVerdicts:
    def test_a_good_call_is_verified_and_says_with_which_secret(self) -> None:
        found = diagnosed(STRIPE, call(stripe(key=b"new")), SECRET, b"new")
        assert (found.verified, found.matched, found.code) == (True, "second", None)
        assert found.would_verify_if == ()
        assert all(ok for name, ok, _ in found.steps if "main" not in name)

    def test_the_signed_bytes_and_the_expected_signature_are_shown(self) -> None:
        found = diagnosed(STRIPE, call({"Stripe-Signature": f"t={NOW},v1={'0' * 64}"}))
        assert found.signed_bytes == b"%d." % NOW + BODY
        assert found.expected == (("main", "v1=" + digest(found.signed_bytes).hex()),)
        assert found.received == (f"t={NOW},v1={'0' * 64}",)

    def test_every_code_has_a_sentence(self) -> None:
        assert set(EXPLANATIONS) == {f"signature_{word}" for word in ("missing", "malformed", "mismatch")} | {
            f"timestamp_{word}" for word in ("missing", "malformed", "expired", "in_future")
        } | {"signing_keys_unavailable"}

    def test_a_sentence_that_begins_with_a_host_keeps_its_spelling(self) -> None:
        assert sentence("shop.example.com has no address") == "shop.example.com has no address."
        assert sentence("no such host.") == "No such host."

    def test_no_secret_is_in_anything_it_says(self) -> None:
        found = diagnosed(STANDARD, call(standard(key=PASTED)), PASTED, b"a second secret")
        assert found.would_verify_if
        for secret in (SECRET, base64.b64encode(SECRET), b"a second secret"):
            assert secret not in repr(found).encode()

    def test_a_hopeless_case_says_so(self) -> None:
        found = diagnosed(SHOPIFY, to_shopify(based(BODY, b"another")))
        assert found.code == "signature_mismatch" and not found.would_verify_if
        assert "the secret is another one" in found.explanation

    def test_a_right_signature_over_the_digest_of_another_body_is_reported(self) -> None:
        text = "0" * 64
        headers = {"X-Webhook-Content-SHA256": text, "X-Signature": digest(text.encode()).hex()}
        found = diagnosed(GENERIC, call(headers))
        assert found.code == "signature_mismatch"
        assert found.explanation.startswith("The signature is right, and the body")

    @pytest.mark.parametrize(("algorithm", "name"), [("sha384", "SHA-384"), ("md5", "MD5")])
    def test_another_digest_is_named_where_a_header_is_about_one(self, algorithm: str, name: str) -> None:
        text = hmac.digest(SECRET, BODY, algorithm).hex()
        for header in ("X-Acme-Signature", "X-Acme-Hmac", "X-Acme-Hash", "X-Acme-Digest"):
            assert f"as long as {name} makes" in diagnosed(GITHUB, call({header: f"v1={text}"})).explanation
        assert name not in diagnosed(GITHUB, call({"X-Acme-Order": text})).explanation

    def test_the_time_is_a_step_of_its_own_where_it_is_checked(self) -> None:
        step = "check time and body digest"
        found = diagnosed(STRIPE, call(stripe()))
        assert found.steps[-1] == (step, True, "within 300 s of the time of receipt")
        late = diagnosed(STRIPE, call(stripe(at=NOW - 1000)))
        assert late.steps[-1][:2] == (step, False)
        for ageless in (
            diagnosed(STRIPE, call(stripe()), tolerance_seconds=0),
            diagnosed(STRIPE, call(stripe()), b"x"),
        ):
            assert step not in [name for name, _, _ in ageless.steps]

    @pytest.mark.parametrize("digest_name", ["sha1", "sha512"])
    def test_another_algorithm_is_found(self, digest_name: str) -> None:
        text = f"{digest_name}=" + hmac.digest(SECRET, BODY, digest_name).hex()
        found = diagnosed(GITHUB, call({"X-Acme-Signature": text}))
        assert found.code == "signature_missing"
        assert [patch["scheme"]["algorithm"] for patch in patches(found) if patch] == [f"hmac_{digest_name}"]
        assert f"HMAC-{digest_name.upper()}" in found.would_verify_if[0].change

    def test_of_a_public_key_its_other_algorithms_are_tried_and_no_signature_is_expected(self) -> None:
        pair = new_private_key("rsa_sha256").encode()
        made = KeyOfPair("rsa_sha512", *read_key(pair)).sign(BODY)
        document = {"signature": "header:X-Sig", "encoding": "base64", "algorithm": "rsa_sha256"}
        scheme = SignatureScheme.from_document(document)
        found = diagnosed(scheme, call({"X-Sig": base64.b64encode(made).decode()}), pair)
        assert found.code == "signature_mismatch" and found.expected == ()
        assert "compare with the main key" in [name for name, _, _ in found.steps]
        assert [patch["scheme"]["algorithm"] for patch in patches(found) if patch] == ["rsa_sha512"]


class TestSecrets:
    def test_a_secret_that_should_not_be_decoded(self) -> None:
        found = diagnosed(STANDARD, call(standard(key=PASTED)), PASTED)
        assert found.code == "signature_mismatch"
        schemes: list[Any] = [patch["scheme"] for patch in patches(found) if patch and patch["scheme"]]
        assert any(scheme["secretEncoding"] == "utf8" for scheme in schemes)

    def test_a_secret_that_should_be_decoded(self) -> None:
        found = diagnosed(SHOPIFY, to_shopify(based(BODY)), SECRET.hex().encode())
        assert [change.change for change in found.would_verify_if] == ["Use the secret decoded from hex"]

    def test_a_prefix_that_is_no_part_of_the_secret(self) -> None:
        found = diagnosed(SHOPIFY, to_shopify(based(BODY)), b"acme_" + SECRET.hex().encode())
        (change,) = found.would_verify_if
        assert change.change == "Use the secret decoded from hex, after taking acme_ off its front"
        assert change.patch is not None and change.patch["scheme"]["secretPrefix"] == "acme_"
        plain = diagnosed(SHOPIFY, to_shopify(based(BODY)), b"acme_" + SECRET)
        assert plain.would_verify_if[0].change.startswith("Use the secret as the plain text it is, after")

    def test_one_key_is_offered_once_and_never_the_one_that_is_used(self) -> None:
        """Plain ASCII is the same key whether its accents are taken apart or not, as there are none."""
        one_way = diagnosed(STRIPE, call({"Stripe-Signature": f"t={NOW},v1={digest(BODY).hex()}"}))
        (change,) = one_way.would_verify_if
        assert change.change.endswith("take {body} as what is signed")
        pasted = diagnosed(STANDARD, call(standard(key=PASTED)), PASTED).would_verify_if
        changes = ["Choose BigCommerce as the sender", "Use the secret as the plain text it is"]
        assert [one.change for one in pasted] == changes
        apart = unicodedata.normalize("NFKD", "schlüssel").encode()
        found = diagnosed(SHOPIFY, to_shopify(based(BODY, apart)), "schlüssel".encode())
        (change,) = found.would_verify_if
        assert change.change == "Use the secret with its accents taken apart (NFKD)"

    def test_blanks_around_a_pasted_secret(self) -> None:
        (change, *_) = diagnosed(SHOPIFY, to_shopify(based(BODY)), SECRET + b"\n").would_verify_if
        assert "without blanks" in change.change and change.patch is None
        second = diagnosed(SHOPIFY, to_shopify(based(BODY)), b"another", b'"' + SECRET + b'"')
        assert "without blanks or quotes" in second.would_verify_if[0].change

    def test_a_secret_that_cannot_be_decoded_is_reported_and_still_tried_otherwise(self) -> None:
        found = diagnosed(STANDARD, call(standard(key=b"not base64!")), b"not base64!")
        assert not found.verified and "not base64" in found.explanation and found.would_verify_if


class TestTime:
    def test_an_old_call_verifies_with_a_longer_window_or_at_its_own_time(self) -> None:
        old = call(stripe(at=NOW - 1000))
        found = diagnosed(STRIPE, old)
        assert found.code == "timestamp_expired" and patches(found) == [{"toleranceSeconds": 1001}]
        assert diagnosed(STRIPE, old, tolerance_seconds=1001).verified
        assert diagnosed(STRIPE, old, at=NOW - 990).verified

    def test_a_time_that_no_window_reaches_is_the_senders_to_change(self) -> None:
        assert patches(diagnosed(STRIPE, call(stripe(at=1)))) == [None]

    def test_milliseconds_are_distinguished_from_seconds(self) -> None:
        request = call({"Stripe-Signature": f"t={NOW}000,v1={digest(b'%d000.' % NOW + BODY).hex()}"})
        found = diagnosed(STRIPE, request)
        patch: Any = patches(found)[0]
        assert (found.code, patch["scheme"]["timestampFormat"]) == ("timestamp_malformed", "unix_ms")


class TestBodies:
    @pytest.mark.parametrize(
        ("sent", "signed", "words"),
        [
            (BODY + b"\r\n", BODY, "without the line break at its end"),
            (b"name=value_\r\n", b"name=value_", "without the line break at its end"),
            (BODY, BODY + b"\n", "with a line feed at its end"),
            (BODY, BODY + b"\r\n", "with a line break (CR LF) at its end"),
            (b"  {} ", b"{}", "without blanks around it"),
            (b"{\r\n}", b"{\n}", "with line feeds (LF) for line breaks"),
            (b"{\n}", b"{\r\n}", "with CR LF for line breaks"),
            (b"\xef\xbb\xbf" + BODY, BODY, "without the byte order mark"),
            (BODY, b"", "left out altogether"),
            (COMPACT.replace(b":", b" : "), COMPACT, "written compactly:"),
            (BODY, in_ascii(BODY), "written compactly, in ASCII"),
            (BODY, SPACED, "written with a blank after commas and colons:"),
            (BODY, in_ascii(SPACED), "and colons, in ASCII"),
            (COMPACT, b'{\n  "b": "/",\n  "a": 1\n}', "indented by 2"),
            (COMPACT, b'{\n    "b": "/",\n    "a": 1\n}', "indented by 4"),
            (COMPACT, b'{"a":1,"b":"/"}', "written compactly, keys sorted"),
            (COMPACT, b'{"b":"\\/","a":1}', "written compactly, slashes escaped"),
        ],
    )
    def test_a_body_that_was_written_anew_on_its_way_is_recognised(
        self, sent: bytes, signed: bytes, words: str
    ) -> None:
        (change, *_) = diagnosed(SHOPIFY, to_shopify(based(signed), sent)).would_verify_if
        assert words in change.explanation and change.patch is None


class TestUrls:
    @pytest.mark.parametrize(
        "url",
        [
            "http://hooks.example.com/webhook/abc",
            "https://hooks.example.com/webhook/abc/",
            "https://shop.example.org/webhook/abc",
        ],
    )
    def test_the_url_that_was_signed_is_found(self, url: str) -> None:
        request = to_square(url.encode() + BODY, **{"X-Forwarded-Host": "shop.example.org"})
        assert patches(diagnosed(SQUARE, request)) == [{"publicUrl": url}]
        assert diagnosed(SQUARE, request, public_url=url).verified

    def test_where_the_url_is_signed_it_is_named_before_the_secret_is_doubted(self) -> None:
        elsewhere = b"https://shop.example.org/hooks" + BODY
        found = diagnosed(SQUARE, to_square(elsewhere))
        assert f"where that is not {URL.decode()}, set the public URL" in found.explanation
        unlike = diagnosed(SHOPIFY, to_shopify(based(elsewhere)))
        assert "public URL" not in unlike.explanation

    def test_places_and_forms_are_told_in_words(self) -> None:
        """Not in the notation of a scheme, which nobody who chose a sender from the list has seen."""
        bare = diagnosed(STRIPE, call({"Stripe-Signature": f"v1={digest(BODY).hex()}"}))
        assert "No timestamp was sent in the part t of the signature." in bare.explanation
        late = diagnosed(STRIPE, call(stripe(at=NOW * 1000)))
        assert "The timestamp is not written as seconds since 1970." in late.explanation
        assert late.would_verify_if[0].change == "Read the timestamp as milliseconds since 1970"
        nothing = diagnosed(GENERIC, call({"X-Signature": digest(b"").hex()}))
        assert "No header x-webhook-* was sent, so nothing of this call is signed." in nothing.explanation
        linear = diagnosed(KNOWN["linear"].scheme, call({"Linear-Signature": digest(BODY).hex()}))
        assert "No timestamp was sent in the body's field webhookTimestamp." in linear.explanation

    def test_a_port_that_the_sender_does_not_know_is_left_out(self) -> None:
        request = to_square(URL + BODY)
        request.base_url = "http://hooks.example.com:8080"
        assert patches(diagnosed(SQUARE, request)) == [{"publicUrl": URL.decode()}]

    def test_a_public_url_that_cannot_be_read_hides_no_other(self) -> None:
        found = diagnosed(SQUARE, to_square(URL + BODY), public_url="https://[no")
        assert patches(found) == [{"publicUrl": URL.decode()}]

    def test_a_query_string_that_was_not_signed_is_the_senders_to_change(self) -> None:
        found = diagnosed(SQUARE, to_square(URL + BODY, b"a=1"))
        assert "query string" in found.would_verify_if[0].change


class TestOtherSchemes:
    def test_another_preset_is_recognised(self) -> None:
        found = diagnosed(GENERIC, call(stripe()))
        assert {"provider": "stripe", "scheme": None} in patches(found)
        # A window that was set for the other sender goes with it.
        found = diagnosed(GENERIC, call(stripe()), tolerance_seconds=7)
        assert {"provider": "stripe", "scheme": None, "toleranceSeconds": None} in patches(found)

    def test_a_preset_that_would_verify_only_with_a_longer_window_says_so(self) -> None:
        found = diagnosed(GENERIC, call(stripe(at=NOW - 1000)))
        assert "1000 s before" in found.would_verify_if[0].explanation

    def test_a_body_signature_under_the_generic_scheme_is_named(self) -> None:
        found = diagnosed(GENERIC, call({"X-Signature": based(BODY), "X-Webhook-Id": "1"}))
        assert any("body signature" in change.explanation for change in found.would_verify_if)

    @pytest.mark.parametrize(
        ("joined", "words"),
        [
            (b"12", "sorted by name with nothing"), (b"21", "in the order they were sent with nothing"),
            (b"2\n1", "sent with a line feed"), (b"1,2", "a comma"), (b"1.2", "a dot"), (b"1&2", "an ampersand"),
            (b"1|2", "a bar"), (b"2 1", "sent with a blank"),
        ],
    )  # fmt: skip
    def test_headers_joined_in_another_way_are_recognised(self, joined: bytes, words: str) -> None:
        request = call({"X-Webhook-B": "2", "X-Webhook-A": "1", "X-Signature": digest(joined).hex()})
        assert words in diagnosed(GENERIC, request).would_verify_if[0].explanation

    @pytest.mark.parametrize(
        ("headers", "expected"),
        [
            (
                {"X-Acme-Sig": "sha256=" + digest(BODY).hex()},
                {"signature": ["header:x-acme-sig"], "keySeparator": "=", "signatureKey": "sha256"},
            ),
            ({"X-Acme-Sig": based(BODY)}, {"encoding": "base64", "signedContent": "{body}"}),
            (
                {"X-Acme-Sig": digest(b"%d:" % NOW + BODY).hex(), "X-Acme-Timestamp": str(NOW)},
                {"signedContent": "{timestamp}:{body}", "timestamp": ["header:x-acme-timestamp"], "toleranceSeconds": 300},
            ),
            (
                {"X-Acme-Sig": f"v=1; t={NOW}000; s={based(b'%d000' % NOW + BODY)}"},
                {"signedContent": "{timestamp}{body}", "timestamp": ["item:t"], "timestampFormat": "unix_ms", "itemSeparator": ";"},
            ),
        ],
    )  # fmt: skip
    def test_a_sender_nobody_knows_gets_a_custom_scheme(
        self, headers: dict[str, str], expected: dict[str, object]
    ) -> None:
        request = call(headers)
        patch = patches(diagnosed(GITHUB, request))[0]
        assert patch is not None and patch["provider"] == "custom"
        scheme = patch["scheme"]
        assert isinstance(scheme, dict) and expected.items() <= scheme.items()
        assert diagnosed(SignatureScheme.from_document(scheme), request).verified

    @pytest.mark.parametrize(
        ("place", "signed", "kept"),
        [
            ("header:x-time", BODY, ["header:x-time"]),
            ("header:x-time", hashlib.sha256(BODY).hexdigest().encode(), []),
            ("body:at", hashlib.sha256(BODY).hexdigest().encode(), ["body:at"]),
        ],
    )
    def test_a_time_that_is_not_signed_stays_where_what_is_signed_stays_or_has_it(
        self, place: str, signed: bytes, kept: list[str]
    ) -> None:
        timed = SignatureScheme.from_document(
            {"signature": "header:X-Signature", "timestamp": place, "timestampRequired": False}
        )
        request = call({"X-Acme-Sig": digest(signed).hex(), "X-Time": str(NOW)})
        schemes = [patch["scheme"] for patch in patches(diagnosed(timed, request)) if patch]
        assert next(scheme["timestamp"] for scheme in schemes if isinstance(scheme, dict)) == kept

    def test_an_id_that_is_signed_is_found_where_the_present_scheme_has_none(self) -> None:
        headers = {"X-Acme-Id": "m_1", "X-Acme-Timestamp": str(NOW)}
        request = call({**headers, "X-Acme-Sig": digest(b"m_1.%d." % NOW + BODY).hex()})
        patch = patches(diagnosed(SignatureScheme(), request))[0]
        assert patch is not None and isinstance(scheme := patch["scheme"], dict)
        assert scheme["signedContent"] == "{id}.{timestamp}.{body}"
        assert scheme["deliveryId"] == ["header:x-acme-id"]

    def test_an_id_that_is_signed_is_found_where_the_present_scheme_has_another_one(self) -> None:
        headers = {"webhook-id": "of something else", "X-Acme-Id": "m_1", "X-Acme-Timestamp": str(NOW)}
        signed = digest(b"m_1.%d." % NOW + BODY).hex()
        for sent in (headers, {name: value for name, value in headers.items() if name != "webhook-id"}):
            patch = patches(diagnosed(STANDARD, call({**sent, "X-Acme-Sig": signed})))[0]
            assert patch is not None and isinstance(scheme := patch["scheme"], dict)
            assert scheme["deliveryId"] == ["header:x-acme-id"]

    def test_every_patch_that_is_offered_verifies(self) -> None:
        for scheme in (GENERIC, GITHUB, STANDARD, SQUARE):
            for request in (call(stripe()), call(standard()), call({"X-Signature": digest(BODY).hex()})):
                secret = b"c2VjcmV0" if scheme is STANDARD else SECRET
                for patch in patches(diagnosed(scheme, request, secret)):
                    if patch and patch.get("scheme"):
                        assert diagnosed(SignatureScheme.from_document(patch["scheme"]), request).verified  # type: ignore[arg-type]


class TestResemblance:
    def test_a_recorded_call_is_recognised_by_its_headers(self) -> None:
        push = {"X-Hub-Signature-256": "sha256=" + "0" * 64}
        to_github = call({**push, "X-GitHub-Event": "push", "X-GitHub-Delivery": "1"})
        assert resembles(to_github, KNOWN)[0] == "github"
        assert set(resembles(call(push), KNOWN)) == {"github", "meta"}
        assert resembles(call(stripe()), KNOWN) == ["stripe"]
        svix = call({"Svix-Id": "1", "Svix-Timestamp": "1", "Svix-Signature": "v1," + based(b"")})
        assert resembles(svix, KNOWN) == ["clerk", "resend", "standardwebhooks"]

    def test_a_header_alone_in_another_form_is_no_resemblance(self) -> None:
        assert resembles(call({"Stripe-Signature": "abc"}), KNOWN) == []
        assert resembles(call({"X-Signature": "0" * 64}), KNOWN) == ["lemonsqueezy"]
        assert "generic" in resembles(call({"X-Signature": "0" * 64, "X-Webhook-Id": "1"}), KNOWN)


def test_a_large_body_is_tried_in_fewer_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    verifies = SenderSetup.verifies

    def noted(setup: SenderSetup, request: Call) -> bool:
        tried.append(len(request.body))
        return verifies(setup, request)

    monkeypatch.setattr(SenderSetup, "verifies", noted)
    body = msgspec.json.encode({"rows": ["x" * 1000] * 5000})
    headers = {f"X-Sig-{n}": based(b"%d" % n) for n in range(20)}
    headers["X-Shopify-Hmac-Sha256"] = based(b"another body")
    diagnosed(SHOPIFY, call(headers, body), SECRET, b"second")
    assert 0 < 2 * sum(tried) <= MOST_BYTES + 2 * len(body)
    tried.clear()
    diagnosed(SHOPIFY, call(headers), SECRET, b"second")
    assert 50 < len(tried) <= MOST_TRIALS


@given(
    name=st.sampled_from(list(KNOWN)),
    headers=st.lists(
        st.tuples(
            st.sampled_from([b"x-signature", b"stripe-signature", b"x-time", b"a-id", b"host"]),
            st.one_of(st.binary(max_size=70), st.just(b"t=1700000000,v1=" + b"0" * 64)),
        )
    ),
    body=st.one_of(st.binary(max_size=50), st.just(b"[" * 3000), st.just(b'"\\ud800"')),
    secret=st.binary(max_size=20),
    query=st.binary(max_size=30),
)
def test_any_call_gets_a_diagnosis(
    name: str, headers: list[tuple[bytes, bytes]], body: bytes, secret: bytes, query: bytes
) -> None:
    request = Call("POST", b"/x", query, tuple(headers), body, "", NOW, "https://hooks.example.com")
    found = diagnosed(KNOWN[name].scheme, request, secret)
    assert not found.verified or SignatureCredential(KNOWN[name].scheme, secret).check(request)
    assert resembles(request, KNOWN) is not None


class TestSightings:
    def test_a_time_within_a_month_may_be_the_signed_one(self) -> None:
        month = 31 * 24 * 3600
        sent = call({"X-Sent-At": str(NOW)})
        for around, seen in ((month - 1, True), (-month + 1, True), (month, False), (-month, False)):
            assert bool(moments(sent, NOW + around)) is seen, around

    def test_an_item_of_a_header_may_hold_the_time(self) -> None:
        (found,) = moments(call({"X-Signature": f"t={NOW},v1=00"}), NOW)
        assert (found.ref, found.form) == ("item:t", "unix")

    def test_a_header_that_ends_in_id_may_hold_the_delivery_s(self) -> None:
        sent = call({"X-Event-Id": "1", "x_event_id": "2", "X-Request-Id": "3", "X-Idea": "4", "X-Ids": "5"})
        assert ids(sent) == ["header:x-event-id", "header:x_event_id"]

    def test_a_digest_is_found_in_headers_and_query(self) -> None:
        text = digest(BODY).hex()
        shape, *_ = shapes(call({}, query=f"sig={text}&note=%FF".encode()))
        assert (shape.ref, shape.encoding) == ("query:sig", "hex")
        assert shape.words == "hex in the URL parameter sig"
        found = [one.words for one in shapes(call({"X-Sign": f"v1={text}"}))]
        assert "hex in x-sign after v1=" in found


def test_what_differs_is_named_and_nothing_else() -> None:
    now = SignatureScheme.from_document({"signature": "header:X-Signature", "encoding": "hex"})
    mentioned = set()
    for trial in other_schemes(SenderSetup(now, b"c2VjcmV0", None), UNKNOWN):
        then, words = trial.setup.scheme, trial.change.change.lower()
        for part, fields in (
            ("read the signature as", ("signature", "encoding")),
            ("as what is signed", ("signed_content",)),
            ("use the secret ", ("secret_encoding", "secret_prefix")),
        ):
            differs = any(getattr(now, field) != getattr(then, field) for field in fields)
            assert (part in words) == differs, words
            mentioned |= {part} if differs else set()
    assert len(mentioned) == 3


def test_a_signature_of_the_body_where_headers_are_signed_has_words_of_its_own() -> None:
    over_headers = SignatureScheme.from_document({"signedContent": "{headers:X-Webhook-*}"})
    trials = other_schemes(SenderSetup(over_headers, b"secret", None), UNKNOWN)
    changes = {one.change.change for one in trials if one.setup.scheme.signed_content == "{body}"}
    assert changes == {"Use a custom scheme that signs the body"}


def test_the_expected_signature_is_written_as_the_sender_would() -> None:
    for encoding, made in (
        ("hex", digest(BODY).hex()),
        ("base64", based(BODY)),
        ("base64url", based(BODY).rstrip("=").replace("+", "-").replace("/", "_")),
    ):
        scheme = SignatureScheme(encoding=encoding)
        found = diagnosed(scheme, call({"X-Signature": "0" * 64 if encoding == "hex" else "A" * 43}))
        assert found.expected == (("main", made),), encoding
