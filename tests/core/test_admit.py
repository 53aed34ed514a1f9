"""The order of the questions, and that every call gets exactly one verdict."""

import hmac
from urllib.parse import quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st

from postern.core.address import Allowlist
from postern.core.admit import admit, admit_head
from postern.core.calls.call import Call
from postern.core.calls.cors import Cors
from postern.core.limits import Limits
from postern.core.problems import PROBLEMS
from postern.core.signatures.credential import TokenCredential
from postern.core.signatures.handshake import Handshake
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from postern.core.verdict import Verdict
from postern.core.webhooks.webhook import DuplicateKey, Webhook
from support.calls import NOW, call, webhook

TOKEN = ("X-Api-Key", "right")


def protected(**settings: object) -> Webhook:
    return webhook(TokenCredential("header", b"right"), {"fieldOne": "a"}, **settings)


def judged(rules: Webhook, received: Call, limits: Limits | None = None) -> Verdict:
    return admit_head(rules, received) or admit(rules, received, limits or Limits(lambda: 0.0))


def test_a_genuine_call_is_accepted_with_its_fields_and_the_way_there() -> None:
    verdict = judged(protected(), call(b'{"a":"x"}', TOKEN))
    assert (verdict.outcome, verdict.code, verdict.matched) == ("accepted", "accepted", "main")
    assert verdict.fields == {"fieldOne": "x"}
    assert [step for step, ok, _ in verdict.trace if ok] == ["authentication", "content", "field mapping"]


def test_a_rejected_call_tells_the_way_to_the_question_that_it_failed() -> None:
    rules = protected(allowlist=Allowlist.parse(["192.0.2.0/24"]))
    verdict = judged(rules, call(b"{}", ("X-Api-Key", "wrong")))
    steps = [("IP allowlist", True), ("authentication", False)]
    assert [(step, ok) for step, ok, _ in verdict.trace] == steps
    assert verdict.trace[-1][2] == verdict.detail
    verdict = judged(rules, call(b"[]", TOKEN))
    assert [(step, ok) for step, ok, _ in verdict.trace[1:]] == [("authentication", True), ("content", False)]
    assert (verdict.matched, verdict.trace[-1][2]) == ("main", verdict.detail)


def test_each_question_comes_before_the_dearer_ones() -> None:
    """A call with everything wrong hears the cheapest reason; mending that one brings up the next."""
    everything = {"enabled": False, "allowlist": Allowlist.parse(["198.51.100.0/24"])}
    wrong = call(b"nonsense", ("Content-Type", "image/png"), method="PUT")
    assert judged(protected(**everything), wrong).code == "method_not_allowed"
    wrong.method = "POST"
    assert judged(protected(**everything), wrong).code == "webhook_disabled"
    everything["enabled"] = True
    assert judged(protected(**everything), wrong).code == "ip_not_allowed"
    wrong.address = "198.51.100.7"
    assert judged(protected(**everything), wrong).code == "credential_missing"
    wrong = wrong.but(headers=(*wrong.headers, (b"x-api-key", b"right")))
    limits = Limits(lambda: 0.0)
    for code in ("unsupported_media_type", "rate_limited"):
        rules = protected(**everything, calls_per_second=1, burst=1)
        assert judged(rules, wrong, limits).code == code
    wrong = wrong.but(headers=((b"x-api-key", b"right"),))
    assert judged(protected(**everything), wrong).code == "malformed_json"


def test_strangers_do_not_use_up_the_rate_of_the_real_sender() -> None:
    rules, limits = protected(calls_per_second=1, burst=1), Limits(lambda: 0.0)
    for _ in range(10):
        assert judged(rules, call(b"{}", ("X-Api-Key", "wrong")), limits).code == "credential_mismatch"
    assert judged(rules, call(b"{}", TOKEN), limits).outcome == "accepted"


def test_each_failure_hears_its_reason_and_the_right_credential_is_never_rejected() -> None:
    rules, limits = protected(handshake=Handshake("meta", verify_token=b"right")), Limits(lambda: 0.0)
    guess = call(method="GET", query=b"hub.mode=subscribe&hub.challenge=1&hub.verify_token=guess")
    for _ in range(100):
        assert judged(rules, call(b"{}", ("X-Api-Key", "wrong")), limits).code == "credential_mismatch"
        assert admit(rules, guess, limits).code == "credential_mismatch"
    assert judged(rules, call(b"{}", TOKEN), limits).outcome == "accepted"


