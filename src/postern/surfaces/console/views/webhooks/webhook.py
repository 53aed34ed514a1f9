"""One webhook's pages: a tab for each thing that can be said about it, each with an address of its own."""

import json
from math import isfinite
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postern.core.documents import Document, Patch
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import FieldError, Refused
from postern.core.webhooks.merging import has_moved, merged
from postern.surfaces.console import senders, tree
from postern.surfaces.console.labels import both, message
from postern.surfaces.console.views.history import sentences
from postern.surfaces.console.views.history.listing import page_of_calls, rows_of
from postern.surfaces.console.views.history.sent import FIELD_LABELS, json_object
from postern.surfaces.console.views.webhooks import test_call
from postern.surfaces.console.visit import Context, Form, Visit, problem_of, whole_number
from postern.usecases.answers import as_plain
from postern.usecases.history import history, volumes
from postern.usecases.operations import retention
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Rotation, SecretUse, Webhook, WithSignature, WithToken

TABS = [
    ("", "Overview"),
    ("calls", "Calls"),
    ("authentication", "Authentication"),
    ("mapping", "Field mapping"),
    ("response", "Response"),
    ("schedule", "Schedule"),
    ("alarms", "Alarms"),
    ("advanced", "Advanced settings"),
]


class Head(Struct, frozen=True):
    """What the head of every tab shows: the webhook, and how its last day went."""

    webhook: Webhook
    day: volumes.Day


async def loaded(visit: Visit, webhook_id: str = "") -> Head:
    webhook = await webhooks.show(visit.gateway, visit.actor, webhook_id or visit.at("webhook"))
    days = await volumes.last_day(visit.gateway, visit.actor, [webhook.id])
    return Head(webhook, days[webhook.id])


def tab(visit: Visit, name: str, head: Head, status: int = 200, shown: str = "", **context: Any) -> Response:
    """The tab's page, or one that is reached from it. ``form`` fills its form, in the words of the API."""
    form = {"form": as_plain(head.webhook)}
    return visit.page(
        f"webhook/{shown or name or 'overview'}.html", status, **head_of(head, name) | form | context
    )


def head_of(head: Head, name: str) -> Context:
    return {
        "webhook": head.webhook,
        "day": head.day,
        "tab": name,
        "webhook_tabs": TABS,
        "titles": senders.titles(),
        "awaited": senders.awaited(head.webhook),
        "asks": senders.asked_again(head.webhook),
    }


async def overview(visit: Visit) -> Response:
    head = await loaded(visit)
    webhook = head.webhook
    span = visit.query.get("range", "day")
    chart = await volumes.chart(visit.gateway, visit.actor, webhook.id, span)
    latest = await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook.id), 5)
    waiting = (
        await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook.id, "held"), 200)
        if webhook.held
        else None
    )
    return tab(
        visit,
        "",
        head,
        chart=chart,
        limit=senders.limit(webhook),
        ranges=volumes.RANGES,
        rows=rows_of(latest.items),
        reason=sentences.reason,
        rotation=rotation(webhook),
        waiting=waiting,
        names={},
        after=None,
        kept="",
    )


async def calls(visit: Visit) -> Response:
    """The list of calls of this webhook, and sending it one."""
    head = await loaded(visit)
    more = head_of(head, "calls") | await test_call.context(visit, head.webhook.id)
    return await page_of_calls(visit, "webhook/calls.html", f"/webhooks/{head.webhook.id}/calls", **more)


async def response(visit: Visit) -> Response:
    return tab(visit, "response", await loaded(visit), errors={})


async def save_response(visit: Visit) -> Response:
    form = await visit.form()
    seconds = _number(form.text("timeoutSeconds"))
    return await save(
        visit,
        "response",
        {"synchronousResponse": {"enabled": form.on("enabled"), "timeoutSeconds": seconds}},
        form,
    )


async def mapping(visit: Visit) -> Response:
    head = await loaded(visit)
    return tab(visit, "mapping", head, **await _example(visit, head.webhook), errors={})


async def _example(visit: Visit, webhook: Webhook) -> Context:
    """What the mapping is made from: the last payload that was accepted. A rejected one, which anybody may
    have sent, only while there is no other."""
    chosen = visit.query.get("call", "")
    ids = (
        [chosen]
        if chosen
        else [*await _with_body(visit, webhook, "accepted"), *await _with_body(visit, webhook, None)]
    )
    for one in ids:
        item = await history.show(visit.gateway, visit.actor, one)
        payload = item.payload if item.payload is not None else json_object(item.body)
        if payload is not None:
            root = tree.tree(bytes(payload))
            paths = {name: path for name, path in as_plain(webhook.field_mapping).items() if path}
            values, problems = await _values(visit, one, paths)
            return {
                "item": item,
                "root": root,
                "values": values,
                "problems": problems,
                "fields": FIELD_LABELS,
            }
    return {"item": None, "root": None, "values": {}, "problems": {}, "fields": FIELD_LABELS}


async def _with_body(visit: Visit, webhook: Webhook, code: str | None) -> list[str]:
    page = await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook.id, code=code), 20)
    return [item.id for item in page.items if item.body_size][:6]


