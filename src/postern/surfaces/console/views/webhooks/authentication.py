"""How callers prove who they are: the method, its settings, its secrets."""

import json
from typing import Any

from starlette.responses import Response

from postern.core.documents import Document, Patch
from postern.core.problems import Refused, invalid
from postern.surfaces.console import senders, snippets
from postern.surfaces.console.pages import NOTICES
from postern.surfaces.console.views.confirmations import came_lately
from postern.surfaces.console.views.webhooks.webhook import (
    Head,
    change,
    field_messages,
    loaded,
    rotation,
    tab,
    version_seen,
)
from postern.surfaces.console.visit import Context, Form, Visit, problem_of, whole_number
from postern.usecases.answers import as_plain
from postern.usecases.signatures.senders import names
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.preparing import generated
from postern.usecases.webhooks.requests import SECRETS
from postern.usecases.webhooks.views import Authentication, WithSignature, WithToken

GENERATE = {"generate": True}

SHAPES = {
    "header": ("The signature stands alone in a header", "X-Signature: 5f1d…", "header"),
    "prefixed": ("With its algorithm in front", "X-Signature: sha256=5f1d…", "prefixed"),
    "listed": ("In a list, with the time", "X-Signature: t=1700000000,v1=5f1d…", "listed"),
}
"""Nearly every scheme has one of three shapes; the rest of its form follows from that."""

_SECRET_NAMES = ("token", "secondToken", "secret", "secondSecret", "verifyToken")
_LISTS = ("signature", "timestamp", "deliveryId", "issuers")


async def show(visit: Visit) -> Response:
    return _page(visit, await loaded(visit), {})


def _page(
    visit: Visit,
    head: Head,
    secrets: dict[str, str],
    status: int = 200,
    wanted: Document | None = None,
    **context: Any,
) -> Response:
    """``wanted``: the authentication that the form shows, where it is not the saved one."""
    webhook, saved = head.webhook, head.webhook.authentication
    how: Document = as_plain(saved) if wanted is None else wanted
    provider = how.get("provider", "")
    start = visit.query.get("start", "")
    scheme = senders.about(start).scheme if start in names() else how.get("scheme") or {}
    if provider == "custom" and how.get("toleranceSeconds") is not None:
        scheme = scheme | {"toleranceSeconds": how["toleranceSeconds"]}  # it counts, whatever the scheme says
    is_in_url = isinstance(saved, WithToken) and saved.placement == "url"
    full_url = snippets.target(webhook, secrets["main"])[0] if is_in_url and "main" in secrets else ""
    return tab(
        visit,
        "authentication",
        head,
        status,
        form={"authentication": how},
        saved=saved,
        secrets=secrets,
        full_url=full_url,
        senders=senders.offered(),
        about=senders.about(saved.provider)
        if isinstance(saved, WithSignature) and saved.provider in names()
        else None,
        generic=senders.about("generic") if "generic" in names() else None,
        rotation=rotation(webhook),
        lately=came_lately(webhook, head.day),
        start=start,
        **scheme_context(scheme, others=start in names() or provider == "custom"),
        snippets=snippets.snippets(webhook, secrets["main"])
        if "main" in secrets and saved.method == "token"
        else [],
        **({"errors": {}} | context),
    )


async def reveal(visit: Visit) -> Response:
    """By a form, not a link: telling a secret is noted, and a link would be fetched by whatever looks
    ahead."""
    webhook_id = visit.at("webhook")
    return await with_secrets(
        visit, webhook_id, await webhooks.reveal(visit.gateway, visit.actor, webhook_id)
    )


async def with_secrets(
    visit: Visit, webhook_id: str, secrets: dict[str, str], notice: str | None = None
) -> Response:
    """The one answer that shows them: not redirected to, so that no address leads to it."""
    return _page(visit, await loaded(visit, webhook_id), secrets, notice=notice)


async def save_method(visit: Visit) -> Response:
    form = await visit.form()
    return await _save(visit, request_of(form), form)


async def save_secret(visit: Visit) -> Response:
    """The main secret, the second one, or the second one's end."""
    form = await visit.form()
    head = await loaded(visit)
    is_token = head.webhook.authentication.method == "token"
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
    return await _save(visit, patch, form)


async def take_preset_over(visit: Visit) -> Response:
    """A newer preset changes nothing until somebody has seen the difference and wants it."""
    form = await visit.form()
    return await _save(visit, {"presetVersion": whole_number(form.text("presetVersion"))}, form)


