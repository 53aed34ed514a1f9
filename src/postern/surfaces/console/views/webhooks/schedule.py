"""A webhook that nobody needs to call: what it fetches, when, and how the last time went."""

from typing import Any

from starlette.responses import Response

from postern.core.documents import Document, Patch
from postern.core.problems import Refused
from postern.core.schedules import InvalidSchedule, next_times, parse_schedule
from postern.core.webhooks.settings import ScheduleSetting
from postern.surfaces.console.views.webhooks.settings import change, header_changes, headers_of
from postern.surfaces.console.views.webhooks.webhook import loaded, tab
from postern.surfaces.console.visit import Form, Visit, deed, told_of
from postern.usecases import schedules
from postern.usecases.answers import as_plain

UNITS = {"m": "minutes", "h": "hours", "d": "days", "s": "seconds"}
EMPTY: Document = as_plain(ScheduleSetting(url="", every="15m"))


async def show(visit: Visit, status: int = 200, **context: Any) -> Response:
    webhook = await loaded(visit)
    setting = context.pop("setting", None) or as_plain(webhook.schedule) or EMPTY
    amount, unit = _every(setting.get("every"))
    return tab(
        visit,
        "schedule",
        webhook,
        status,
        setting=setting,
        said=next_runs(visit, setting.get("cron") or "", setting.get("timeZone") or "UTC"),
        amount=amount,
        unit=unit,
        units=list(UNITS.items()),
        state=webhook.schedule_state,
        **({"result": None} | context),
    )


def next_runs(visit: Visit, cron: str, zone: str) -> str:
    """When a cron expression that is saved or being typed is due, or what is wrong with it."""
    if not cron:
        return ""
    try:
        times = next_times(parse_schedule(None, cron, zone), visit.gateway.clock(), 3)
    except InvalidSchedule as wrong:
        return f"{str(wrong)[:1].upper()}{str(wrong)[1:]}."
    return f"Next runs: {', '.join(f'{moment:%a %-d %b %Y %H:%M}' for moment in times)} ({zone})."


async def preview(visit: Visit) -> Response:
    cron, zone = (visit.query.get(name, "").strip() for name in ("cron", "timeZone"))
    return visit.page("webhook/next_runs.html", said=next_runs(visit, cron, zone or "UTC"))


async def store(visit: Visit) -> Response:
    form = await visit.form()
    setting = None if form.get("remove") else request_of(form)
    wish: Patch = {}
    try:
        saved = (await loaded(visit)).schedule
        if setting and saved and saved.every and _every(saved.every) == _every(setting["every"]):
            setting["every"] = saved.every  # as it was written, like 90 for 90s
        patch = setting and setting | {
            "headers": header_changes(setting["headers"], saved.headers if saved else [])
        }
        wish["schedule"] = patch
        done = await change(visit, wish, form)
    except Refused as refused:
        if refused.code == "version_conflict" and isinstance(wish.get("schedule"), dict):
            # Somebody else has saved meanwhile: theirs stays, except for the fields changed in this form.
            mine, theirs = wish["schedule"], as_plain((await loaded(visit)).schedule) or {}
            written = {"headers": setting["headers"]} if setting and "headers" in mine else {}
            setting = theirs | mine | written
        return await show(visit, refused.problem.status, setting=EMPTY | (setting or {}), **told_of(refused))
    return visit.to(f"/webhooks/{visit.at('webhook')}/schedule", "scheduled" if done == "saved" else done)


async def run_now(visit: Visit) -> Response:
    return await show(visit, result=await visit.ask(schedules.run_now, visit.at("webhook")))


resume = deed(schedules.resume, "webhook", "/webhooks/{webhook}/schedule", "scheduled")


def request_of(form: Form) -> Document:
    by_cron = form.get("when") == "cron"
    return {
        "url": form.text("url"),
        "every": None if by_cron else f"{form.text('amount')}{form.get('unit', 'm')}",
        "cron": form.text("cron") if by_cron else None,
        "timeZone": form.text("timeZone") or "UTC",
        "headers": headers_of(form, "headers"),
        "timeoutSeconds": form.number("timeoutSeconds") or 10,
        "onlyWhenChanged": form.on("onlyWhenChanged"),
        "splitArray": form.on("splitArray"),
        "pauseAfterFailures": form.number("pauseAfterFailures") or 10,
        "enabled": form.on("enabled"),
    }


def _every(every: Any) -> tuple[str, str]:
    """The number and the unit, as they were written."""
    text = str(every or "15m").lower()
    return (text[:-1].strip(), text[-1]) if text[-1] in UNITS else (text, "s")
