"""Creating a webhook: what will call it decides everything else. The answers, and what each one sets, are the
specification's table."""

from starlette.responses import Response

from postern.core.documents import Document
from postern.core.problems import Refused
from postern.core.webhooks.settings import LONGEST_WINDOW
from postern.surfaces.console import senders, snippets
from postern.surfaces.console.views.signatures.tester import read_request
from postern.surfaces.console.views.webhooks import first_steps, schedule, settings, test_call
from postern.surfaces.console.views.webhooks.authentication import (
    GENERATE,
    made_here,
    request_of,
    scheme_context,
    scheme_of,
)
from postern.surfaces.console.visit import Form, PageValues, ShownProblem, Visit, messages_of, problem_of
from postern.usecases.runtime.gateway import require
from postern.usecases.shapes import validated
from postern.usecases.signatures import signatures
from postern.usecases.signatures.senders import names, page_of
from postern.usecases.signatures.signatures import TestedCall
from postern.usecases.signatures.views import Provider
from postern.usecases.webhooks import picking, webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.usecases.webhooks.views import Webhook, WithSignature

ANSWERS = {
    "tool": ("code", "An automation tool or custom code", "You get a token, and calls to paste."),
    "signed": ("sign", "A service that signs its webhooks", "Choose it and paste one secret."),
    "browser": ("browser", "A browser or storefront script", "Pages of the sites you name may call."),
    "schedule": ("clock", "Nothing; runs on a schedule", "Postern fetches a URL on a timer."),
    "other": ("later", "Other, or decide later", "Choose how callers prove who they are."),
}
NAMES = {"tool": "My automation", "browser": "Storefront form", "schedule": "Scheduled fetch", "other": ""}


async def ask(visit: Visit) -> Response:
    require(visit.actor, "write")
    return visit.page("creation/ask.html", answers=ANSWERS, senders=senders.offered())


async def form(visit: Visit) -> Response:
    require(visit.actor, "write")
    return await _form(visit, _answer(visit), {}, {})


async def _form(
    visit: Visit, answer: str, values: dict[str, str], errors: dict[str, str], status: int = 200
) -> Response:
    provider = values.get("provider") or visit.query.get("provider", "")
    common: PageValues = {
        "answer": answer,
        "title": ANSWERS[answer][1],
        "values": values,
        "errors": errors,
        "suggested": await _free(visit, NAMES.get(answer, "")),
    }
    if answer == "signed" and not provider:
        return await _choose(visit)
    if answer == "signed":
        if provider not in (*names(), "custom"):
            raise Refused("not_found", "There is no sender of this name.")
        if provider == "custom":
            common |= _custom_scheme(visit, values)
        about = None if provider == "custom" else senders.about(provider)
        common["suggested"] = await _free(visit, about.title) if about else ""
        return visit.page("creation/signed.html", status, provider=provider, about=about, **common)
    return visit.page(f"creation/{answer}.html", status, **common)


async def _free(visit: Visit, name: str) -> str:
    """The name, with a number where another webhook has it."""
    taken = {choice.name.casefold() for choice in await visit.ask(picking.choices, name)}
    numbered = (name if number == 1 else f"{name} {number}" for number in range(1, 100))
    return (
        next((candidate for candidate in numbered if candidate.casefold() not in taken), name) if name else ""
    )


def _custom_scheme(visit: Visit, values: dict[str, str]) -> PageValues:
    start = visit.query.get("start", "")
    scheme = senders.about(start).scheme if start in names() else {}
    if values:
        scheme = {name: value for name, value in scheme_of(Form(values)).items() if value is not None}
    return {
        **scheme_context(scheme),
        "senders": senders.offered(),
        "start": start,
        "starts_at": "?provider=custom&start=",
    }


async def _choose(
    visit: Visit,
    status: int = 200,
    pasted: str = "",
    proposed: list[Provider] | None = None,
    problem: ShownProblem | None = None,
) -> Response:
    """Which service it is: from the list, or found by a call that it has sent."""
    if call := visit.query.get("call", ""):
        proposed = await visit.ask(signatures.propose, invocation_id=call)
    return visit.page(
        "creation/sender.html",
        status,
        title=ANSWERS["signed"][1],
        senders=senders.offered(),
        pasted=pasted,
        proposed=proposed,
        problem=problem,
    )


