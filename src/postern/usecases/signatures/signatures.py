"""Signatures for their owner: the senders Postern knows and the tester that explains."""

import base64
from typing import Annotated
from urllib.parse import urlsplit

from msgspec.structs import asdict
from pydantic import Field

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.calls.call import Call
from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT
from postern.core.problems import PROBLEMS, Refused, invalid
from postern.core.signatures.algorithms import is_token
from postern.core.signatures.diagnosis.diagnose import Diagnosis, diagnose, resembles, sentence
from postern.core.signatures.diagnosis.variants import SenderSetup
from postern.core.signatures.encoding import is_stand_in
from postern.core.signatures.redact import MASK, TEST_CALL
from postern.core.signatures.scheme import SignatureScheme, json_schema
from postern.core.webhooks import settings
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.answers import shown
from postern.usecases.history.history import recorded
from postern.usecases.history.views.calls import Step
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.key_sets import LARGEST_KEY_SET
from postern.usecases.runtime.one_at_a_time import OneAtATime
from postern.usecases.shapes import Shape, given_body
from postern.usecases.signatures import senders, views
from postern.usecases.stored_webhook import check_secrets
from postern.usecases.stored_webhook import stored as stored_webhook
from postern.usecases.webhooks.requests import Generate, SignatureAuthentication
from postern.usecases.webhooks.resolving import resolved, scheme_of

# Hundreds of HMACs: never so many at once that anybody's call waits for them.
line = OneAtATime(
    "diagnosis", 8, "Too many signatures are being explained at once; try again in a few seconds."
)

SECRET_AWAITED = (
    "The sender's secret, or its public key, has not been set here yet. Until it is, no signature can match."
)


class TestedCall(Shape):
    """A call as it was sent. ``url`` is the one that the sender signed, unless ``publicUrl`` is set."""

    method: Annotated[str, Field(max_length=20)] = "POST"
    url: Annotated[str, Field(max_length=8000, repr=False)] = ""
    headers: Annotated[list[tuple[str, str]], Field(max_length=200, repr=False)] = []
    body: Annotated[str, Field(max_length=LARGEST_PAYLOAD_LIMIT)] | None = Field(default=None, repr=False)
    body_base64: Annotated[str, Field(max_length=LARGEST_PAYLOAD_LIMIT * 2)] | None = Field(
        default=None, repr=False
    )


class SignatureTest(Shape):
    """How to check (``authentication``, or the stored settings of ``webhookId``) and what (``call``, or a
    recorded one)."""

    authentication: SignatureAuthentication | None = None
    webhook_id: str | None = None
    call: TestedCall | None = None
    invocation_id: str | None = None
    at: float | None = None
    fetched: Annotated[
        dict[str, Annotated[str, Field(max_length=LARGEST_KEY_SET)]],
        Field(
            max_length=4,
            repr=False,
            description="Key sets and certificates by their addresses, in the place of what is there. An empty address is the one that "
            "the call is checked with.",
        ),
    ] = {}


async def providers(gateway: Gateway, actor: Actor) -> list[views.Provider]:
    """The built-in schemes: how each sender signs, what to paste where, and how it behaves."""
    require(actor, "read")
    return [senders.about(name) for name in senders.names()]


async def provider(gateway: Gateway, actor: Actor, name: str) -> views.Provider:
    """One sender: how it signs, what to set up there, what to paste as the secret, and how it sends again."""
    require(actor, "read")
    known = list(senders.names())
    if name not in known:
        raise Refused("not_found", f"there is no provider of this name; there are {', '.join(known)}")
    return senders.about(name)


async def scheme(gateway: Gateway, actor: Actor) -> views.CustomScheme:
    """The members of a custom scheme, which describes how a sender signs that is not built in."""
    require(actor, "read")
    return views.CustomScheme(members=json_schema()["properties"])


