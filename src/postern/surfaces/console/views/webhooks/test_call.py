"""Send a test call: a call as the webhook's sender would make it, from the webhook's own pages."""

import re

import msgspec
from starlette.responses import Response

from postern.core.problems import Refused
from postern.core.webhooks.making import PLACEHOLDERS
from postern.surfaces.console.visit import PageValues, Visit, problem_of
from postern.usecases.shapes import validated
from postern.usecases.signatures import sending
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.signatures.views import SampleCall, SentCall
from postern.usecases.webhooks import webhooks

WRONGS = [
    ("", "Nothing: as the sender makes it"),
    ("secret", "Another secret"),
    ("body", "Another body than the signed one"),
    ("stale", "Signed too long ago"),
    ("missing", "No signature or token"),
]

# A number's place in JSON: {number}, without quotes.
_BARE = re.compile(r"(?<=[:,\[ ])\{(\w+)\}")
_QUOTED = re.compile(r'"@@(\w+)@@"')


async def context(visit: Visit, webhook_id: str) -> PageValues:
    if not visit.actor.may("write"):
        return {"samples": []}
    known = await visit.ask(sending.samples, webhook_id)
    return {
        "events": [(sample.event, sample.title) for sample in known],
        "samples": [(sample.event, sample.title, readable(sample.body)) for sample in known],
        "wrongs": WRONGS,
        "placeholders": PLACEHOLDERS,
    }


async def send(visit: Visit) -> Response:
    """Scripts put what came of it beside the form; without them the call's own page says it."""
    webhook_id = visit.at("webhook")
    try:
        result = await _sent(visit, webhook_id)
    except Refused as refused:
        if not visit.wants_part:
            raise
        return visit.page("webhook/test_result.html", result=None, problem=problem_of(refused))
    if visit.wants_part:
        mapped = (await visit.ask(webhooks.show, webhook_id)).field_mapping.paths()
        then = "" if mapped else f"/webhooks/{webhook_id}/settings?first#mapping"
        return visit.page("webhook/test_result.html", result=result, then=then)
    if result.invocation_id is None:
        raise Refused("conflict", f"The call was answered {result.status} and not recorded: {result.detail}")
    return visit.to(f"/calls/{result.invocation_id}")


async def _sent(visit: Visit, webhook_id: str) -> SentCall:
    form = await visit.form()
    known = await visit.ask(sending.samples, webhook_id)
    fields = {"event": form.text("event") or known[0].event, "wrong": form.text("wrong") or None}
    body = _typed(known, fields["event"] or "", form)
    if body is not None:
        fields["body"] = body
    request = validated(SendRequest, {name: value for name, value in fields.items() if value is not None})
    sent = await visit.ask(sending.send, webhook_id, request)
    return sent.calls[0]


def _typed(known: list[SampleCall], event: str, form: dict[str, str]) -> str | None:
    """The body where somebody has changed it. One that was left alone is sent as the sender writes it."""
    for number, sample in enumerate(known):
        if sample.event == event:
            typed = form.get(f"body-{number}", "").replace("\r\n", "\n")
            return typed if typed and typed.strip() != readable(sample.body).strip() else None
    return None


def readable(body: str) -> str:
    """A sample's body for people to edit; one that cannot be laid out stays as it is."""
    quoted = _BARE.sub(r'"@@\1@@"', body)
    try:
        text = msgspec.json.format(quoted.encode(), indent=2).decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return body
    return _QUOTED.sub(r"{\1}", text)
