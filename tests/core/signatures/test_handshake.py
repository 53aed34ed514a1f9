"""Set-up handshakes: each sender hears what it waits for, and nobody hears anything else."""

import hmac
import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.calls.call import Call
from postern.core.signatures.credential import Unproven, VerifiedCall
from postern.core.signatures.handshake import (
    HANDSHAKES,
    WAYS,
    Handshake,
    HandshakeAnswer,
    HandshakeKind,
    Reply,
    confirmation_at,
)
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from support import calls

TOKEN = b"a verify token"
SECRET = b"zoom secret token"


def call(method: str = "POST", body: bytes = b"", query: bytes = b"", **headers: str) -> Call:
    pairs = [(name.replace("_", "-"), value.encode()) for name, value in headers.items()]
    return calls.call(body, *pairs, method=method, query=query)


def handshake(kind: HandshakeKind) -> Handshake:
    return Handshake(kind, verify_token=TOKEN, sign=SignatureCredential(SignatureScheme(), SECRET).sign)


def before(kind: HandshakeKind, request: Call) -> Reply:
    return handshake(kind).before_authentication(request)


def after(kind: HandshakeKind, request: Call) -> Reply:
    return handshake(kind).after_authentication(VerifiedCall(request, "main", ""))


def answered(reply: Reply) -> HandshakeAnswer:
    assert isinstance(reply, HandshakeAnswer) and reply.detail
    return reply


def body_of(reply: Reply) -> bytes:
    answer = answered(reply).answer
    assert answer.status == 200
    return answer.body


class TestMeta:
    def asked(self, query: bytes, kind: Handshake | None = None) -> Reply:
        return (kind or handshake("meta")).before_authentication(call("GET", query=query))

    def test_the_right_verify_token_gets_the_challenge_back_as_text(self) -> None:
        reply = self.asked(b"hub.mode=subscribe&hub.verify_token=a%20verify+token&hub.challenge=1158201444")
        assert body_of(reply) == b"1158201444"
        assert (b"x-content-type-options", b"nosniff") in answered(reply).answer.headers

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            (b"verify_token=wrong&hub.challenge=1", "credential_mismatch"),
            (b"challenge=1", "credential_missing"),
            (b"verify_token=wrong&hub.verify_token=a+verify+token&hub.challenge=1", "credential_mismatch"),
            (b"verify_token=a+verify+token&hub.challenge=%3Cscript%3E", "signature_malformed"),
            (b"verify_token=a+verify+token", "signature_malformed"),
        ],
    )
    def test_anything_else_is_rejected(self, query: bytes, code: str) -> None:
        reply = self.asked(b"hub.mode=subscribe&hub." + query)
        assert isinstance(reply, Unproven) and reply.code == code

    def test_without_a_verify_token_nobody_gets_in(self) -> None:
        for token in (b"", b"a+verify+token"):
            query = b"hub.mode=subscribe&hub.challenge=1&hub.verify_token=" + token
            reply = self.asked(query, Handshake("meta"))
            assert isinstance(reply, Unproven) and "none is set here" in reply.detail

    def test_calls_are_not_handshakes(self) -> None:
        assert before("meta", call(body=b"{}")) is None
        assert self.asked(b"hub.verify_token=a+verify+token") is None


class TestChallenges:
    def test_slack_gets_its_challenge_back_once_it_has_proven_itself(self) -> None:
        challenge = b"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
        probe = call(body=b'{"token":"x","challenge":"%s","type":"url_verification"}' % challenge)
        assert before("slack", probe) is None
        assert body_of(after("slack", probe)) == challenge

    def test_a_message_that_mentions_the_word_is_a_call(self) -> None:
        message = call(body=b'{"type":"event_callback","challenge":"x","text":"url_verification"}')
        assert after("slack", message) is None

    @pytest.mark.parametrize("challenge", ["<b>hello</b>", "a b", "x" * 513, "", "é"])
    def test_a_challenge_that_no_sender_sends_is_not_echoed(self, challenge: str) -> None:
        body = f'{{"type":"url_verification","challenge":"{challenge}"}}'.encode()
        assert isinstance(after("slack", call(body=body)), Unproven)

    def test_twitch_gets_its_challenge_back(self) -> None:
        def asked(body: bytes, kind: str = "webhook_callback_verification") -> Reply:
            return after("twitch", call(body=body, twitch_eventsub_message_type=kind))

        probe = b'{"challenge":"pogchamp-kappa-360noscope","subscription":{}}'
        assert body_of(asked(probe)) == b"pogchamp-kappa-360noscope"
        assert asked(probe, "notification") is None
        for other in (b"", b"{", b'{"challenge": 1}', b'{"subscription":{}}'):
            assert asked(other) is None

    def test_dropbox_gets_its_challenge_back(self) -> None:
        assert body_of(before("dropbox", call("GET", query=b"challenge=abc-123"))) == b"abc-123"
        assert before("dropbox", call(query=b"challenge=abc-123")) is None
        assert before("dropbox", call("GET", query=b"challenge=a&challenge=b")) is None


