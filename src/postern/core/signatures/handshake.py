"""Handshakes: a sender tests the URL before it sends anything. It wants one particular answer, and nothing is started.

A challenge that is echoed or signed has few allowed characters and a length, so that nobody can have this gateway sign a body
of theirs or show a page of theirs. A scheme names the kind of its sender.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from typing import Literal, get_args

import msgspec

from postern.core.answer import JSON, NOSNIFF, CallerAnswer
from postern.core.calls.call import Call, query_pairs
from postern.core.calls.paths import as_text, members, walk
from postern.core.signatures.credential import Unproven, VerifiedCall
from postern.core.signatures.select import in_body

HandshakeKind = Literal[
    "none", "slack", "meta", "xero", "woocommerce_ping", "zoom", "notion", "asana", "twitch", "dropbox",
    "reachable", "challenge", "graph", "cloudevents", "event_grid", "okta", "discord", "x", "braintree", "sns",
    "strava", "websub", "smartsheet",
]  # fmt: skip
HANDSHAKES: tuple[HandshakeKind, ...] = get_args(HandshakeKind)
OF_A_SCHEME: frozenset[HandshakeKind] = frozenset(
    {"meta", "zoom", "notion", "asana", "x", "braintree", "sns"}
)
"""These need a secret that signs, a verify token beside it, or a signature that was checked."""

Sign = Callable[[bytes], bytes]
"""The digest that the main secret makes of these bytes."""

_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_NO_STORE = (b"cache-control", b"no-store")
_CHALLENGE = re.compile(rb"[A-Za-z0-9_.~=+/-]{1,512}")
_SENTENCE = re.compile(rb"[A-Za-z0-9_.~=+/:;, -]{1,1024}")
# No =, & or : either: what is signed here must not be what a form, a JSON text or a timestamped scheme would
# sign.
_PLAIN_TOKEN = re.compile(rb"[A-Za-z0-9_-]{1,128}")
_SECRET = re.compile(rb"[A-Za-z0-9_=+/-]{8,256}")
_BRAINTREE = re.compile(rb"[a-f0-9]{20,32}")
# Two letters begin a region's name: nobody can have a bucket at an address like these.
_SUBSCRIBE = re.compile(
    r"https://sns\.[a-z]{2}-[a-z0-9-]+\.amazonaws\.com(\.cn)?/\?Action=ConfirmSubscription&[A-Za-z0-9%&=:._~-]{1,2000}"
)
_PING = re.compile(rb"webhook_id=\d{1,20}")
_LONGEST_PROBE = 16_384

ASKS_TO_CONFIRM = "the topic asks whether to send its messages here; its owner confirms it, with this call"
ANNOUNCED = "a secret was announced; it counts only once the webhook's owner takes it, under Authentication"


class HandshakeAnswer(msgspec.Struct):
    """The answer to the sender, and words for the owner."""

    answer: CallerAnswer
    detail: str
    announced: bytes | None = None
    """A secret or token that the caller says it will sign with. Whether it is the sender's, the owner decides."""


Reply = HandshakeAnswer | Unproven | None


HandshakeStep = Callable[[Call, "Handshake"], Reply]


class HandshakeSteps(msgspec.Struct, frozen=True):
    """The questions to a call before its credential is checked and after, and the methods beside POST by which it comes: where
    there are none, no other is asked about."""

    before: HandshakeStep | None = None
    after: HandshakeStep | None = None
    methods: frozenset[str] = frozenset()


class Handshake:
    """The handshake of one webhook. None from either question means: this is an ordinary call, go on."""

    def __init__(
        self, kind: HandshakeKind, *, verify_token: bytes | None = None, sign: Sign | None = None
    ) -> None:
        self.kind = kind
        self.verify_token = verify_token
        self.sign = sign
        way = WAYS[kind]
        self.methods, self._before, self._after = way.methods, way.before, way.after

    def before_authentication(self, call: Call) -> Reply:
        """Some senders cannot sign yet. Any stranger may know their answer."""
        return self._before(call, self) if self._before else None

    def after_authentication(self, verified: VerifiedCall) -> Reply:
        return self._after(verified.call, self) if self._after else None


