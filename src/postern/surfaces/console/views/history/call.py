"""One call: its page, and what is done with it there."""

from functools import wraps
from urllib.parse import urlencode

from starlette.responses import Response

from postern.core.deliveries.delivery import FIELD_NAMES, delivery_key
from postern.core.history.invocation import StoreUnavailable
from postern.core.history.replay import Values
from postern.core.problems import Refused
from postern.observe.changes import store_away
from postern.surfaces.console import pages, tree
from postern.surfaces.console.views.history import fixes, story
from postern.surfaces.console.visit import Form, ViewFunction, Visit, problem_of, whole_number
from postern.usecases.calls import readmission
from postern.usecases.deliveries import turns
from postern.usecases.history import history, samples
from postern.usecases.listeners import listeners
from postern.usecases.operations import engine
from postern.usecases.signatures import remedies, subscriptions
from postern.usecases.webhooks import webhooks


async def detail(visit: Visit) -> Response:
    context = await story.context(visit, visit.at("invocation"))
    return visit.page("call/page.html", **context, asks_again=visit.wants_part)


async def told(visit: Visit, notice: str = "", part: str = "") -> Response:
    """The call's page with what was just done: in its place, or as a page of its own."""
    if not visit.wants_part:
        return visit.to(f"/calls/{visit.at('invocation')}{part}", notice)
    context = await story.context(visit, visit.at("invocation"))
    return visit.page("call/page.html", **context | {"notice": pages.NOTICES.get(notice), "in_place": True})


async def runs(visit: Visit) -> Response:
    """The runs of one of the call's deliveries, with their steps. Asked for by itself: a page must not wait for the engine."""
    key = delivery_key(visit.at("invocation"), whole_number(visit.query.get("emission", "")) or 1)
    try:
        listed, trouble = await visit.ask(engine.runs, delivery_key=key), ""
    except Refused as refused:
        listed, trouble = [], problem_of(refused).detail
    return visit.page("call/runs.html", runs=listed, trouble=trouble)


async def begin_workflow(visit: Visit) -> Response:
    """A file to go on from, made from this call."""
    name, source = await visit.ask(samples.workflow_of_call, visit.at("invocation"))
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(source, media_type="text/x-python; charset=utf-8", headers=headers)


def staying(action: ViewFunction) -> ViewFunction:
    """A view that does something with a call. When it cannot, it is the call's page that says so, beside the
    button."""

    @wraps(action)
    async def stays(visit: Visit) -> Response:
        try:
            return await action(visit)
        except (Refused, StoreUnavailable) as trouble:
            refused = store_away() if isinstance(trouble, StoreUnavailable) else trouble
            context = await story.context(visit, visit.at("invocation"))
            return visit.page(
                "call/page.html",
                refused.problem.status,
                **context | {"action_problem": problem_of(refused)},
            )

    return stays


def values_in(form: Form) -> Values:
    """Which values whoever pressed the button wants in the replay."""
    return "current" if form.text("values") == "current" else "recorded"


@staying
async def replay(visit: Visit) -> Response:
    form = await visit.form()
    emission = whole_number(form.get("emission", ""))
    try:
        done = await visit.ask(history.replay, visit.at("invocation"), values_in(form), emission)
    except Refused as refused:
        if refused.code != "version_conflict":
            raise
        return await told(visit, "replayed-before")  # by a second click, in another tab, or by somebody else
    is_held = done.delivery.state == "held"
    return await told(visit, "replay-held" if is_held else "replayed")


@staying
async def start_now(visit: Visit) -> Response:
    await visit.ask(turns.start_now, visit.at("invocation"))
    return await told(visit, "out-of-turn")


@staying
async def replay_to_listener(visit: Visit) -> Response:
    form = await visit.form()
    invocation_id = visit.at("invocation")
    await visit.ask(listeners.replay, form.text("listener"), invocation_id)
    return await told(visit, "replayed-to-listener")


@staying
async def fix(visit: Visit) -> Response:
    """One click in a rejected call's story changes the webhook so that the next one like it comes in."""
    form = await visit.form()
    invocation_id = visit.at("invocation")
    if form.text("kind") == "signature":
        await visit.ask(remedies.apply, invocation_id, whole_number(form.text("number")) or 0)
    elif form.text("kind") == fixes.SUBSCRIPTION:
        await visit.ask(subscriptions.confirm, invocation_id)
        return await told(visit, "subscribed")
    elif form.text("kind") == "secret":
        await visit.ask(remedies.take_second_secret, invocation_id, form.text("secret"))
        return await _admitted(visit)
    else:
        item = await visit.ask(history.show, invocation_id)
        webhook = await visit.ask(webhooks.show, item.webhook_id)
        await visit.ask(webhooks.change, webhook.id, fixes.patch_of(form.text("kind"), item, webhook))
    return await told(visit, "fixed")


@staying
async def admit(visit: Visit) -> Response:
    """Check a rejected call with the current settings, and start it if it passes now."""
    return await _admitted(visit)


async def _admitted(visit: Visit) -> Response:
    done = await visit.ask(readmission.admit, [visit.at("invocation")])
    result = done.items[0]
    if not result.admitted:
        raise Refused("conflict", f"It was not admitted: {result.reason}.")
    item = await visit.ask(history.show, visit.at("invocation"))
    return await told(visit, "admitted-held" if item.status == "held" else "admitted")


async def map_value(visit: Visit) -> Response:
    """A value was clicked in a tree: one of the four fields carries it from now on, or a condition is begun with it."""
    form = await visit.form()
    field = form.text("field")
    if field not in (*FIELD_NAMES, "conditions"):
        raise Refused("invalid_request", "Choose one of the four fields.")
    item = await visit.ask(history.show, form.text("invocation"))
    if field == "conditions":
        path, root = form.text("path"), tree.tree(bytes(item.payload or b""), form.text("path"))
        chosen = urlencode({"of": path, "value": root.text if root and not root.cut else ""})
        return visit.to(f"/webhooks/{item.webhook_id}/settings?{chosen}#what-starts")
    await visit.ask(webhooks.change, item.webhook_id, {"fieldMapping": {field: form.text("path")}})
    back = form.text("back")
    return visit.to(back if back.startswith(("/webhooks/", "/calls")) else f"/calls/{item.id}", "mapped")
