"""A webhook's settings on one page: one form saves all sections, in place."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import inspect
from starlette.responses import Response

from postern.core.documents import Document, Patch
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import FieldError, Refused
from postern.core.schedules import duration
from postern.core.signatures.redact import MASK
from postern.core.watch.rhythm import Sentence, sentence_of
from postern.core.webhooks.conditions import MOST_ROWS
from postern.core.webhooks.merging import has_moved, merged
from postern.core.webhooks.settings import WebhookSettings
from postern.surfaces.console import senders, snippets, tree
from postern.surfaces.console.labels import UNITS, both
from postern.surfaces.console.pages import NOTICES
from postern.surfaces.console.views.confirmations import calls_lately, came_lately
from postern.surfaces.console.views.history.sent import FIELD_LABELS, json_object
from postern.surfaces.console.views.webhooks import authentication
from postern.surfaces.console.views.webhooks.authentication import GENERATE, SECRET_NAMES, made_here
from postern.surfaces.console.views.webhooks.webhook import loaded, tab
from postern.surfaces.console.visit import Form, PageValues, Visit, messages_of, problem_of, whole_number
from postern.usecases.alarms import incidents
from postern.usecases.answers import as_plain
from postern.usecases.history import history
from postern.usecases.operations import retention
from postern.usecases.runtime.turns import tells_ends
from postern.usecases.shapes import validated
from postern.usecases.signatures.senders import names
from postern.usecases.webhooks import trying, webhooks
from postern.usecases.webhooks.trying import TryConditionsRequest
from postern.usecases.webhooks.views import Webhook, WithToken

SECTIONS = {
    "authentication": "Authentication",
    "mapping": "Mapping",
    "what-starts": "What starts",
    "where-it-goes": "Where it goes",
    "response": "Response",
    "duplicates": "Duplicates",
    "limits": "Limits",
    "retention": "Retention",
    "alarms": "Alarms",
    "name-and-tags": "Name",
}
FIRST = ("authentication", "mapping", "where-it-goes", "response")
"""Those that a new webhook is led to: the others have good defaults."""
MOST_CHOICES = 100


async def show(
    visit: Visit,
    status: int = 200,
    patch: Patch | None = None,
    refused: Refused | None = None,
    secrets: dict[str, str] | None = None,
    notice: str = "",
    webhook_id: str = "",
) -> Response:
    """``patch``: what the form shows where it is not saved. ``secrets``: shown by the one answer that has them, to which no
    address leads."""
    webhook, secrets = await loaded(visit, webhook_id), secrets or {}
    saved = webhook.authentication
    form = _with(as_plain(webhook), patch or {})
    how = form["authentication"]
    start = visit.query.get("start", "")
    scheme = senders.about(start).scheme if start in names() else how.get("scheme") or {}
    if how.get("provider") == "custom" and how.get("toleranceSeconds") is not None:
        scheme = scheme | {"toleranceSeconds": how["toleranceSeconds"]}  # it counts, whatever the scheme says
    is_in_url = isinstance(saved, WithToken) and saved.placement == "url"
    errors = messages_of(refused) if refused else {}
    if of := visit.query.get(
        "of", ""
    ):  # a value was chosen in a recorded call: a row that is saved with the form
        chosen = {"of": of, "is": "oneOf", "values": [visit.query.get("value", "")], "ignoreCase": False}
        form["conditions"] = [*form["conditions"], chosen]
    more = await _proposed(visit, webhook.id, form)
    is_first = "first" in visit.query
    told: PageValues = {"notice": NOTICES[notice], "in_place": True} if notice else {}
    return tab(
        visit,
        "settings",
        webhook,
        status,
        form=form,
        sections={place: title for place, title in SECTIONS.items() if place in FIRST or not is_first},
        is_first=is_first,
        errors=errors,
        problem=problem_of(refused) if refused else None,
        saved=saved,
        secrets=secrets,
        full_url=snippets.target(webhook, secrets["main"])[0] if is_in_url and "main" in secrets else "",
        senders=senders.offered(),
        generic=senders.about("generic") if "generic" in names() else None,
        lately=came_lately(webhook, await calls_lately(visit, webhook.id)),
        start=start,
        tells_ends=tells_ends(visit.gateway, webhook.id),
        rule=visit.ask(retention.rule),
        **authentication.scheme_context(
            scheme, others=start in names() or how.get("provider", "") == "custom"
        ),
        **await _example(visit, webhook, form["fieldMapping"]),
        **more,
        **told,
    )


async def _proposed(visit: Visit, webhook_id: str, form: Document) -> PageValues:
    """The rhythm of the calls, where one is asked for: it stands in the form, and is saved by whoever agrees."""
    proposal = None
    if (zone := visit.query.get("zone")) is not None:
        proposal = await visit.ask(incidents.rhythm, webhook_id, zone)
        if proposal.rows:
            form["alarms"] = form["alarms"] | {"rhythm": as_plain(proposal)}
    return {"proposed": proposal, "in_part": visit.wants_part, "rhythm_said": _said(form["alarms"]["rhythm"])}


QUIETS = (15, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 10080)
DAYS = {
    "Mon-Sun": "on every day",
    "Mon-Fri": "on weekdays",
    "Sat-Sun": "on Saturday and Sunday",
    "Mon-Sat": "on Monday to Saturday",
}
NEVER = Sentence("Mon-Sun", "0", "24", "0")


def _said(rhythm: Document | None) -> PageValues | None:
    """The parts of the sentence that says the rhythm; None if it has more to say than one sentence."""
    rows = rhythm["rows"] if rhythm else []
    said = sentence_of(rows) if rows else NEVER
    if said is None:
        return None
    quiet = int(said.quiet)
    minutes = sorted({*QUIETS, quiet} - {0})
    return {
        "days": said.days,
        "days_offered": DAYS if said.days in DAYS else DAYS | {said.days: f"on {said.days}"},
        "begin": int(said.begin),
        "end": int(said.end),
        "hours": {hour: hour for hour in range(25)},
        "quiet": quiet,
        "quiets": {"": "(do not tell me)"} | {longest: duration(longest * 60) for longest in minutes},
    }


def _with(saved: Document, patch: Patch) -> Document:
    """The saved settings with the user's changes over them, to fill the form again; without secrets."""
    shown = dict(saved)
    for name, value in patch.items():
        if name == "authentication":
            how = {
                key: member for key, member in value.items() if key not in SECRET_NAMES and member is not None
            }
            is_same = how.get("method", shown[name]["method"]) == shown[name]["method"]
            shown[name] = (shown[name] if is_same else {}) | how
        elif isinstance(value, dict) and isinstance(shown.get(name), dict):
            shown[name] = shown[name] | value
        else:
            shown[name] = value
    return shown