def _meta(call: Call, own: Handshake) -> Reply:
    sent = dict(call.query_pairs)
    if call.method != "GET" or b"hub.mode" not in sent:
        return None
    token, challenge = sent.get(b"hub.verify_token", b""), sent.get(b"hub.challenge", b"")
    if len(sent) < len(call.query_pairs):
        return Unproven("credential_mismatch", "a parameter of the set-up handshake was sent twice")
    if own.verify_token is None:
        why = "the sender asks for the verify token, and none is set here"
        return Unproven("credential_mismatch", why)
    if not token:
        return Unproven("credential_missing", "hub.verify_token is missing")
    if not compare_digest(sha256(token).digest(), sha256(own.verify_token).digest()):
        why = "the verify token typed at the sender is not the one set here"
        return Unproven("credential_mismatch", why)
    return _answered(challenge, "hub.challenge")


def _zoom(call: Call, own: Handshake) -> Reply:
    word = b"endpoint.url_validation"
    token = _text(call, word, "payload", "plainToken")
    if token is None or _text(call, word, "event") != word:
        return None
    if own.sign is None or not _PLAIN_TOKEN.fullmatch(token):
        return _unusual("the plainToken to be signed")
    return _json({"plainToken": token.decode(), "encryptedToken": own.sign(token).hex()})


def _x(call: Call, own: Handshake) -> Reply:
    tokens = _parameters(call, b"crc_token")
    if call.method != "GET" or not tokens:
        return None
    if own.sign is None or len(tokens) > 1 or not _PLAIN_TOKEN.fullmatch(tokens[0]):
        return _unusual("the crc_token to be signed")
    return _json({"response_token": f"sha256={b64encode(own.sign(tokens[0])).decode()}"})


def _braintree(call: Call, own: Handshake) -> Reply:
    challenges = _parameters(call, b"bt_challenge")
    if call.method != "GET" or not challenges:
        return None
    if not own.verify_token:
        return Unproven("credential_missing", "the sender asks for the public key, and none is set here")
    if own.sign is None or len(challenges) > 1 or not _BRAINTREE.fullmatch(challenges[0]):
        return _unusual("the bt_challenge to be signed")
    text = b"%b|%b" % (own.verify_token, own.sign(challenges[0]).hex().encode())
    return HandshakeAnswer(
        CallerAnswer(200, [_TEXT, NOSNIFF, _NO_STORE], text), "the sender's challenge was answered"
    )


def wants_empty_answers(kind: HandshakeKind) -> bool:
    """Xero takes no answer with a body: it would call again for a day, then disable the webhook."""
    return kind == "xero"


def _text(call: Call, word: bytes, *path: str) -> bytes | None:
    """Returns the text at this path if the call has the word. Calls without it are not parsed."""
    value = _value(call, word, *path) or b""
    return as_text(value).encode("utf-8", "replace") if value[:1] == b'"' else None


def _value(call: Call, word: bytes, *path: str) -> bytes | None:
    is_probe = call.method == "POST" and len(call.body) <= _LONGEST_PROBE and word in call.body
    return walk(call.body, path) if is_probe else None


def _parameters(call: Call, parameter: bytes) -> list[bytes]:
    return [value for name, value in call.query_pairs if name == parameter]


def _unusual(what: str) -> Unproven:
    return Unproven("signature_malformed", f"{what} has characters or a length that no sender uses")


def _answered(challenge: bytes, what: str, member: str = "", usual: re.Pattern[bytes] = _CHALLENGE) -> Reply:
    """Answers with the challenge, as text or as this member of an object."""
    if not usual.fullmatch(challenge):
        return _unusual(what)
    if member:
        return _json({member: challenge.decode()})
    answer = CallerAnswer(200, [_TEXT, NOSNIFF, _NO_STORE], challenge)
    return HandshakeAnswer(answer, "the sender's challenge was answered")


def _empty(detail: str, announced: bytes | None = None) -> HandshakeAnswer:
    return HandshakeAnswer(CallerAnswer(200, []), detail, announced)


def _json(answer: dict[str, str | int]) -> HandshakeAnswer:
    return HandshakeAnswer(
        CallerAnswer(200, [JSON, NOSNIFF, _NO_STORE], msgspec.json.encode(answer)),
        "the sender's URL validation was answered",
    )


def _reachable(call: Call, _: Handshake) -> Reply:
    """Trello, Intercom and Mailchimp ask only whether somebody is there."""
    if call.method not in ("GET", "HEAD"):
        return None
    return _empty(f"a {call.method} was answered; it starts nothing")


def _challenge(call: Call, _: Handshake) -> Reply:
    """monday, Lark and Slack's older form send it without a signature."""
    challenge = _text(call, b'"challenge"', "challenge")
    if challenge is None or len(members(call.body)) > 3:
        return None
    return _answered(challenge, "challenge", "challenge")


