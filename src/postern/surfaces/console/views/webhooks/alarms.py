"""What is watched for at a webhook, and the rhythm of its calls."""

from starlette.responses import Response

from postern.core.documents import Patch
from postern.surfaces.console.views.webhooks.webhook import loaded, save, tab
from postern.surfaces.console.visit import Form, Visit
from postern.usecases.alarms import incidents
from postern.usecases.answers import as_plain


async def show(visit: Visit) -> Response:
    """With a time zone: what it proposes stands in the form, and is saved by whoever agrees."""
    head = await loaded(visit)
    form, proposed = as_plain(head.webhook), None
    if zone := visit.query.get("zone", ""):
        proposed = await incidents.rhythm(visit.gateway, visit.actor, head.webhook.id, zone)
        if proposed.cron:
            form["alarms"]["rhythm"] = as_plain(proposed)
    return tab(visit, "alarms", head, errors={}, form=form, proposed=proposed)


async def store(visit: Visit) -> Response:
    form = await visit.form()
    return await save(visit, "alarms", request_of(form), form)


def request_of(form: Form) -> Patch:
    rhythm: Patch | None = {
        "cron": form.text("cron"),
        "graceMinutes": form.number("graceMinutes"),
        "timeZone": form.text("timeZone") or "UTC",
    }
    return {
        "alarms": {
            "rejected": form.on("rejected"),
            "notStarted": form.on("notStarted"),
            "answers": form.on("answers"),
            "sharePercent": form.number("sharePercent"),
            "waitsMinutes": form.number("waitsMinutes"),
            "rhythm": rhythm if form.text("cron") else None,
        }
    }