async def propose(
    gateway: Gateway,
    actor: Actor,
    description: str | None = None,
    invocation_id: str | None = None,
    call: TestedCall | None = None,
) -> list[views.Provider]:
    """Which built-in scheme fits: by what the sender is called, or by what a call of it (recorded, or pasted)
    looks like. Best first."""
    require(actor, "read")
    if description is None and invocation_id is None and call is None:
        raise invalid("description", "give description or invocationId, one of them")
    if invocation_id is not None:
        invocation = (await recorded(gateway, invocation_id)).invocation
        names = resembles(invocation.as_call(gateway.site.base_url), presets.load())
    elif call is not None:
        names = resembles(_call_of(call, gateway.clock()), presets.load())
    else:
        said = (description or "").lower().replace(",", " ").split()
        words = [word for word in said if len(word) > 2 or word in senders.names()]
        scores = {name: _score(senders.about(name), words) for name in senders.names()}
        names = sorted((name for name, score in scores.items() if score), key=lambda name: -scores[name])
    return [senders.about(name) for name in names[:5]]


async def test(gateway: Gateway, actor: Actor, request: SignatureTest) -> views.SignatureResult:
    """Check a call and say whether it verifies, why not, and what would make it. Nothing is recorded or
    started."""
    require(actor, "read")
    if (request.authentication is None) == (request.webhook_id is None):
        raise invalid("authentication", "give authentication or webhookId, one of them")
    if (request.call is None) == (request.invocation_id is None):
        raise invalid("call", "give call or invocationId, one of them")
    if request.webhook_id is not None:
        setup = await _stored_setup(gateway, request.webhook_id)
    else:
        assert request.authentication is not None
        setup = _given_setup(request.authentication)
    if request.invocation_id is not None:
        invocation = (await recorded(gateway, request.invocation_id)).invocation
        call = invocation.as_call(gateway.site.base_url)
    else:
        assert request.call is not None
        call = _call_of(request.call, gateway.clock())
    given = {address: text.encode() for address, text in request.fetched.items()}
    call = await _with_keys(gateway, setup, call, given)
    return await _result(actor, setup, request.webhook_id is not None, call, request.at)


async def explain(
    gateway: Gateway, actor: Actor, invocation_id: str
) -> views.SignatureExplanation | views.Explanation:
    """Why a recorded call got its verdict, and what would fix it, checked against its webhook's current
    settings."""
    require(actor, "read")
    invocation = (await recorded(gateway, invocation_id)).invocation
    call = invocation.as_call(gateway.site.base_url)
    webhook = await gateway.store.webhooks.get(invocation.webhook_id)
    if (
        isinstance(webhook, StoredWebhook)
        and webhook.settings.authentication.method == "hmac"
        and not webhook.unreadable_secrets
        and invocation.code.startswith(("signature_", "timestamp_"))
        and call.first_header(TEST_CALL) is None  # its signature was not kept
    ):
        setup = await _stored_setup(gateway, invocation.webhook_id)
        is_kept = not is_token(setup.scheme.algorithm) or MASK.encode() not in call.header(b"authorization")
        if is_kept:
            call = await _with_keys(gateway, setup, call, {})
            result = asdict(await _result(actor, setup, True, call, None)) | {"code": invocation.code}
            return views.SignatureExplanation(**result, invocation_id=invocation.id)
    problem = PROBLEMS.get(invocation.code)
    why = problem.help if problem else "The call was accepted."
    return views.Explanation(
        invocation_id=invocation.id,
        code=invocation.code,
        explanation=f"{why} {sentence(invocation.detail)}" if invocation.detail else why,
        would_verify_if=[],
        resembles=resembles(call, presets.load()),
    )


async def _with_keys(gateway: Gateway, setup: SenderSetup, call: Call, given: dict[str, bytes]) -> Call:
    """The call with its sender's keys or certificate, if it is checked with such: what was given, or what is at hand."""
    try:
        address = setup.credential().keys_at(call)
    except ValueError:  # the diagnosis says so
        return call
    key_sets = gateway.runtime.key_sets
    if not address:
        return call
    if "" in given:
        given = {address: given[""]}
    if address not in given and address not in key_sets.look(address):
        await key_sets.wait(address)
    return call.but(fetched=key_sets.at_hand | given)