def test_whoever_comes_again_after_the_seconds_it_was_given_is_not_too_early() -> None:
    now = 0.0
    rules, limits = protected(calls_per_second=0.8, burst=1), Limits(lambda: now)
    judged(rules, call(b"{}", TOKEN), limits)
    refused = judged(rules, call(b"{}", TOKEN), limits)
    assert (refused.code, refused.retry_after) == ("rate_limited", 2), "1.25 s, in whole seconds"
    now += refused.retry_after or 0
    assert judged(rules, call(b"{}", TOKEN), limits).outcome == "accepted"


def test_a_preflight_needs_no_credential_and_a_foreign_one_is_rejected() -> None:
    def asked(rules: Webhook, origin: str) -> Verdict:
        headers = ("Origin", origin), ("Access-Control-Request-Method", "POST")
        return judged(rules, call(b"", *headers, method="OPTIONS"))

    rules = protected(cors=Cors(("https://shop.example.com",)))
    assert asked(rules, "https://shop.example.com").outcome == "preflight"
    assert asked(rules, "https://evil.example.com").code == "origin_not_allowed"
    assert asked(protected(), "https://shop.example.com").code == "method_not_allowed"
    events = protected(handshake=Handshake("cloudevents"))
    assert asked(events, "https://shop.example.com").code == "method_not_allowed"


def test_a_simple_call_from_a_page_that_is_not_listed_is_rejected_before_its_body_is_read() -> None:
    listed = Cors(("https://shop.example.com", "https://*.example.net"))
    for origin, code in {
        "https://shop.example.com": "accepted",
        "https://a.example.net": "accepted",
        "https://a.b.c.example.net": "accepted",
        "https://evil.example.com": "origin_not_allowed",
        "null": "origin_not_allowed",
    }.items():
        assert judged(protected(cors=listed), call(b"{}", TOKEN, ("Origin", origin))).code == code
        assert judged(protected(cors=Cors(("*",))), call(b"{}", TOKEN, ("Origin", origin))).code == "accepted"
        assert judged(protected(), call(b"{}", TOKEN, ("Origin", origin))).code == "accepted"
    assert judged(protected(cors=listed), call(b"{}", TOKEN)).code == "accepted"


def test_the_duplicate_key_is_the_webhooks_own_header_or_path_or_else_the_body() -> None:
    def key(rules: DuplicateKey, body: bytes, *headers: tuple[str, str]) -> bytes:
        found = judged(protected(duplicates=rules), call(body, TOKEN, *headers)).duplicate_key
        assert found is not None
        return found

    by_header, by_path = DuplicateKey(60, header=b"x-event"), DuplicateKey(60, path=("id",))
    by_body, one, other = DuplicateKey(60), ("X-Event", "1"), ("X-Event", "2")
    seen = key(by_header, b'{"a":1}', one)
    assert seen == key(by_header, b'{"a":2}', one) != key(by_header, b'{"a":1}', other)
    seen = key(by_path, b'{"id":7,"n":1}')
    assert seen == key(by_path, b'{"id":7,"n":2}') != key(by_path, b'{"id":8,"n":1}')
    assert key(by_body, b'{"a":1}') == key(by_body, b'{"a":1}') != key(by_body, b'{"a": 1}')
    assert key(by_path, b'{"n":1}') == key(by_body, b'{"n":1}')


def test_the_senders_own_id_is_the_key_where_the_webhook_names_none() -> None:
    def key(rules: DuplicateKey, content: str, body: bytes, id: str) -> bytes:
        scheme = SignatureScheme(
            signature=("header:X-Sign",), signed_content=content, delivery_id=("header:X-Id",)
        )
        signed = content.replace("{id}", id).replace("{body}", body.decode()).encode()
        signature = hmac.digest(b"secret", signed, "sha256").hex()
        headers = (("X-Sign", signature), ("X-Id", id))
        rule = webhook(SignatureCredential(scheme, b"secret"), duplicates=rules)
        found = judged(rule, call(body, *headers)).duplicate_key
        assert found is not None
        return found

    signed, unsigned = "{id}.{body}", "{body}"
    assert key(DuplicateKey(60), signed, b"{}", "1") == key(DuplicateKey(60), signed, b'{"a":1}', "1")
    assert key(DuplicateKey(60), signed, b"{}", "1") != key(DuplicateKey(60), signed, b"{}", "2")
    # An id that is not signed could be anybody's: it counts together with the body.
    assert key(DuplicateKey(60), unsigned, b"{}", "1") != key(DuplicateKey(60), unsigned, b'{"a":1}', "1")
    assert key(DuplicateKey(60), unsigned, b"{}", "1") != key(DuplicateKey(60), unsigned, b"{}", "2")
    # Whoever names a header or a path of their own means that, and what is without it is known by its body.
    for own in (DuplicateKey(60, header=b"x-event"), DuplicateKey(60, path=("id",))):
        assert key(own, signed, b"{}", "1") == key(own, signed, b"{}", "2")