class TestZoom:
    def asked(self, token: bytes) -> Reply:
        body = b'{"event":"endpoint.url_validation","payload":{"plainToken":"%s"},"event_ts":1}' % token
        return after("zoom", call(body=body))

    def test_the_plain_token_is_signed(self) -> None:
        token = b"qgg8vlvZRS6UYooatFL8Aw"
        signed = token, hmac.digest(SECRET, token, "sha256").hex().encode()
        assert body_of(self.asked(token)) == b'{"plainToken":"%s","encryptedToken":"%s"}' % signed

    @pytest.mark.parametrize("token", [b'{\\"a\\":1}', b"v0:1700000000:{}", b"a=b", b"x" * 129, b"", b"a.b"])
    def test_nothing_that_a_call_could_be_is_ever_signed(self, token: bytes) -> None:
        assert isinstance(self.asked(token), Unproven)


class TestEmptyAnswers:
    def test_woocommerce_may_save_its_webhook_and_only_that_very_ping_passes_unsigned(self) -> None:
        assert body_of(before("woocommerce_ping", call(body=b"webhook_id=42"))) == b""
        for body in (b"webhook_id=42&a=b", b"webhook_id=x", b"webhook_id=42\n", b"{}"):
            assert before("woocommerce_ping", call(body=body)) is None
        assert before("woocommerce_ping", call(body=b"webhook_id=42", x_wc_webhook_signature="abc")) is None

    def test_xeros_intent_to_receive_starts_nothing_and_its_events_do(self) -> None:
        intent = call(body=b'{"events":[],"firstEventSequence":0,"entropy":"S0m3"}')
        assert body_of(after("xero", intent)) == b""
        assert after("xero", call(body=b'{"events":[{}]}')) is None


class TestAnnouncedSecrets:
    def test_notions_token_is_kept_for_the_owner_and_not_shown_to_anybody(self) -> None:
        announcing = b'{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce"}'
        reply = before("notion", call(body=announcing))
        assert body_of(reply) == b""
        assert answered(reply).announced == b"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce"
        assert "secret_" not in answered(reply).detail
        # One that is signed, or says more, is a call.
        assert before("notion", call(body=announcing, x_notion_signature="sha256=0")) is None
        assert before("notion", call(body=announcing.replace(b"}", b',"more":1}'))) is None

    def test_asana_hears_its_secret_again(self) -> None:
        secret = "b537207f20cbfa02357cf448134da559"
        reply = answered(before("asana", call(body=b"{}", x_hook_secret=secret)))
        assert (b"x-hook-secret", secret.encode()) in reply.answer.headers
        assert reply.announced == secret.encode()

    @pytest.mark.parametrize("secret", ["short", "with space inside", "a\r\nset-cookie: x=1", "é" * 10])
    def test_asana_is_not_an_echo_for_anything(self, secret: str) -> None:
        assert before("asana", call(x_hook_secret=secret)) is None


JSON_PROBE = b'{"type":"url_verification","token":"t","challenge":"abc-123"}'


@pytest.mark.parametrize(
    ("kind", "probe", "answer"),
    [
        ("challenge", call(body=JSON_PROBE), b'{"challenge":"abc-123"}'),
        ("graph", call(query=b"validationToken=Validation%3A+Request-Id%3A%201", content_type="text/plain"), b"Validation: Request-Id: 1"),
        ("reachable", call("HEAD"), b""),
        ("reachable", call("GET"), b""),
        ("braintree", call("GET", query=b"bt_challenge=20f9f8ed05f77439fe955c977e4c8a53"), b"a verify token|" + hmac.digest(SECRET, b"20f9f8ed05f77439fe955c977e4c8a53", "sha256").hex().encode()),
        ("x", call("GET", query=b"crc_token=MTIx"), b'{"response_token":"sha256=%s"}' % b64encode(hmac.digest(SECRET, b"MTIx", "sha256"))),
    ],
)  # fmt: skip
def test_a_sender_that_cannot_sign_yet_is_answered(kind: HandshakeKind, probe: Call, answer: bytes) -> None:
    assert body_of(before(kind, probe)) == answer