def _graph(call: Call, _: Handshake) -> Reply:
    """It comes again for each new subscription. The text has blanks and words, so it is answered as plain text only."""
    tokens = _parameters(call, b"validationToken")
    if not tokens:
        return None
    return _answered(tokens[0] if len(tokens) == 1 else b"", "validationToken", usual=_SENTENCE)


def _cloudevents(call: Call, _: Handshake) -> Reply:
    """A sender that follows the CloudEvents specification sends nothing without this consent."""
    origins = call.header(b"webhook-request-origin")
    if call.method != "OPTIONS":
        return None
    if len(origins) != 1:
        return Unproven("credential_missing", "WebHook-Request-Origin was sent more than once")
    headers = [(b"webhook-allowed-origin", b"*"), (b"allow", b"POST"), _NO_STORE]
    if call.header(b"webhook-request-rate"):
        headers.append((b"webhook-allowed-rate", b"*"))
    return HandshakeAnswer(
        CallerAnswer(200, headers), "the sender asked whether it may send, and was told that it may"
    )


def _event_grid(call: Call, _: Handshake) -> Reply:
    if call.header(b"aeg-event-type") != [b"SubscriptionValidation"]:
        return None
    code = as_text(walk(call.body, (0, "data", "validationCode")) or b"").encode("utf-8", "replace")
    return _answered(code, "validationCode", "validationResponse")


def _okta(call: Call, _: Handshake) -> Reply:
    challenges = call.header(b"x-okta-verification-challenge")
    if call.method != "GET":
        return None
    if len(challenges) != 1 or not _CHALLENGE.fullmatch(challenges[0]):
        return Unproven(
            "signature_malformed", "the sender's challenge is missing or has characters that no sender uses"
        )
    return _json({"verification": challenges[0].decode()})


def _discord(call: Call, _: Handshake) -> Reply:
    """PING of interactions is 1, that of webhook events 0. An event is 1, too, and says what has happened."""
    kind = _value(call, b'"type"', "type")
    if kind == b"1" and _value(call, b'"event"', "event") is None:
        return _json({"type": 1})
    if kind == b"0":
        return HandshakeAnswer(CallerAnswer(204), "the sender's ping was answered")
    return None


def _x_signed_again(call: Call, _: Handshake) -> Reply:
    """A challenge is signed for anybody. Sent as a body, it would be a call with a right signature."""
    if call.method == "POST" and _PLAIN_TOKEN.fullmatch(call.body.strip()):
        return Unproven("signature_mismatch", "the body is a text that was signed as a challenge")
    return None


def _braintree_signed_again(call: Call, _: Handshake) -> Reply:
    """The same for a challenge that is sent as a payload."""
    if any(_BRAINTREE.fullmatch(text) for text in in_body(call, ("bt_payload",))):
        return Unproven("signature_mismatch", "bt_payload is a text that was signed as a challenge")
    return None


def _sns(call: Call, _: Handshake) -> Reply:
    match in_body(call, ("Type",)):
        case [b"Notification"]:
            return None
        case [b"SubscriptionConfirmation"]:
            return _empty(ASKS_TO_CONFIRM)
        case [b"UnsubscribeConfirmation"]:
            return _empty("the subscription of the topic has ended; nothing is started")
        case _:
            return Unproven("signature_mismatch", "the Type in the body is none that the sender has")


def confirmation_at(call: Call) -> str | None:
    """The address that confirms the subscription this call asks for; None if it asks for none."""
    if _value(call, b"Confirmation", "Type") != b'"SubscriptionConfirmation"':
        return None
    address = as_text(_value(call, b"SubscribeURL", "SubscribeURL") or b"")
    return address if _SUBSCRIBE.fullmatch(address) else None


def _slack(call: Call, _: Handshake) -> Reply:
    word = b"url_verification"
    challenge = _text(call, word, "challenge")
    is_probe = challenge is not None and _text(call, word, "type") == word
    return _answered(challenge or b"", "challenge") if is_probe else None


def _slack_ssl_check(call: Call, _: Handshake) -> Reply:
    """Sent now and then, unsigned, to the URL of a slash command, to see whether its certificate is good."""
    if len(call.body) > _LONGEST_PROBE or b"ssl_check=1" not in call.body:
        return None
    signed = call.first_header(b"x-slack-signature") is not None
    if signed or (b"ssl_check", b"1") not in query_pairs(call.body):
        return None
    return _empty("the sender's unsigned check of the certificate was answered; it starts nothing")