async def promote(visit: Visit) -> Response:
    await webhooks.promote(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to(f"/webhooks/{visit.at('webhook')}/authentication", "promoted")


async def adopt(visit: Visit) -> Response:
    form = await visit.form()
    await webhooks.adopt(
        visit.gateway, visit.actor, visit.at("webhook"), form.text("invocation") or None, version_seen(form)
    )
    return visit.to(f"/webhooks/{visit.at('webhook')}/authentication", "saved")


async def _save(visit: Visit, patch: Document, form: Form) -> Response:
    wish: Patch = {"authentication": patch}
    try:
        await _costs(visit, patch, form)
        made = made_here(patch, (await loaded(visit)).webhook.authentication)
        done = await change(visit, wish, form)
    except Refused as refused:
        patch = wish.get("authentication", {})
        head = await loaded(visit)
        saved = head.webhook.authentication
        wanted = {
            name: value for name, value in patch.items() if name not in _SECRET_NAMES and value is not None
        }
        is_same = patch.get("method", saved.method) == saved.method
        return _page(
            visit,
            head,
            {},
            refused.problem.status,
            wanted=(as_plain(saved) if is_same else {}) | wanted,
            errors=field_messages(refused),
            problem=problem_of(refused),
        )
    if made:
        return await with_secrets(visit, visit.at("webhook"), made, NOTICES[done])
    return visit.to(f"/webhooks/{visit.at('webhook')}/authentication", done)


def made_here(patch: Document, saved: Authentication | None = None) -> dict[str, str]:
    """Generates what the form asks for, and tells it by its field: the answer to this form shows it, and after that only
    *Reveal* does. What stands in for a sender's own secret is not shown."""
    method = patch.get("method") or (saved.method if saved else "")
    provider = patch.get("provider") or (saved.provider if isinstance(saved, WithSignature) else "")
    scheme = patch.get("scheme") or (saved.scheme if isinstance(saved, WithSignature) else None)
    shown = {}
    for name, field in SECRETS.get(method, {}).items():
        if patch.get(name) == GENERATE and (one := generated(method, provider, scheme)):
            patch[name] = shown[field] = one
    return shown


async def _costs(visit: Visit, patch: Document, form: Form) -> None:
    """What deletes a secret that callers use, or puts another one in its place, has to be meant."""
    if not visit.actor.may("write"):
        return  # whoever may not do it hears that
    saved = (await loaded(visit)).webhook
    how = saved.authentication
    if how.method == "none" or senders.awaited(saved) or form.on("understood"):
        return
    main = "token" if how.method == "token" else "secret"
    others = patch.get("method", how.method) != how.method or (
        isinstance(how, WithSignature) and patch.get("provider", how.provider) != how.provider
    )
    if others or main in patch:
        opens = patch.get("method") == "none"
        what = "everybody may call" if opens else "callers with the current one are rejected"
        raise invalid("understood", f"tick that {what}")


def request_of(form: Form) -> Document:
    """The form in the words of the API."""
    match form.get("method"):
        case "token":
            made: Document = {"method": "token", "placement": form.get("placement", "header")}
            for name in ("headerName", "username", "parameterName", "tokenPath"):
                if form.text(name):
                    made[name] = form.text(name)
            if form.text("newSecret") or form.get("was") != "token":
                made["token"] = form.text("newSecret") or GENERATE
            return made
        case "hmac":
            provider = form.text("provider") or "generic"
            made = {"method": "hmac", "provider": provider}
            stays = form.get("was") == f"hmac {provider}"
            # What this sender has no field for stays as it is, and another sender begins without it.
            for name in ("publicUrl", "toleranceSeconds"):
                if name in form or not stays:
                    made[name] = form.text(name) or None
            if made.get("toleranceSeconds"):
                made["toleranceSeconds"] = _number(made["toleranceSeconds"])
            if form.text("verifyToken"):
                made["verifyToken"] = form.text("verifyToken")
            if provider == "generic":
                made["requireTimestampAndDigest"] = form.on("requireTimestampAndDigest")
            if provider == "custom":
                made |= {"scheme": scheme_of(form), "toleranceSeconds": None}  # its scheme says for how long
            else:
                made["scheme"] = None
            if form.text("newSecret") or not stays:
                made["secret"] = form.text("newSecret") or GENERATE
            return made
        case _:
            return {"method": "none"}


_TEXTS = (
    "algorithm",
    "keysFrom",
    "bodyClaim",
    "encoding",
    "secretEncoding",
    "secretPrefix",
    "signatureKey",
    "timestampFormat",
    "itemSeparator",
    "keySeparator",
)
_IN_THE_FORM = (*_TEXTS, *_LISTS, "signedContent", "toleranceSeconds")


def scheme_of(form: Form) -> Document:
    """A whole scheme: what was emptied goes back to its default, and what the form has no field for stays."""
    scheme: Document = {name: form.text(f"scheme.{name}") or None for name in _TEXTS}
    # Exactly as written: a blank or a line break at its end is signed too.
    scheme["signedContent"] = form.get("scheme.signedContent", "").replace("\r\n", "\n") or None
    for name in _LISTS:
        scheme[name] = [
            part.strip() for part in form.text(f"scheme.{name}").split(",") if part.strip()
        ] or None
    tolerance = form.text("scheme.toleranceSeconds")
    scheme["toleranceSeconds"] = _number(tolerance) if tolerance else None
    others = _others_of(form)
    if "{timestamp}" in str(scheme["signedContent"]):
        others.pop("timestampRequired", None)  # a time that is signed is always required
    return scheme | others


def _number(text: str) -> int | str:
    """What is none is left as it is, and refused by its field's name."""
    number = whole_number(text)
    return text if number is None else number


def _others_of(form: Form) -> Document:
    try:
        others = json.loads(form.get("scheme.others", "{}"))
    except ValueError:
        return {}
    return (
        {name: value for name, value in others.items() if name not in _IN_THE_FORM}
        if isinstance(others, dict)
        else {}
    )


def scheme_context(scheme: Document, others: bool = True) -> Context:
    """What the form of a scheme is filled with. ``others``: what it has no field for comes along, as in a copy."""
    kept = {name: value for name, value in scheme.items() if others and name not in _IN_THE_FORM}
    return {"scheme": _as_fields(scheme), "scheme_others": json.dumps(kept), "shapes": SHAPES}


_SEPARATORS = {"": "", " ": "space", ",": "comma", ";": "semicolon", "=": "equals"}


def _as_fields(scheme: Document) -> dict[str, str]:
    """A scheme as the form shows it: lists with commas, separators by their names."""
    shown = {
        name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in scheme.items()
    }
    for name in ("itemSeparator", "keySeparator"):
        shown[name] = _SEPARATORS.get(str(scheme.get(name) or ""), str(scheme.get(name) or ""))
    return shown