@pytest.mark.parametrize(
    ("kind", "probe", "answer"),
    [
        ("event_grid", call(body=b'[{"data":{"validationCode":"512d-38b6"}}]', aeg_event_type="SubscriptionValidation"), b'{"validationResponse":"512d-38b6"}'),
        ("okta", call("GET", x_okta_verification_challenge="Z9x-1"), b'{"verification":"Z9x-1"}'),
        ("discord", call(body=b'{"type":1,"id":"7"}'), b'{"type":1}'),
    ],
)  # fmt: skip
def test_a_sender_that_has_proven_itself_is_answered(kind: HandshakeKind, probe: Call, answer: bytes) -> None:
    assert body_of(after(kind, probe)) == answer
    assert before(kind, probe) is None


def test_discords_ping_of_webhook_events_hears_204() -> None:
    answer = answered(after("discord", call(body=b'{"version":1,"type":0}'))).answer
    assert (answer.status, answer.body) == (204, b"")
    assert after("discord", call(body=b'{"type":2}')) is None
    event = b'{"version":1,"type":1,"event":{"type":"ENTITLEMENT_CREATE"}}'
    assert after("discord", call(body=event)) is None, "an event has the type of an interaction's PING"


def test_a_sender_of_cloudevents_is_told_that_it_may_send() -> None:
    asked = call("OPTIONS", webhook_request_origin="eventemitter.example.com", webhook_request_rate="120")
    told = dict(answered(before("cloudevents", asked)).answer.headers)
    assert (told[b"webhook-allowed-origin"], told[b"webhook-allowed-rate"]) == (b"*", b"*")
    assert told[b"allow"] == b"POST"
    origin = ("webhook-request-origin", b"a.example")
    twice = calls.call(b"", origin, origin, method="OPTIONS")
    assert isinstance(before("cloudevents", twice), Unproven)


@pytest.mark.parametrize(
    ("kind", "probe"),
    [
        ("challenge", call(body=b'{"challenge":"<script>"}')),
        ("graph", call(query=b"validationToken=%3Cscript%3E")),
        ("graph", call(query=b"validationToken=a&validationToken=b")),
        ("x", call("GET", query=b"crc_token=order%3D1")),
        ("braintree", call("GET", query=b"bt_challenge=PD94bWwgdmVyc2lvbj0iMS4w")),
    ],
)
def test_nobody_has_a_page_shown_or_a_body_signed(kind: HandshakeKind, probe: Call) -> None:
    assert isinstance(before(kind, probe), Unproven)


@pytest.mark.parametrize(
    ("kind", "probe"),
    [
        ("zoom", call(body=b'{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}')),
        ("x", call("GET", query=b"crc_token=MTIx")),
        ("braintree", call("GET", query=b"bt_challenge=20f9f8ed05f77439fe955c977e4c8a53")),
    ],
)
def test_without_a_secret_that_signs_no_challenge_is_answered(kind: HandshakeKind, probe: Call) -> None:
    verified = VerifiedCall(probe, "main", "")
    signs, without = handshake(kind), Handshake(kind, verify_token=TOKEN, sign=None)
    assert isinstance(
        signs.before_authentication(probe) or signs.after_authentication(verified), HandshakeAnswer
    )
    assert isinstance(
        without.before_authentication(probe) or without.after_authentication(verified), Unproven
    )


def test_a_challenge_that_x_has_had_signed_is_no_call() -> None:
    assert isinstance(after("x", call(body=b"MTIx")), Unproven)
    assert after("x", call(body=b'{"for_user_id":"1"}')) is None
    form, signed = "application/x-www-form-urlencoded", b"bt_payload=20f9f8ed05f77439fe955c977e4c8a53"
    assert isinstance(after("braintree", call(body=signed, content_type=form)), Unproven)
    assert after("braintree", call(body=b"bt_payload=PD94bWwg", content_type=form)) is None