def headers_of(form: Form, name: str) -> dict[str, str | None]:
    """The headers of a text, one a line. None: the line is a name alone."""
    headers: dict[str, str | None] = {}
    for line in form.lines(name):
        name, colon, value = line.partition(":")
        headers[name.strip()] = value.strip() if colon and value.strip() else None
    return headers


def header_changes(written: dict[str, str | None], saved: list[str]) -> dict[str, str | None]:
    """Makes a merge patch, in which None removes a header and one that is not named stays. On the page it is the other
    way round: a name alone keeps its value."""
    kept = {name.lower() for name in saved}
    named = {name.lower() for name in written}
    gone: dict[str, str | None] = {name: None for name in saved if name.lower() not in named}
    # A new one without a value is sent as such, to be refused by its name.
    return gone | {
        name: value or "" for name, value in written.items() if value is not None or name.lower() not in kept
    }


FieldReader = Callable[[Form, str], Any]


def _readers(shape: inspect.Type, above: str = "") -> Iterator[tuple[str, FieldReader]]:
    """The reader of each setting, by its type."""
    for field in shape.fields if isinstance(shape, inspect.StructType) else ():
        name, kind, may_be_none = above + field.encode_name, field.type, False
        while isinstance(kind, inspect.Metadata | inspect.UnionType):
            may_be_none = may_be_none or isinstance(kind, inspect.UnionType)
            kind = kind.type if isinstance(kind, inspect.Metadata) else kind.types[0]
        match kind:
            case inspect.StructType():
                yield from _readers(kind, f"{name}.")
            case inspect.BoolType():
                yield name, Form.on
            case inspect.IntType() | inspect.FloatType():
                yield name, Form.number
            case inspect.ListType():
                yield name, Form.lines
            case _:
                yield name, Form.given if may_be_none else Form.text


