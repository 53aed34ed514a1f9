"""Everything that is right as it is for most webhooks, and what to turn when it is not."""

from starlette.responses import Response

from postern.core.documents import Patch
from postern.core.problems import FieldError, Refused
from postern.surfaces.console.views.webhooks.webhook import loaded, refused_tab, save, tab, usual
from postern.surfaces.console.visit import Form, Visit
from postern.usecases.webhooks import trying


async def show(visit: Visit) -> Response:
    return tab(visit, "advanced", await loaded(visit), errors={}, **usual(visit))


async def store(visit: Visit) -> Response:
    form = await visit.form()
    patch = request_of(form)
    if form.on("cors") and not patch["cors"]["origins"]:
        nobody = FieldError("cors.origins", "name the sites, one a line, or write * for every site")
        return await refused_tab(visit, "advanced", patch, Refused("invalid_request", errors=[nobody]))
    return await save(visit, "advanced", patch, form)


async def try_key(visit: Visit) -> Response:
    """What the key being typed would have found."""
    key = visit.query.get("key", "").strip()
    try:
        tried = (
            await trying.duplicate_key(visit.gateway, visit.actor, visit.at("webhook"), key) if key else None
        )
        problem = ""
    except Refused as refused:
        tried, problem = None, refused.errors[0].message if refused.errors else refused.detail
    return visit.page("webhook/tried_key.html", tried=tried, problem=problem)


def _send_again(form: Form) -> Patch:
    token = form.text("sendAgainToken")
    asked = {"account": form.text("sendAgainAccount"), "api": form.text("sendAgainApi") or None}
    return asked | ({"token": token} if token else {})


def accepted_answer(form: Form) -> Patch | None:
    """None: the usual one."""
    written = {
        "status": form.number("answerStatus"),
        "contentType": form.text("answerType"),
        "body": form.text("answerBody"),
    }
    given = {name: value for name, value in written.items() if value not in (None, "")}
    return {"contentType": None, "body": None, "status": None} | given if given else None


def request_of(form: Form) -> Patch:
    """One form for all of it: what is empty goes back to its default."""
    patch: Patch = {
        "name": form.text("name"),
        "folder": form.text("folder") or None,
        "tags": [tag.strip() for tag in form.text("tags").split(",") if tag.strip()],
        "duplicateProtection": {
            "enabled": form.on("duplicates"),
            "key": form.text("key") or None,
            "windowSeconds": form.number("hours", 3600),
        },
        "cors": {"enabled": form.on("cors"), "origins": form.lines("origins")},
        "ipAllowlist": form.lines("ipAllowlist"),
        "payloadLimitBytes": form.number("payloadKib", 1024),
        "arrays": form.text("arrays") or None,
        "acceptsEmpty": form.on("acceptsEmpty"),
        "acceptsXml": form.on("acceptsXml"),
        "acceptedAnswer": accepted_answer(form),
        "rateLimit": {"callsPerSecond": form.number("callsPerSecond"), "burst": form.number("burst")},
        "historyRetentionDays": form.number("historyRetentionDays"),
        "bodyRetentionDays": form.number("bodyRetentionDays"),
    }
    if "asksSender" in form or "sendAgainAccount" in form:
        patch["sendAgain"] = _send_again(form) if form.on("asksSender") else None
    if form.text("headerName"):
        patch["authentication"] = {"headerName": form.text("headerName")}
    return patch
