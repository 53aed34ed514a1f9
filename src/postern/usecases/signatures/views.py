"""The answers about senders and their signatures."""

from typing import Literal

from postern.core.documents import Document
from postern.core.signatures.diagnosis.variants import Variation
from postern.core.signatures.secret_form import SecretForm
from postern.presets import SampleCall as SampleCall
from postern.presets import SendAgain as SendAgain
from postern.usecases.answers import View
from postern.usecases.history.views.calls import Step


class PastedSecret(View):
    called: str
    paste: str
    where: str
    beside: str
    """The label of a second text that the sender's handshake needs, given as ``verifyToken``; empty if it needs none."""
    beside_help: str
    form: SecretForm


class Sender(View):
    timeout_seconds: float | None
    retries: str
    retry_hours: int
    then: str
    reactions: str


class Provider(View):
    """A built-in scheme: how the sender signs, what to paste where, how it behaves."""

    name: str
    title: str
    version: int
    aliases: tuple[str, ...]
    scheme: Document
    secret: PastedSecret
    setup: tuple[str, ...]
    has_public_key: bool
    needs_public_url: bool
    needs_verify_token: bool
    sender: Sender
    sends_arrays: bool
    synchronous_timeout_seconds: float | None
    send_again: SendAgain | None
    samples: tuple[SampleCall, ...]


class CustomScheme(View):
    """The JSON Schema of each member, with its meaning."""

    members: Document


class Expected(View):
    secret: Literal["main", "second"]
    signature: str


class SignatureResult(View):
    """``expected`` is empty for whoever may not change the webhook whose secrets made it."""

    verified: bool
    matched: Literal["main", "second"] | None
    code: str | None
    explanation: str
    steps: list[Step]
    signed_content: str | None
    signed_content_base64: str | None
    received: list[str]
    expected: list[Expected]
    would_verify_if: list[Variation]
    resembles: list[str]


class Explanation(View):
    """The explanation of a call whose signature is not the trouble."""

    invocation_id: str
    code: str
    explanation: str
    would_verify_if: list[Variation]
    resembles: list[str]


class SignatureExplanation(SignatureResult):
    """The explanation of a call whose signature is the trouble: all that the tester says."""

    code: str
    invocation_id: str


class ConfirmedSubscription(View):
    webhook_id: str
    invocation_id: str
    topic: str


class SentCall(View):
    """A call that was sent, and what became of it. ``status`` is null where there was no answer; ``invocationId`` is
    null where the call was not recorded by itself."""

    status: int | None
    code: str
    invocation_id: str | None
    detail: str
    answer: str
    """The beginning of the answer's body."""
    ms: float


class Sent(View):
    webhook_id: str
    url: str
    event: str
    calls: list[SentCall]