@pytest.mark.parametrize(
    ("address", "is_amazons"),
    [
        ("https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=a&Token=2336", True),
        ("https://sns.s3.amazonaws.com/?Action=ConfirmSubscription&Token=2336", False),
        ("https://sns.s3-us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=2336", False),
        ("https://sns.eu-1.amazonaws.com.else.example/?Action=ConfirmSubscription&Token=2336", False),
        ("https://sns.eu-1.amazonaws.com:1/?Action=ConfirmSubscription&Token=2336", False),
        ("https://sns.eu-1.amazonaws.com@else.example/?Action=ConfirmSubscription&Token=2336", False),
        ("http://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&Token=2336", False),
        ("https://sns.eu-central-1.amazonaws.com/?Action=DeleteTopic&TopicArn=a", False),
    ],
)
def test_a_subscription_is_confirmed_at_amazon_alone(address: str, is_amazons: bool) -> None:
    asked = call(body=json.dumps({"Type": "SubscriptionConfirmation", "SubscribeURL": address}).encode())
    assert (confirmation_at(asked) == address) is is_amazons


def test_a_subscription_without_a_verify_token_is_confirmed_and_its_end_is_not() -> None:
    asked = b"hub.mode=subscribe&hub.challenge=15f7d1a9&hub.topic=https%3A%2F%2Fa.example%2Ffeed"
    strava = answered(before("strava", call("GET", query=asked)))
    assert json.loads(strava.answer.body) == {"hub.challenge": "15f7d1a9"}
    assert answered(before("websub", call("GET", query=asked))).answer.body == b"15f7d1a9"
    kinds: tuple[HandshakeKind, ...] = ("strava", "websub")
    for kind in kinds:
        for refused in (
            asked.replace(b"=subscribe", b"=unsubscribe"),
            asked + b"&hub.mode=subscribe",
            asked + b"&hub.challenge=1",
            asked.replace(b"15f7d1a9", b"%3Cscript%3E"),
            b"hub.mode=subscribe",
        ):
            assert isinstance(before(kind, call("GET", query=refused)), Unproven), refused
        assert before(kind, call("GET")) is None and before(kind, call(query=asked)) is None


def test_the_challenge_in_smartsheet_s_header_is_answered_once() -> None:
    challenge = ("smartsheet-hook-challenge", b"d78dd1d3-01ce-4481")
    found = answered(before("smartsheet", calls.call(b"", challenge)))
    assert json.loads(found.answer.body) == {"smartsheetHookResponse": "d78dd1d3-01ce-4481"}
    assert isinstance(before("smartsheet", calls.call(b"", challenge, challenge)), Unproven)
    assert before("smartsheet", call()) is None


@pytest.mark.parametrize(
    "kind", ["challenge", "graph", "reachable", "x", "cloudevents", "websub", "smartsheet"]
)
def test_events_are_no_probes(kind: HandshakeKind) -> None:
    event = call(body=b'{"value":[{"id":1}],"a":1,"b":2,"challenge":"x"}')
    assert before(kind, event) is None and after(kind, event) is None


def test_few_handshakes_come_otherwise_than_by_post() -> None:
    by_get = {"braintree", "meta", "dropbox", "okta", "x", "reachable", "strava", "websub"}
    assert {kind for kind in HANDSHAKES if "GET" in WAYS[kind].methods} == by_get
    assert {kind for kind in HANDSHAKES if WAYS[kind].methods} == {*by_get, "cloudevents"}


words = [b"url_verification", b"endpoint.url_validation", b'{"events":[]}', b"webhook_id=1"]
words += [
    b'{"verification_token":"',
    b'{"type":"url_verification","challenge":1}',
    b"url_verification" + b"[" * 9000,
]


@given(
    kind=st.sampled_from(HANDSHAKES),
    method=st.sampled_from(["GET", "POST", "HEAD"]),
    body=st.one_of(st.binary(max_size=60), st.sampled_from(words)),
    query=st.one_of(st.binary(max_size=40), st.just(b"hub.mode=x&hub.verify_token=%ff&challenge=%00")),
    header=st.binary(max_size=40),
)
def test_any_bytes_give_an_answer_a_rejection_or_nothing(
    kind: HandshakeKind, method: str, body: bytes, query: bytes, header: bytes
) -> None:
    for name in (b"x-hook-secret", b"x-notion-signature", b"twitch-eventsub-message-type"):
        request = Call(method, b"/", query, ((name, header),), body, "", 0.0)
        for reply in (before(kind, request), after(kind, request)):
            assert reply is None or isinstance(reply, (HandshakeAnswer, Unproven))
