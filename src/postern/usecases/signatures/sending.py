"""Make a call as its sender would, and send it the whole way: to the webhook's public URL."""

import asyncio
import json
import time
from dataclasses import replace
from secrets import token_bytes
from typing import Annotated

import msgspec
from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT
from postern.core.calls.paths import InvalidPath, parse_path
from postern.core.documents import BodyChanges, read_kept
from postern.core.fetched import Fetched
from postern.core.problems import PROBLEMS, FetchTrouble, Refused, invalid
from postern.core.signatures.algorithms import is_shared
from postern.core.signatures.credential import Credential
from postern.core.signatures.encoding import is_stand_in
from postern.core.signatures.redact import TEST_CALL
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.making import (
    CannotMake,
    Draft,
    Made,
    Occasion,
    Wrong,
    cannot_sign,
    signed,
    unsigned,
    with_token,
)
from postern.core.webhooks.settings import Authentication, TokenAuthentication
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.access.audit import note_down
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import WHOLE, Shape, given_body
from postern.usecases.signatures import senders, views
from postern.usecases.stored_webhook import check_secrets, stored
from postern.usecases.webhooks.compiling import answer_timeout, arrays_of, credential_of
from postern.usecases.webhooks.resolving import scheme_of

RECORDED = "recorded"
MINIMAL = "minimal"
MOST_CALLS = 100
SLOWEST = 0.01
"""Calls a second."""
CALLS_AT_ONCE = 20
ANSWER_WITHIN = 15.0
LONGEST_ANSWER = 2000
SKEW = 2.0
"""Seconds by which the clocks of two machines may differ."""


class SendRequest(Shape):
    """Which call to make: one of the webhook's samples by its event, or a body of one's own. ``wrong`` breaks it in
    one way. Words in braces, like {uuid} and {timestamp}, are filled in for each call."""

    event: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="One of its test calls; without it the first."
    )
    body: Annotated[str, Field(max_length=LARGEST_PAYLOAD_LIMIT)] | None = Field(default=None, repr=False)
    body_base64: Annotated[str, Field(max_length=LARGEST_PAYLOAD_LIMIT * 2)] | None = Field(
        default=None, repr=False
    )
    changes: BodyChanges = Field(
        default={},
        max_length=50,
        repr=False,
        description='Values to set in the body, by their paths: {"data.id": 7}.',
    )
    wrong: Wrong | None = None
    count: Annotated[int, Field(ge=1, le=MOST_CALLS), WHOLE] = 1
    rate: Annotated[float, Field(ge=SLOWEST, le=MOST_CALLS)] | None = Field(
        default=None, description="Calls a second. Without it each waits for the answer of the one before."
    )


async def samples(gateway: Gateway, actor: Actor, webhook_id: str) -> list[views.SampleCall]:
    """The calls that can be sent to a webhook as a test: its sender's usual events, and what was recorded of
    it. The first is what is sent by itself."""
    require(actor, "read")
    return await _samples(gateway, await stored(gateway, webhook_id))