READ: dict[str, FieldReader] = {
    **dict(_readers(inspect.type_info(WebhookSettings))),
    **{name: partial(Form.number, unit=unit) for name, (unit, _) in UNITS.items()},
    "tags": Form.listed,
    "acceptedAnswer.contentType": Form.given,
    "acceptedAnswer.body": Form.as_typed,
    "target.headers": headers_of,
    "target.signingSecret": Form.text,
    "sendAgain.token": Form.text,
}
"""The reader of each field. A field is called like its setting, so an error of the setting is shown beside it."""


def request_of(form: Form) -> Patch:
    """The settings of which the form has a field. Empty ones go back to their default."""
    patch: Patch = {}
    for name, read in READ.items():
        if name in form:
            *above, last = name.split(".")
            place = patch
            for parent in above:
                place = place.setdefault(parent, {})
            place[last] = read(form, name)
    if "conditions" in form:
        patch["conditions"] = rows_of(form)
    if not any(patch.get("acceptedAnswer", {}).values()):
        patch |= {"acceptedAnswer": None} if "acceptedAnswer" in patch else {}
    if "turns" in patch and not any(patch["turns"].values()):
        patch["turns"] = None
    if (rhythm := patch.get("alarms", {}).get("rhythm")) is not None and not rhythm.get("rows"):
        quiet = form.text("rhythm.quiet")
        row = Sentence(form.text("rhythm.days"), form.text("rhythm.from"), form.text("rhythm.to"), quiet)
        patch["alarms"]["rhythm"] = rhythm | {"rows": [str(row)]} if quiet else None
    if (target := patch.get("target")) is not None:
        if not target.get("url"):
            patch["target"] = None
        elif not target.get("signingSecret"):
            target.pop("signingSecret", None)  # the stored one stays
    if "sendAgain" in patch and not form.on("sendAgain"):
        patch["sendAgain"] = None
    elif "sendAgain" in patch and not patch["sendAgain"].get("token"):
        patch["sendAgain"].pop("token", None)  # the stored one stays
    return patch | ({"authentication": authentication.request_of(form)} if "method" in form else {})


def rows_of(form: Form) -> list[Document]:
    """The rows of the conditions, without those that name nothing to look at."""
    return [
        {
            "of": of,
            "is": form.text(f"conditions.{row}.is"),
            "values": form.lines(f"conditions.{row}.values"),
            "ignoreCase": form.on(f"conditions.{row}.ignoreCase"),
        }
        for row in range(MOST_ROWS + 1)
        if (of := form.text(f"conditions.{row}.of"))
    ]


async def store(visit: Visit) -> Response:
    form = await visit.form()
    patch = request_of(form)
    if (target := patch.get("target")) is not None:
        saved = (await loaded(visit)).target
        target["headers"] = header_changes(target.get("headers", {}), saved.headers if saved else [])
    return await _save(visit, patch, form)


async def save_secret(visit: Visit) -> Response:
    """The main secret, the second one, or the second one's end."""
    form = await visit.form()
    is_token = (await loaded(visit)).authentication.method == "token"
    patch: Patch = {}
    for field, name in (
        ("secret", "token" if is_token else "secret"),
        ("second", "secondToken" if is_token else "secondSecret"),
    ):
        if form.text(field):
            patch[name] = form.text(field)  # blanks that came along while copying would be signed with
        elif form.text("generate") == field:
            patch[name] = GENERATE
        elif form.text("remove") == field:
            patch[name] = None
    if not patch:
        raise Refused("invalid_request", "Paste a secret, or have one generated.")
    return await _save(visit, {"authentication": patch}, form)