def _twitch(call: Call, _: Handshake) -> Reply:
    if call.header(b"twitch-eventsub-message-type") != [b"webhook_callback_verification"]:
        return None
    challenge = _text(call, b"challenge", "challenge")
    return None if challenge is None else _answered(challenge, "challenge")


def _xero(call: Call, _: Handshake) -> Reply:
    events = _value(call, b'"events"', "events")
    is_none = events is not None and b"".join(events.split()) == b"[]"
    return _empty("the sender's intent to receive was answered") if is_none else None


def _subscribed(call: Call, member: str = "") -> Reply:
    """Echoed without a verify token, to anybody: calls are proven by themselves. Who ends a subscription nobody can tell."""
    modes, challenges = _parameters(call, b"hub.mode"), _parameters(call, b"hub.challenge")
    if call.method != "GET" or not modes:
        return None
    if modes != [b"subscribe"] or len(challenges) != 1:
        return Unproven("credential_missing", "only a subscription is confirmed without a verify token")
    return _answered(challenges[0], "hub.challenge", member)


def _smartsheet(call: Call, _: Handshake) -> Reply:
    challenges = call.header(b"smartsheet-hook-challenge")
    if not challenges:
        return None
    challenge = challenges[0] if len(challenges) == 1 else b""
    return _answered(challenge, "challenge", "smartsheetHookResponse")


def _dropbox(call: Call, _: Handshake) -> Reply:
    challenges = _parameters(call, b"challenge")
    return _answered(challenges[0], "challenge") if call.method == "GET" and len(challenges) == 1 else None


def _woocommerce_ping(call: Call, _: Handshake) -> Reply:
    """Sent, unsigned, when the webhook is saved there. Anything but 200 and the shop cannot save it."""
    signed = call.first_header(b"x-wc-webhook-signature") is not None
    if signed or not _PING.fullmatch(call.body):
        return None
    return _empty("the shop's unsigned test call was answered; it starts nothing")


def _notion(call: Call, _: Handshake) -> Reply:
    """The first call brings the token that signs later ones. Only its owner can say whether it is the real one."""
    token = _text(call, b"verification_token", "verification_token") or b""
    if call.first_header(b"x-notion-signature") is not None or not _SECRET.fullmatch(token):
        return None
    return _empty(ANNOUNCED, token) if len(members(call.body)) == 1 else None


def _asana(call: Call, _: Handshake) -> Reply:
    secrets = [value.strip() for value in call.header(b"x-hook-secret")]
    signed = call.first_header(b"x-hook-signature") is not None
    if signed or len(secrets) != 1 or not _SECRET.fullmatch(secrets[0]):
        return None
    reply = _empty(ANNOUNCED, secrets[0])
    reply.answer.headers = [(b"x-hook-secret", secrets[0]), _NO_STORE]
    return reply


_GET = frozenset({"GET"})
WAYS: dict[HandshakeKind, HandshakeSteps] = {
    "none": HandshakeSteps(),
    "slack": HandshakeSteps(_slack_ssl_check, _slack),
    "meta": HandshakeSteps(_meta, methods=_GET),
    "xero": HandshakeSteps(after=_xero),
    "woocommerce_ping": HandshakeSteps(_woocommerce_ping),
    "zoom": HandshakeSteps(after=_zoom),
    "notion": HandshakeSteps(_notion),
    "asana": HandshakeSteps(_asana),
    "twitch": HandshakeSteps(after=_twitch),
    "dropbox": HandshakeSteps(_dropbox, methods=_GET),
    "strava": HandshakeSteps(lambda call, _: _subscribed(call, "hub.challenge"), methods=_GET),
    "websub": HandshakeSteps(lambda call, _: _subscribed(call), methods=_GET),
    "smartsheet": HandshakeSteps(_smartsheet),
    "reachable": HandshakeSteps(_reachable, methods=_GET | {"HEAD"}),
    "challenge": HandshakeSteps(_challenge),
    "graph": HandshakeSteps(_graph),
    "cloudevents": HandshakeSteps(_cloudevents, methods=frozenset({"OPTIONS"})),
    "event_grid": HandshakeSteps(after=_event_grid),
    "okta": HandshakeSteps(after=_okta, methods=_GET),
    "discord": HandshakeSteps(after=_discord),
    "x": HandshakeSteps(_x, _x_signed_again, _GET),
    "braintree": HandshakeSteps(_braintree, _braintree_signed_again, _GET),
    "sns": HandshakeSteps(after=_sns),
}