async def send(gateway: Gateway, actor: Actor, webhook_id: str, request: SendRequest) -> views.Sent:
    """Make a call as the webhook's sender would, with its stored secret, and send it to the webhook's public
    URL: it comes in, is recorded and starts workflows as any other call. The signature is not shown."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    _check_can_be_made(webhook)
    draft = draft_of(await _samples(gateway, webhook), request)
    # Actors who may not see what a stored secret signs (`signatures.test`) must not read it in the history.
    if actor.is_key:
        draft = replace(draft, headers=(*draft.headers, (TEST_CALL.decode(), "signature not kept")))
    url = gateway.site.webhook_url(webhook.address)
    sender = _Sender(gateway, webhook, draft, request, url)
    sender.make()  # what cannot be made is refused before anything is noted or sent
    what = {"event": draft.event, "count": request.count, "wrong": request.wrong}
    said = {name: value for name, value in what.items() if value}
    await note_down(gateway, actor, "test calls sent", webhook_id, **said)
    return views.Sent(webhook_id=webhook_id, url=url, event=draft.event, calls=await sender.send_all())


def draft_of(known: list[views.SampleCall], request: SendRequest) -> Draft:
    """The sample that was asked for, or the first, with the body that was given in its place."""
    for path in request.changes:
        try:
            parse_path(path)
        except InvalidPath as error:
            raise invalid("changes", str(error)) from None
    events = [sample.event for sample in known]
    if request.event is not None and request.event not in events:
        raise invalid("event", f"there is no such sample; there are {', '.join(events)}")
    chosen = known[0 if request.event is None else events.index(request.event)]
    given = given_body(request.body, request.body_base64)
    body = chosen.body.encode() if given is None else given
    return Draft(chosen.headers, body, chosen.event)


def made(
    how: Authentication,
    scheme: SignatureScheme | None,
    secret: bytes,
    draft: Draft,
    occasion: Occasion,
    request: SendRequest,
) -> Made:
    """A call with a secret that was given with it: nothing of it comes from a gateway."""
    try:
        credential = None if scheme is None else SignatureCredential(scheme, secret)
    except ValueError as error:
        raise invalid("secret", str(error)) from None
    return _made(how, credential, secret, draft, occasion, request)


class _Sender:
    def __init__(
        self, gateway: Gateway, webhook: StoredWebhook, draft: Draft, request: SendRequest, url: str
    ) -> None:
        self._gateway = gateway
        self._webhook = webhook
        self._draft = draft
        self._request = request
        self._url = url
        settings, resolved = webhook.settings, webhook.resolved
        how = settings.authentication
        self._credential = credential_of(how, resolved, webhook.secrets)
        self._main = webhook.secrets["main"].value if how.method != "none" else b""
        self._timeout = (answer_timeout(settings, resolved) or 0.0) + ANSWER_WITHIN

    def make(self) -> Made:
        occasion = Occasion(
            self._gateway.clock(),
            token_bytes(32),
            self._gateway.site.base_url,
            f"/webhook/{self._webhook.address}",
        )
        how = self._webhook.settings.authentication
        return _made(how, self._credential, self._main, self._draft, occasion, self._request)

    async def send_all(self) -> list[views.SentCall]:
        """The first shows whether the URL leads here; the others are sent only then."""
        first = await self._send()
        rest = self._request.count - 1
        if self._request.rate is None:
            return [first, *[await self._send_on() for _ in range(rest)]]
        room = asyncio.Semaphore(CALLS_AT_ONCE)
        pause = 1 / self._request.rate

        async def one(number: int) -> views.SentCall:
            await asyncio.sleep(pause * (number + 1))
            async with room:
                return await self._send_on()

        return [first, *await asyncio.gather(*map(one, range(rest)))]

    async def _send_on(self) -> views.SentCall:
        try:
            return await self._send()
        except Refused as refused:
            return views.SentCall(
                status=None, code=refused.code, invocation_id=None, detail=refused.detail, answer="", ms=0.0
            )

    async def _send(self) -> views.SentCall:
        call_own = self._gateway.outbound.call_own
        if call_own is None:
            raise Refused("conflict", "this process sends nothing")
        made = self.make()
        if self._gateway.outbound.prepare_own is not None:
            await self._gateway.outbound.prepare_own()
        sent_at, began = self._gateway.clock(), time.monotonic()
        target = f"/webhook/{self._webhook.address}" + (f"?{made.query}" if made.query else "")
        try:
            heard = await call_own(target, dict(made.headers), made.body, self._timeout)
        except FetchTrouble as trouble:
            raise Refused(
                "temporarily_unavailable",
                f"the webhook's public URL cannot be called from here: {trouble.detail}. The address before it is "
                "POSTERN_BASE_URL, and the gateway must serve",
            ) from None
        return await self._sent(heard, sent_at, round((time.monotonic() - began) * 1000, 1))

    async def _sent(self, heard: Fetched, sent_at: float, ms: float) -> views.SentCall:
        """Returns the call's outcome. An answer counts only as far as the history confirms it."""
        invocation_id = heard.header("x-invocation-id") or ""
        story = await self._gateway.store.history.get(invocation_id) if invocation_id else None
        answer = heard.body[:LONGEST_ANSWER].decode("utf-8", "replace")
        if story is None or story.invocation.webhook_id != self._webhook.id:
            code = _member(heard.body, "code")
            if code not in PROBLEMS or code == "webhook_not_found":
                raise Refused(
                    "conflict",
                    f"{self._url} answers {heard.status}, and no such call has come in here: the public URL leads "
                    "somewhere else. POSTERN_BASE_URL says what it begins with",
                )
            # Rejected and only counted, as in a flood.
            return views.SentCall(
                status=heard.status, code=code, invocation_id=None, detail=PROBLEMS[code].help, answer=answer, ms=ms
            )  # fmt: skip
        invocation = story.invocation
        before = invocation.received_at < sent_at - SKEW or _member(heard.body, "status") == "duplicate"
        return views.SentCall(
            status=heard.status,
            code="duplicate" if before else invocation.code,
            invocation_id=invocation.id,
            detail="the same event has come in before, as this invocation" if before else invocation.detail,
            answer=answer,
            ms=ms,
        )