names = st.binary(min_size=1, max_size=30)
headers = st.lists(
    st.tuples(
        names
        | st.sampled_from([b"content-type", b"x-api-key", b"authorization", b"origin", b"content-encoding"]),
        st.binary(max_size=60),
    ),
    max_size=8,
)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(["POST", "GET", "OPTIONS", "PUT", "x"]),
    st.binary(max_size=80),
    headers,
    st.binary(max_size=200),
    st.text(max_size=40),
)
def test_whatever_a_stranger_sends_gets_one_verdict_with_a_known_code(
    method: str, query: bytes, sent: list[tuple[bytes, bytes]], body: bytes, address: str
) -> None:
    received = Call(method, b"/webhook/abc", query, tuple(sent), body, address, NOW)
    for rules in (
        webhook(
            mapping={"fieldOne": "a.b"}, cors=Cors(("*",)), duplicates=DuplicateKey(60, header=b"x-api-key")
        ),
        webhook(TokenCredential("basic", b"right", username="u")),
        webhook(TokenCredential("url", b"right"), allowlist=Allowlist.parse(["10.0.0.0/8"])),
    ):
        verdict = judged(rules, received)
        assert verdict.code in PROBLEMS or verdict.code in ("accepted", "handshake")
        rules.mask.headers(received.headers)
        rules.mask.query(received.query)


FIELDS_SIGNED = "{bodyfield:pspReference}:{bodyfield:amount}:{bodyfield:success}"
FORM = ("Content-Type", "application/x-www-form-urlencoded")


def signing_fields() -> Webhook:
    scheme = SignatureScheme.from_document({"signedContent": FIELDS_SIGNED, "encoding": "hex"})
    return webhook(SignatureCredential(scheme, b"key"), {"fieldOne": "amount", "fieldTwo": "success"})


def signature_of(content: bytes) -> tuple[str, str]:
    return "X-Signature", hmac.digest(b"key", content, "sha256").hex()


def test_the_fields_that_are_signed_are_the_fields_that_are_mapped() -> None:
    genuine, signed = b'{"pspReference":"8515","amount":"1000","success":"false"}', b"8515:1000:false"
    verdict = judged(signing_fields(), call(genuine, signature_of(signed)))
    assert verdict.fields == {"fieldOne": "1000", "fieldTwo": "false"}
    # The same signature over the same JSON, in a text that is read as a form when it is mapped.
    hidden = b',"note":"&pspReference=9999&amount=99999999&success=true&z="}'
    attack = call(genuine.removesuffix(b"}") + hidden, signature_of(signed), FORM)
    assert judged(signing_fields(), attack).code == "signature_mismatch"
    as_payload = b"payload=" + quote_plus(genuine).encode()
    for form in (b"pspReference=8515&amount=1000&success=false", as_payload):
        verdict = judged(signing_fields(), call(form, signature_of(signed), FORM))
        assert verdict.fields == {"fieldOne": "1000", "fieldTwo": "false"}


def test_signed_fields_of_a_body_that_cannot_be_read_say_so() -> None:
    for body, headers in ((b"nonsense", ()), (b'{"amount":"1"}', (("Content-Type", "image/png"),))):
        verdict = judged(signing_fields(), call(body, signature_of(b":1:"), *headers))
        assert verdict.code == "signature_malformed" and "body" in verdict.detail


def test_another_method_is_for_the_handshake_alone_whatever_it_proves() -> None:
    rules = protected(handshake=Handshake("dropbox"))
    asking = call(method="GET", query=b"challenge=1")
    assert judged(rules, asking).outcome == "handshake"
    verdict = judged(rules, call(b"{}", TOKEN, method="GET"))
    assert (verdict.outcome, verdict.code) == ("rejected", "method_not_allowed")
    assert verdict.trace[-1][:2] == ("method", False)
