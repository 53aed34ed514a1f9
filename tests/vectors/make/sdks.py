"""The vendors' own verifiers, each asked about one vector at a time with the clock stopped at the time of
receipt.

Each is imported when it is first asked: whoever makes the vectors of one sender needs that sender's SDK alone."""

import base64
import json
import logging
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from signing import Confirmation

HERE = Path(__file__).parent
logging.disable(logging.CRITICAL)

Vector = dict[str, Any]


class Later:
    """A module that is imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


adyen = Later("Adyen.util")
discord = Later("discord_interactions")
easypost = Later("easypost.util")
gocardless = Later("gocardless_pro.webhooks")
line = Later("linebot.v3.webhook")
mollie = Later("mollie.utils.webhooks.signature_validator")
openai = Later("openai")
sendgrid = Later("sendgrid.helpers.eventwebhook")
svix = Later("svix")
twilio = Later("twilio.request_validator")
workos = Later("workos")
hubspot = Later("hubspot.utils.signature")
paddle = Later("paddle_billing.Notifications")
razorpay = Later("razorpay")
slack = Later("slack_sdk.signature")
square = Later("square.utils.webhooks_helper")
standardwebhooks = Later("standardwebhooks")
stripe = Later("stripe")
time_machine = Later("time_machine")


@cache
def installed(package: str) -> str:
    """Its version. Where it is not there, the making ends with how to get it: an SDK that cannot be asked must not
    pass for one that refuses."""
    try:
        return version(package)
    except PackageNotFoundError:
        (line,) = [
            line
            for line in (HERE / "requirements.txt").read_text().split()
            if line.startswith(f"{package}==")
        ]
        raise SystemExit(f"this sender's SDK is not installed: pip install {line}") from None


class Question:
    """A vector as SDKs want it: headers by name, the body as text."""

    def __init__(self, made: Vector) -> None:
        self.made = made
        self.secret: str = made["secret"]
        self.bytes = base64.b64decode(made["call"]["body_base64"])
        self.body = self.bytes.decode()
        self.headers = {name.lower(): value for name, value in made["call"]["headers"]}
        if len(self.headers) < len(made["call"]["headers"]):
            raise NotToBeAsked("a repeated header")
        url = made["public_url"] or made["call"]["base_url"] + made["call"]["path"]
        query = made["call"]["query"]
        self.url = url + (f"?{query}" if query and "?" not in url else "")

    def has(self, *names: str) -> list[str]:
        return [self.headers[name] for name in names]


class NotToBeAsked(Exception):
    pass


def sdk(package: str, what: str, ask: Callable[[Question], Any], *, signs: bool = False) -> Confirmation:
    """The SDK's answer: truth is acceptance, an exception is a refusal, and what it cannot be given is
    None."""

    def answer(made: Vector) -> bool | None:
        installed(package)
        try:
            question = Question(made)
            secrets = [made["secret"]] + ([made["second_secret"]] if made["second_secret"] else [])
        except (UnicodeDecodeError, NotToBeAsked):
            return None
        accepted = False
        for secret in secrets:
            question.secret = secret
            try:
                with time_machine.travel(made["at"], tick=False):
                    accepted = accepted or ask(question) is not False
            except Exception:
                continue
        return accepted

    return Confirmation(lambda: f"{package} {installed(package)} {what}", answer, signs)


STRIPE = sdk(
    "stripe",
    "WebhookSignature",
    lambda q: stripe.WebhookSignature.verify_header(q.body, q.headers.get("stripe-signature"), q.secret, 300),
    signs=True,
)
SQUARE = sdk(
    "squareup",
    "verify_signature",
    lambda q: square.verify_signature(
        request_body=q.body,
        signature_header=q.headers["x-square-hmacsha256-signature"],
        signature_key=q.secret,
        notification_url=q.url,
    ),
)
RAZORPAY = sdk(
    "razorpay",
    "verify_webhook_signature",
    lambda q: razorpay.Utility().verify_webhook_signature(
        q.body, q.headers["x-razorpay-signature"], q.secret
    ),
)
SLACK = sdk(
    "slack-sdk",
    "SignatureVerifier",
    lambda q: slack.SignatureVerifier(q.secret).is_valid_request(q.body, q.headers),
    signs=True,
)
HUBSPOT = sdk(
    "hubspot-api-client",
    "Signature v3",
    lambda q: hubspot.Signature.is_valid(
        signature=q.headers["x-hubspot-signature-v3"],
        client_secret=q.secret,
        request_body=q.body,
        http_uri=q.url,
        http_method=q.made["call"]["method"],
        signature_version="v3",
        timestamp=q.headers.get("x-hubspot-request-timestamp"),
    ),
    signs=True,
)
STANDARD = sdk(
    "standardwebhooks",
    "Webhook",
    lambda q: standardwebhooks.Webhook(q.secret).verify(q.body, q.headers, json_parse=False),
    signs=True,
)
# BigCommerce has its callers encode the client secret, because the library decodes what it is given.
BIGCOMMERCE = sdk(
    "standardwebhooks",
    "Webhook with the secret as BigCommerce documents it",
    lambda q: standardwebhooks.Webhook(base64.b64encode(q.secret.encode()).decode()).verify(
        q.body, q.headers, json_parse=False
    ),
    signs=True,
)


SVIX = sdk("svix", "Webhook", lambda q: svix.Webhook(q.secret).verify(q.body, q.headers))
OPENAI = sdk(
    "openai",
    "webhooks.verify_signature",
    lambda q: openai.OpenAI(api_key="k").webhooks.verify_signature(q.body, q.headers, secret=q.secret),
)
GOCARDLESS = sdk(
    "gocardless_pro",
    "webhooks",
    lambda q: gocardless._verify_signature(q.body, q.secret, q.headers["webhook-signature"]),
)
EASYPOST = sdk(
    "easypost",
    "validate_webhook",
    lambda q: easypost.validate_webhook(
        q.bytes, {"X-Hmac-Signature": q.headers.get("x-hmac-signature")}, q.secret
    ),
)
MOLLIE = sdk(
    "mollie-api-py",
    "SignatureValidator",
    lambda q: mollie.SignatureValidator.validate(q.body, q.secret, q.headers.get("x-mollie-signature")),
)
LINE = sdk(
    "line-bot-sdk",
    "SignatureValidator",
    lambda q: line.SignatureValidator(q.secret).validate(q.body, q.headers["x-line-signature"]),
)
WORKOS = sdk(
    "workos",
    "webhooks.verify_header",
    lambda q: workos.WorkOSClient(api_key="k", client_id="c").webhooks.verify_header(
        event_body=q.body, event_signature=q.headers["workos-signature"], secret=q.secret
    ),
)
ADYEN = sdk(
    "Adyen",
    "is_valid_hmac_notification",
    lambda q: bool(adyen.is_valid_hmac_notification(json.loads(q.body), q.secret)),
)
DISCORD = sdk(
    "discord-interactions",
    "verify_key",
    lambda q: discord.verify_key(
        q.bytes, q.headers["x-signature-ed25519"], q.headers["x-signature-timestamp"], q.secret
    ),
)
SENDGRID = sdk(
    "sendgrid",
    "EventWebhook",
    lambda q: sendgrid.EventWebhook(q.secret).verify_signature(
        q.body,
        q.headers["x-twilio-email-event-webhook-signature"],
        q.headers["x-twilio-email-event-webhook-timestamp"],
    ),
)
TWILIO = sdk(
    "twilio",
    "RequestValidator",
    lambda q: twilio.RequestValidator(q.secret).validate(
        q.url, _form(q.body), q.headers["x-twilio-signature"]
    ),
)


def _form(body: str) -> Any:
    """As web frameworks give it to the SDK."""

    class Values(dict[str, list[str]]):
        getall = dict.__getitem__

    return Values(parse_qs(body, keep_blank_values=True))


class _PaddleRequest:
    def __init__(self, question: Question) -> None:
        self.headers = {"Paddle-Signature": question.headers.get("paddle-signature")}
        self.body = question.bytes


PADDLE = sdk(
    "paddle-python-sdk",
    "Verifier",
    lambda q: paddle.Verifier().verify(_PaddleRequest(q), paddle.Secret(q.secret)),
)


class Node:
    """One Node process that answers for the SDKs that exist on npm only."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: dict[str, Any]) -> Any:
        if self._process is None:
            self._process = self._started()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def _started(self) -> "subprocess.Popen[str]":
        if not (HERE / "node_modules").is_dir():
            raise SystemExit("this sender's SDK is not installed: npm ci")
        return subprocess.Popen(
            ["node", "confirm.mjs"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait(10)


NODE = Node()


def npm(name: str, package: str, what: str, *, signs: bool = False, any_bytes: bool = False) -> Confirmation:
    locked = json.loads((HERE / "package-lock.json").read_text())["packages"][f"node_modules/{package}"][
        "version"
    ]

    def answer(made: Vector) -> bool | None:
        if len({header.lower() for header, _ in made["call"]["headers"]}) < len(made["call"]["headers"]):
            return None
        try:
            if not any_bytes:
                base64.b64decode(made["call"]["body_base64"]).decode()
        except UnicodeDecodeError:
            return None
        question = {
            "sdk": name,
            "at": made["at"],
            "headers": made["call"]["headers"],
            "body_base64": made["call"]["body_base64"],
        }
        secrets = [made["secret"]] + ([made["second_secret"]] if made["second_secret"] else [])
        return any(NODE.ask(question | {"secret": secret}) is True for secret in secrets)

    return Confirmation(lambda: f"{package} {locked} {what}", answer, signs)


SHOPIFY = npm("shopify", "@shopify/shopify-api", "webhooks.validate")
GITHUB = npm("github", "@octokit/webhooks-methods", "sign, verify", signs=True)
LINEAR = npm("linear", "@linear/sdk", "LinearWebhookClient", any_bytes=True)
_PACKAGES = {
    "stripe": "stripe",
    "slack": "slack-sdk",
    "standardwebhooks": "standardwebhooks",
    "bigcommerce": "standardwebhooks",
}


def signed_by_sdk(name: str, secret: str, body: bytes, at: int) -> str | None:
    """The header value that the vendor's SDK itself makes, where it can make one."""
    if name in _PACKAGES:
        installed(_PACKAGES[name])
    text = body.decode()
    moment = datetime.fromtimestamp(at, UTC)
    message_id = "msg_2Lh9KRb0pzN4LePd3XiA4v12Axj"
    match name:
        case "stripe":
            return stripe.WebhookSignature.generate_signature_header(text, secret, at)
        case "slack":
            return slack.SignatureVerifier(secret).generate_signature(timestamp=str(at), body=text)
        case "standardwebhooks":
            return standardwebhooks.Webhook(secret).sign(message_id, moment, text)
        case "bigcommerce":
            return standardwebhooks.Webhook(base64.b64encode(secret.encode()).decode()).sign(
                message_id, moment, text
            )
        case "github":
            return NODE.ask(
                {"sdk": name, "secret": secret, "sign": True, "body_base64": base64.b64encode(body).decode()}
            )
    return None