async def _samples(gateway: Gateway, webhook: StoredWebhook) -> list[views.SampleCall]:
    how = webhook.settings.authentication
    offered = [*senders.samples_of(how.provider)] if how.method == "hmac" else []
    headers = (("Content-Type", "application/json"),)
    kept = await gateway.store.samples.get(webhook.id)
    if kept is not None and kept.trigger is not None:
        body = _payload(kept.trigger, arrays_of(webhook.settings, webhook.resolved) == "whole")
        headers_of_sender = offered[0].headers if offered else headers
        offered.append(
            views.SampleCall(event=RECORDED, title="The recorded event", headers=headers_of_sender, body=body)
        )
    if not offered or how.method != "hmac":
        offered.append(views.SampleCall(event=MINIMAL, title="An empty object", headers=headers, body="{}"))
    return offered


def _payload(trigger: bytes, is_array: bool) -> str:
    payload = read_kept(trigger, dict[str, msgspec.Raw], {}).get("payload", b"{}")
    items = read_kept(payload, dict[str, msgspec.Raw], {}).get("items") if is_array else None
    return bytes(payload if items is None else items).decode("utf-8", "replace")


def _check_can_be_made(webhook: StoredWebhook) -> None:
    check_secrets(webhook)
    how = webhook.settings.authentication
    if how.method == "hmac" and is_stand_in(webhook.secrets["main"].value):
        algorithm = scheme_of(webhook.resolved).algorithm
        awaited = "the sender's secret has not been set here yet: with it, test calls are signed as the sender signs"
        raise Refused("conflict", awaited if is_shared(algorithm) else cannot_sign(algorithm))


def _made(
    how: Authentication,
    credential: Credential | None,
    main: bytes,
    draft: Draft,
    occasion: Occasion,
    request: SendRequest,
) -> Made:
    changes, wrong = request.changes, request.wrong
    try:
        if isinstance(how, TokenAuthentication):
            return with_token(how, main, draft, occasion, changes, wrong)
        if isinstance(credential, SignatureCredential):
            return signed(credential, draft, occasion, changes, wrong)
        if wrong is not None:
            raise CannotMake("anybody may call this webhook, so nothing would be wrong")
        return unsigned(draft, occasion, changes)
    except CannotMake as error:
        raise Refused("conflict", str(error)) from None


def _member(body: bytes, name: str) -> str:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, str) else ""