async def find(visit: Visit) -> Response:
    require(visit.actor, "write")
    pasted = (await visit.form()).get("request", "")
    try:
        call = validated(TestedCall, read_request(pasted))
        return await _choose(visit, 200, pasted, await visit.ask(signatures.propose, call=call))
    except Refused as refused:
        return await _choose(visit, refused.problem.status, pasted, [], problem_of(refused))


async def create(visit: Visit) -> Response:
    answer = _answer(visit)
    sent = await visit.form()
    try:
        request = _request(answer, sent)
        made = made_here(request["authentication"])
        webhook = await visit.ask(webhooks.create, validated(WebhookRequest, request))
    except Refused as refused:
        if not refused.errors:
            raise
        errors = messages_of(refused)
        errors |= {_field(field): text for field, text in errors.items()}
        return await _form(visit, answer, sent, errors, refused.problem.status)
    if answer == "schedule":
        return visit.to(f"/webhooks/{webhook.id}/schedule", "to-schedule")
    if answer == "other" and sent.get("method") == "hmac":
        return await settings.show(visit, secrets=made, notice="created", webhook_id=webhook.id)
    if made:
        return await _ready(visit, webhook, made["main"])
    return visit.to(f"/webhooks/{webhook.id}/ready")


def _request(answer: str, sent: Form) -> Document:
    made: Document = {
        "name": sent.text("name"),
        "authentication": {"method": "token", "token": GENERATE},
    }
    match answer:
        case "signed":
            how = request_of(Form(sent | {"method": "hmac", "newSecret": sent.text("secret")}))
            if how["scheme"]:
                how["scheme"] = {name: value for name, value in how["scheme"].items() if value is not None}
            made["authentication"] = how
            # Senders that sign also retry: the workflow must not run twice for one event.
            provider = sent.text("provider")
            hours = senders.about(provider).sender.retry_hours if provider in senders.names() else 0
            made["duplicateProtection"] = {"enabled": True} | (
                {"windowSeconds": min(hours * 3600, LONGEST_WINDOW)} if hours else {}
            )
        case "browser":
            made["cors"] = {"enabled": True, "origins": sent.lines("origins") or ["*"]}
        case "schedule":
            made["schedule"] = schedule.EMPTY | {"url": sent.text("url")}
        case "other":
            method = sent.text("method")
            if method == "hmac":
                made["authentication"] = {"method": "hmac", "provider": "generic", "secret": GENERATE}
            elif method != "token":
                made["authentication"] = {"method": method}  # none, or nothing that there is
        case _:
            pass  # a token, as above
    return made


async def ready(visit: Visit) -> Response:
    """The end of the flow: everything that the calling side needs, in the order in which it is needed."""
    return await _ready(visit, await visit.ask(webhooks.show, visit.at("webhook")))


async def _ready(visit: Visit, webhook: Webhook, secret: str = "") -> Response:
    """``secret``: the one that was generated with it. The answer to the form that made it shows it, and no address
    leads to it."""
    how = webhook.authentication
    provider = how.provider if isinstance(how, WithSignature) else "custom"
    about = None if provider == "custom" else senders.about(provider)
    token = secret or "YOUR_TOKEN"
    url, headers = snippets.target(webhook, token)
    return visit.page(
        "creation/ready.html",
        webhook=webhook,
        secret=secret,
        about=about,
        sender_page=page_of(provider),
        **await first_steps.steps(visit, webhook),
        awaited=senders.awaited(webhook),
        full_url=url,
        snippets=snippets.snippets(webhook, token) if how.method != "hmac" else [],
        fetch=snippets.fetch(url, headers, '{"email": "ada@example.com"}') if webhook.cors.enabled else "",
        **await test_call.context(visit, webhook.id),
    )


def _answer(visit: Visit) -> str:
    answer = visit.at("answer")
    if answer not in ANSWERS:
        raise Refused("not_found", "There is no such page.")
    return answer


def _field(path: str) -> str:
    return (
        "origins"
        if path.startswith("cors.origins")
        else path.removeprefix("authentication.").removeprefix("schedule.")
    )