async def take_preset_over(visit: Visit) -> Response:
    """A newer preset changes nothing until somebody has seen the difference and wants it."""
    form = await visit.form()
    version = whole_number(form.text("presetVersion"))
    return await _save(visit, {"authentication": {"presetVersion": version}}, form)


async def reveal(visit: Visit) -> Response:
    """Shows the secrets. A form asks for it and no link: browsers fetch links ahead, and each look is noted."""
    return await show(visit, secrets=await visit.ask(webhooks.reveal, visit.at("webhook")))


async def promote(visit: Visit) -> Response:
    await visit.ask(webhooks.promote, visit.at("webhook"), (await visit.form()).on("now"))
    return await _told(visit, "promoted")


async def adopt(visit: Visit) -> Response:
    form = await visit.form()
    await visit.ask(webhooks.adopt, visit.at("webhook"), form.text("invocation") or None, version_seen(form))
    return await _told(visit, "saved")


async def _save(visit: Visit, patch: Patch, form: Form) -> Response:
    """Saves the change. Errors are shown beside their fields, and the typed values stay."""
    try:
        if patch.get("cors", {}).get("enabled") and not patch["cors"]["origins"]:
            nobody = FieldError("cors.origins", "name the sites, one a line, or write * for every site")
            raise Refused("invalid_request", errors=[nobody])
        made = {}
        if "authentication" in patch and visit.actor.may("write"):  # whoever may not do it hears that
            webhook = await loaded(visit)
            is_awaited = senders.awaited(webhook) is not None
            authentication.costs(patch["authentication"], webhook.authentication, is_awaited, form)
            made = made_here(patch["authentication"], webhook.authentication)
        done = await change(visit, patch, form)
    except Refused as refused:
        if not refused.errors and refused.code != "version_conflict":
            raise
        return await show(visit, refused.problem.status, patch, refused)
    return await _told(visit, done, made)


async def _told(visit: Visit, notice: str, secrets: dict[str, str] | None = None) -> Response:
    """Tells what was done: in its place, or as a page of its own."""
    if secrets or visit.wants_part:
        return await show(visit, secrets=secrets, notice=notice)
    return visit.to(f"/webhooks/{visit.at('webhook')}/settings", notice)


async def _example(visit: Visit, webhook: Webhook, mapped: Document) -> PageValues:
    """The last accepted payload, to choose values from. A rejected one, which anybody may have sent, is shown only
    while there is no other."""
    chosen = visit.query.get("call", "")
    for code in (None,) if chosen else ("accepted", None):
        for call_id in [chosen] if chosen else await _with_body(visit, webhook, code):
            item = await visit.ask(history.show, call_id)
            payload = item.payload if item.payload is not None else json_object(item.body)
            if payload is not None:
                paths = {name: path for name, path in mapped.items() if path}
                values, problems = await _values(visit, call_id, paths)
                return {
                    "item": item,
                    "root": tree.tree(bytes(payload)),
                    "values": values,
                    "problems": problems,
                    "fields": FIELD_LABELS,
                }
    return {"item": None, "root": None, "values": {}, "problems": {}, "fields": FIELD_LABELS}


async def _with_body(visit: Visit, webhook: Webhook, code: str | None) -> list[str]:
    page = await visit.ask(history.listing, HistoryFilter(webhook.id, code=code), 6)
    return [item.id for item in page.items if item.body_size]


async def _values(
    visit: Visit, invocation_id: str, paths: dict[str, str]
) -> tuple[dict[str, str | None], dict[str, str]]:
    """Each path's value by itself, and why it is none: one that is half typed must not take the others away."""
    values: dict[str, str | None] = {}
    problems: dict[str, str] = {}
    for name, path in paths.items():
        try:
            values |= as_plain(await visit.ask(history.preview, invocation_id, {name: path}))
        except Refused as refused:
            problems[name] = refused.errors[0].message if refused.errors else refused.detail
    return values, problems