async def _stored_setup(gateway: Gateway, webhook_id: str) -> SenderSetup:
    webhook = await stored_webhook(gateway, webhook_id)
    check_secrets(webhook)
    how = webhook.settings.authentication
    if how.method != "hmac":
        raise Refused("conflict", "this webhook's authentication method is not a signature")
    second = webhook.secrets["second"].value if "second" in webhook.secrets else None
    return _setup(how, scheme_of(webhook.resolved), webhook.secrets["main"].value, second)


def _given_setup(authentication: SignatureAuthentication) -> SenderSetup:
    scheme = scheme_of(resolved(authentication))
    if not isinstance(authentication.secret, str):
        raise invalid("authentication.secret", "is required for a test")
    if isinstance(authentication.second_secret, Generate):
        raise invalid("authentication.secondSecret", "a test needs the secret itself")
    second = authentication.second_secret.encode() if authentication.second_secret else None
    return _setup(authentication.setting(), scheme, authentication.secret.encode(), second)


def _setup(
    how: settings.SignatureAuthentication, scheme: SignatureScheme, main: bytes, second: bytes | None
) -> SenderSetup:
    return SenderSetup(
        scheme, main, second, how.public_url, how.tolerance_seconds, how.require_timestamp_and_digest
    )


def _call_of(tested: TestedCall, now: float) -> Call:
    try:
        url = urlsplit(tested.url)
    except ValueError:
        raise invalid("call.url", "is not a URL") from None
    try:
        body = given_body(tested.body, tested.body_base64, "call.") or b""
        headers = tuple(
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in tested.headers
        )
        path, query = url.path.encode("latin-1"), url.query.encode("latin-1")
    except UnicodeEncodeError:
        raise invalid("call", "headers and url hold Latin-1, a body as text holds Unicode") from None
    base = f"{url.scheme}://{url.netloc}" if url.netloc else ""
    return Call(tested.method, path, query, headers, body, "", now, base)


async def _result(
    actor: Actor, setup: SenderSetup, stored: bool, call: Call, at: float | None
) -> views.SignatureResult:
    """``stored``: the secrets are a webhook's own."""
    diagnosis: Diagnosis = await line.run(lambda: diagnose(setup, call, at, presets.load()))
    awaits_secret = all(is_stand_in(secret) for secret in (setup.main, setup.second) if secret)
    # With a stored secret the expected signature is a forgery ready to use, and a key could ask for one of any
    # bytes, as often as it likes: only for people who may be shown secrets.
    may_see = not stored or (actor.may("write") and not actor.is_key)
    expected = diagnosis.expected if may_see else ()
    signed = diagnosis.signed_bytes
    is_awaited = awaits_secret and diagnosis.code == "signature_mismatch"
    return shown(
        views.SignatureResult,
        diagnosis,
        matched=diagnosis.matched or None,
        explanation=SECRET_AWAITED if is_awaited else diagnosis.explanation,
        steps=[Step(step=step, ok=ok, detail=detail) for step, ok, detail in diagnosis.steps],
        signed_content=None if signed is None else signed.decode("utf-8", "replace"),
        signed_content_base64=None if signed is None else base64.b64encode(signed).decode(),
        expected=[
            views.Expected(secret=which, signature=signature) for which, signature in expected if which
        ],
        received=list(diagnosis.received),
        would_verify_if=list(diagnosis.would_verify_if),
        resembles=resembles(call, presets.load()),
    )


def _score(about: views.Provider, words: list[str]) -> int:
    names = [about.name, about.title.lower(), *(alias.lower() for alias in about.aliases)]
    return sum(
        3 if word in names else 1 for word in words if any(word in name or name in word for name in names)
    )
