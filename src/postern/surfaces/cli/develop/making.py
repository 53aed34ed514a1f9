"""Calls that `postern send --to` makes and sends by itself. It is loaded late, because the senders' files and
the requests' models take long to load."""

import secrets
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

from postern.core.documents import Document
from postern.core.problems import Refused
from postern.core.signatures.scheme import SignatureScheme
from postern.core.webhooks import settings
from postern.core.webhooks.making import Made, Occasion
from postern.surfaces.cli.develop.senders import samples_of
from postern.surfaces.cli.develop.target import LARGEST_ANSWER, checked, quoted
from postern.surfaces.cli.files import read_secret
from postern.surfaces.cli.gateway.api import api, end_refused
from postern.surfaces.cli.gateway.web import FAILURES, Web, body_of, reason
from postern.surfaces.cli.run import UNAVAILABLE, end
from postern.usecases.answers import shown
from postern.usecases.shapes import validated
from postern.usecases.signatures import senders, sending
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.signatures.views import SentCall
from postern.usecases.webhooks.views import Webhook, WithSignature, WithToken

ANSWER_WITHIN = 60.0


class Here:
    """Makes calls of a sender, or of a webhook's sender, and sends them from here."""

    def __init__(self, target: str, url: str) -> None:
        parts = urlsplit(checked(url))
        self.url, self.event = url, ""
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._path, self._query = parts.path or "/", parts.query
        self._scheme: SignatureScheme | None = None
        self._how: settings.Authentication = settings.NoAuthentication()
        if not target.startswith("wh_"):
            self.known = samples_of(target)
            self._scheme = SignatureScheme.from_document(senders.about(target).scheme)
            self._how = settings.SignatureAuthentication(provider=target)
            return
        self.known = samples_of(target)
        how = api.get(Webhook, "webhooks", target).authentication
        if isinstance(how, WithSignature):
            self._scheme = SignatureScheme.from_document(how.scheme or {})
            self._how = settings.SignatureAuthentication(provider=how.provider)
        elif isinstance(how, WithToken):
            self._how = shown(settings.TokenAuthentication, how)

    def send(
        self, document: Document, secret: str | None, count: int, rate: float | None
    ) -> Iterator[SentCall]:
        if secret is None and self._how.method != "none":
            end("--to needs --secret: what to sign with, as env:NAME, file:PATH or -")
        key = read_secret(secret).encode() if secret is not None else b""
        try:
            request = validated(SendRequest, document)
            made = [self._make(key, request)]  # what cannot be made ends the command before anything is sent
        except Refused as refused:
            end_refused(refused)
        with closing(Web(self._base, by_proxy=False)) as web:
            began = time.monotonic()
            for number in range(count):
                if rate:
                    time.sleep(max(0.0, number / rate - (time.monotonic() - began)))
                yield self._send(web, made.pop() if made else self._make(key, request))

    def _make(self, key: bytes, request: SendRequest) -> Made:
        draft = sending.draft_of(self.known, request)
        self.event = draft.event
        occasion = Occasion(time.time(), secrets.token_bytes(32), self._base, self._path, self._query)
        return sending.made(self._how, self._scheme, key, draft, occasion, request)

    def _send(self, web: Web, made: Made) -> SentCall:
        target = quoted(self._path, made.query)
        began = time.perf_counter()
        try:
            with web.ask("POST", target, dict(made.headers), made.body, ANSWER_WITHIN) as response:
                answer = body_of(response, LARGEST_ANSWER)
        except FAILURES as error:
            end(f"{self._base} cannot be reached: {reason(error)}", UNAVAILABLE)
        return SentCall(
            status=response.status,
            code="",
            invocation_id=None,
            detail="",
            answer=answer.decode("utf-8", "replace")[:2000],
            ms=round((time.perf_counter() - began) * 1000, 1),
        )