async def _values(
    visit: Visit, invocation_id: str, paths: dict[str, str]
) -> tuple[dict[str, str | None], dict[str, str]]:
    """Each path's value by itself, and why it is none: one that is half typed must not take the others away."""
    found: dict[str, str | None] = {}
    problems: dict[str, str] = {}
    for name, path in paths.items():
        try:
            found |= as_plain(await history.preview(visit.gateway, visit.actor, invocation_id, {name: path}))
        except Refused as refused:
            problems[name] = refused.errors[0].message if refused.errors else refused.detail
    return found, problems


async def preview(visit: Visit) -> Response:
    """The four values as the paths being typed would have them."""
    paths = {name: path for name in FIELD_LABELS if (path := visit.query.get(name, "").strip())}
    values, problems = await _values(visit, visit.query.get("call", ""), paths)
    return visit.page(
        "webhook/values.html", values=values, problems=problems, mapped=paths, fields=FIELD_LABELS
    )


async def save_mapping(visit: Visit) -> Response:
    form = await visit.form()
    return await save(
        visit,
        "mapping",
        {"fieldMapping": {name: form.text(name) or None for name in FIELD_LABELS}},
        form,
    )


async def save(visit: Visit, name: str, patch: Patch, form: Form) -> Response:
    """Change the webhook and come back to the tab; what is wrong is said beside its field, with what was
    typed still there."""
    try:
        done = await change(visit, patch, form)
    except Refused as refused:
        return await refused_tab(visit, name, patch, refused)
    return visit.to(f"/webhooks/{visit.at('webhook')}/{name}", done)


async def change(visit: Visit, patch: Patch, form: Form) -> str:
    """The notice that tells what was done. Where somebody else has saved since the form was opened, what was changed
    in it goes on top of that, unless both changed the same."""
    webhook_id = visit.at("webhook")
    seen = _seen(form)
    try:
        await webhooks.change(visit.gateway, visit.actor, webhook_id, patch, version_seen(form))
        return "saved"
    except Refused as refused:
        if refused.code != "version_conflict" or seen is None:
            raise
    present = await webhooks.show(visit.gateway, visit.actor, webhook_id)
    now = as_plain(present)
    mine, collisions = merged(patch, seen, now)
    if collisions:
        # The form keeps what was typed; what is left alone in it shows what the other one saved.
        patch.clear()
        patch.update(mine)
        errors = [FieldError(one.field, both(one.field, one.theirs, one.mine)) for one in collisions]
        raise Refused("version_conflict", errors=errors)
    if mine:
        await webhooks.change(visit.gateway, visit.actor, webhook_id, mine, present.version)
    # What was changed elsewhere, like whether it is enabled, is nothing that this form could have undone.
    return "merged" if has_moved(seen, now) else "saved"


def _seen(form: Form) -> Document | None:
    """What the settings were when the form was opened, by its own word: all it can do is to have its user asked, or
    not."""
    try:
        seen = json.loads(form.get("seen", ""))
    except (ValueError, RecursionError):
        return None
    return seen if isinstance(seen, dict) else None


async def refused_tab(visit: Visit, name: str, patch: Patch, refused: Refused) -> Response:
    head = await loaded(visit)
    more: Context = {}
    if name == "mapping":
        more = await _example(visit, head.webhook)
    elif name == "advanced":
        more = usual(visit)
    problem, errors = problem_of(refused), field_messages(refused)
    wanted = _with(as_plain(head.webhook), patch)
    return tab(visit, name, head, refused.problem.status, form=wanted, errors=errors, problem=problem, **more)


def usual(visit: Visit) -> Context:
    """What the advanced settings name as the gateway's own rule."""
    return {"rule": retention.rule(visit.gateway, visit.actor)}


def version_seen(form: Form) -> int | None:
    """The version whose form this was: two people who change the same thing must not overwrite each other
    unseen."""
    return whole_number(form.get("version", ""))


def field_messages(refused: Refused) -> dict[str, str]:
    messages = {error.field: message(error.field, error.message) for error in refused.errors}
    return {field: text[:1].upper() + text[1:] for field, text in messages.items()}


def _with(saved: Document, patch: Patch) -> Document:
    """What the user wanted, to fill the form again."""
    shown = dict(saved)
    for name, value in patch.items():
        shown[name] = (
            shown[name] | value if isinstance(value, dict) and isinstance(shown.get(name), dict) else value
        )
    return shown


def _number(text: str) -> float | str | None:
    """What is no number goes to the use case as it is, which says so in its own words."""
    try:
        number = float(text) if text else None
    except ValueError:
        return text
    return number if number is None or isfinite(number) else text


class ShownRotation(Struct, frozen=True):
    """Where a change of secrets stands, with how often each was used."""

    state: Rotation
    main: SecretUse
    second: SecretUse


def rotation(webhook: Webhook) -> ShownRotation | None:
    match webhook.authentication:
        case WithToken(
            rotation=Rotation() as state,
            token_use=SecretUse() as main,
            second_token_use=SecretUse() as second,
        ):
            return ShownRotation(state, main, second)
        case WithSignature(
            rotation=Rotation() as state,
            secret_use=SecretUse() as main,
            second_secret_use=SecretUse() as second,
        ):
            return ShownRotation(state, main, second)
        case _:
            return None  # only one secret is valid, or none is asked for
