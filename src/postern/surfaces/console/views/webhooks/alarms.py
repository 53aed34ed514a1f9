"""A webhook's alarms and rhythm in the settings form."""

from postern.core.documents import Document, Patch
from postern.surfaces.console.visit import Context, Form, Visit
from postern.usecases.alarms import incidents
from postern.usecases.answers import as_plain


async def proposed(visit: Visit, webhook_id: str, form: Document) -> Context:
    """If a time zone is given, fills the form with the proposed rhythm, for the user to save."""
    found = None
    if zone := visit.query.get("zone", ""):
        found = await incidents.rhythm(visit.gateway, visit.actor, webhook_id, zone)
        if found.cron:
            form["alarms"] = form["alarms"] | {"rhythm": as_plain(found)}
    return {"proposed": found}


def request_of(form: Form) -> Patch:
    rhythm: Patch | None = {
        "cron": form.text("cron"),
        "graceMinutes": form.number("graceMinutes"),
        "timeZone": form.text("timeZone") or "UTC",
    }
    return {
        "rejected": form.on("rejected"),
        "notStarted": form.on("notStarted"),
        "answers": form.on("answers"),
        "sharePercent": form.number("sharePercent"),
        "waitsMinutes": form.number("waitsMinutes"),
        "rhythm": rhythm if form.text("cron") else None,
    }