async def preview(visit: Visit) -> Response:
    """The four values as the paths being typed would have them."""
    typed = {name: visit.query.get(f"fieldMapping.{name}", "").strip() for name in FIELD_LABELS}
    paths = {name: path for name, path in typed.items() if path}
    values, problems = await _values(visit, visit.query.get("call", ""), paths)
    return visit.page(
        "webhook/values.html", values=values, problems=problems, mapped=paths, fields=FIELD_LABELS
    )


async def change(visit: Visit, patch: Patch, form: Form) -> str:
    """The notice that tells what was done. Where somebody else has saved since the form was opened, what was changed
    in it goes on top of that, unless both changed the same."""
    webhook_id = visit.at("webhook")
    seen = _seen(form)
    try:
        await visit.ask(webhooks.change, webhook_id, patch, version_seen(form))
        return "saved"
    except Refused as refused:
        if refused.code != "version_conflict" or seen is None:
            raise
    present = await visit.ask(webhooks.show, webhook_id)
    now = as_plain(present)
    mine, collisions = merged(patch, seen, now)
    if collisions:
        # The form keeps what was typed; what is left alone in it shows what the other one saved.
        patch.clear()
        patch.update(mine)
        errors = [
            FieldError(collision.field, both(collision.field, collision.theirs, collision.mine))
            for collision in collisions
        ]
        raise Refused("version_conflict", errors=errors)
    if mine:
        now = as_plain(await visit.ask(webhooks.change, webhook_id, mine, present.version))
    # This form cannot undo changes of other settings, like whether it is enabled. The same form, sent twice, has met itself.
    return "merged" if has_moved(_with(seen, mine), now) else "saved"


def _seen(form: Form) -> Document | None:
    """The settings as the form says that they were when it was opened. A wrong claim can only cause a question, or
    prevent one."""
    try:
        seen = json.loads(form.get("seen", ""))
    except (ValueError, RecursionError):
        return None
    return seen if isinstance(seen, dict) else None


def version_seen(form: Form) -> int | None:
    """The version whose form this was: two people who change the same thing must not overwrite each other
    unseen."""
    return whole_number(form.get("version", ""))


async def try_key(visit: Visit) -> Response:
    """Shows the value that the typed key finds in the last calls."""
    key = visit.query.get("duplicateProtection.key", "").strip()
    try:
        tried = await visit.ask(trying.duplicate_key, visit.at("webhook"), key) if key else None
        problem = ""
    except Refused as refused:
        tried, problem = None, refused.errors[0].message if refused.errors else refused.detail
    return visit.page("webhook/tried_key.html", tried=tried, problem=problem)


async def row_choices(visit: Visit) -> Response:
    """Values to make rows of: the events and actors of the last calls, the headers and values of the last one."""
    webhook = await loaded(visit)
    example = await _example(visit, webhook, {})
    item, root = example["item"], example["root"]
    headers = [(f"header:{name}", value) for name, value in item.headers if value != MASK] if item else []
    return visit.page(
        "webhook/row_choices.html",
        seen=await visit.ask(trying.seen, webhook.id),
        values=[*headers, *_values_in(root)][:MOST_CHOICES] if root else [],
    )


def _values_in(node: tree.Node) -> Iterator[tuple[str, str]]:
    if node.path and not node.cut and node.kind not in ("object", "array", "null"):
        yield node.path, node.text
    for child in node.children:
        yield from _values_in(child)


async def try_rows(visit: Visit) -> Response:
    """How many of the last calls would not start with the rows of the form."""
    rows, tried, problem = rows_of(await visit.form()), None, ""
    try:
        request = validated(TryConditionsRequest, {"conditions": rows})
        tried = await visit.ask(trying.conditions, visit.at("webhook"), request)
    except Refused as refused:
        problem = problem_of(refused).detail
    return visit.page("webhook/tried_rows.html", tried=tried if rows else None, problem=problem)
