"""Send a test call: a call as the webhook's sender would make it, from the webhook's own pages."""

import re

import msgspec
from starlette.responses import Response

from postern.core.problems import Refused
from postern.core.webhooks.making import PLACEHOLDERS
from postern.surfaces.console.visit import Context, ShownProblem, Visit, problem_of
from postern.usecases.history import history
from postern.usecases.history.views.calls import Invocation
from postern.usecases.shapes import validated
from postern.usecases.signatures import sending
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.signatures.views import SampleCall
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


class SentTestCall(msgspec.Struct, frozen=True):
    """What became of the call that was sent."""

    status: int | None
    code: str
    detail: str
    invocation_id: str | None
    answer: str = ""
    ms: float | None = None

    @property
    def taken(self) -> bool:
        return self.status is not None and self.status < 400


async def context(visit: Visit, webhook_id: str) -> Context:
    """What the form is filled with."""
    if not visit.actor.may("write"):
        return {"samples": [], "result": None}
    known = await sending.samples(visit.gateway, visit.actor, webhook_id)
    return {
        "samples": [(one.event, one.title, readable(one.body)) for one in known],
        "wrongs": WRONGS,
        "placeholders": PLACEHOLDERS,
        "result": await _of_page(visit, webhook_id),
    }


async def send(visit: Visit) -> Response:
    """htmx gets what came of it; without it the inspector's page is."""
    webhook_id = visit.at("webhook")
    try:
        result = await _sent(visit, webhook_id)
    except Refused as refused:
        if not visit.wants_part:
            raise
        return _part(visit, None, problem_of(refused))
    if visit.wants_part:
        mapped = (await webhooks.show(visit.gateway, visit.actor, webhook_id)).field_mapping.paths()
        return _part(
            visit, result, None, "" if mapped else f"/webhooks/{webhook_id}/settings?first#what-it-says"
        )
    if result.invocation_id is None:
        raise Refused("conflict", f"The call was answered {result.status} and not recorded: {result.detail}")
    return visit.to(f"/webhooks/{webhook_id}/calls?tested={result.invocation_id}#test-call")


async def _sent(visit: Visit, webhook_id: str) -> SentTestCall:
    form = await visit.form()
    known = await sending.samples(visit.gateway, visit.actor, webhook_id)
    asked = {"event": form.text("event") or known[0].event, "wrong": form.text("wrong") or None}
    body = _typed(known, asked["event"] or "", form)
    if body is not None:
        asked["body"] = body
    request = validated(SendRequest, {name: one for name, one in asked.items() if one is not None})
    found = await sending.send(visit.gateway, visit.actor, webhook_id, request)
    call = found.calls[0]
    return SentTestCall(call.status, call.code, call.detail, call.invocation_id, call.answer, call.ms)


def _typed(known: list[SampleCall], event: str, form: dict[str, str]) -> str | None:
    """The body where somebody has changed it. One that was left alone is sent as the sender writes it."""
    for number, one in enumerate(known):
        if one.event == event:
            typed = form.get(f"body-{number}", "").replace("\r\n", "\n")
            return typed if typed and typed.strip() != readable(one.body).strip() else None
    return None


async def _of_page(visit: Visit, webhook_id: str) -> SentTestCall | None:
    """After a form that was sent without htmx: what its invocation says."""
    tested = visit.query.get("tested", "")
    if not tested:
        return None
    try:
        item: Invocation = await history.show(visit.gateway, visit.actor, tested)
    except Refused:
        return None
    if item.webhook_id != webhook_id:
        return None
    return SentTestCall(item.http_status, item.code, item.detail, item.id)


def _part(
    visit: Visit, result: SentTestCall | None, problem: ShownProblem | None, then: str = ""
) -> Response:
    return visit.page("webhook/test_result.html", result=result, problem=problem, next=then)


def readable(body: str) -> str:
    """A sample's body for people to edit; one that cannot be laid out stays as it is."""
    quoted = _BARE.sub(r'"@@\1@@"', body)
    try:
        text = msgspec.json.format(quoted.encode(), indent=2).decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return body
    return _QUOTED.sub(r"{\1}", text)
