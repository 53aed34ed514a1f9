"""Send again: what a sender could not deliver is asked for here, and what is needed for that is given here."""

from contextlib import suppress
from urllib.parse import urlencode

from starlette.responses import Response

from postern.core.moment import moment
from postern.core.problems import Refused
from postern.surfaces.console.views.webhooks.settings import request_of
from postern.surfaces.console.views.webhooks.webhook import loaded, tab
from postern.surfaces.console.visit import PageValues, Visit, messages_of, problem_of, whole_number
from postern.usecases.answers import Time
from postern.usecases.sending_again import asking
from postern.usecases.webhooks import webhooks

BEGAN = {"incident": "Since the incident began", "call": "Since that call came"}
"""The times with which other pages lead here, by their name in the address."""
MOST_LOOKS = 12
"""How often the page looks by itself at what has become of what it asked for."""


async def show(visit: Visit) -> Response:
    """The page at once, and then the sender's list: to read it may take a minute."""
    return await _page(visit, visit.query.get("since", ""), visit.wants_part or "now" in visit.query)


async def ask(visit: Visit) -> Response:
    return await _page(visit, (await visit.form()).text("since"), asks=True)


async def save_access(visit: Visit) -> Response:
    """The account and the token with which the sender is asked, or that it is not asked any more."""
    patch = request_of(await visit.form()).get("sendAgain")
    try:
        await visit.ask(webhooks.change, visit.at("webhook"), {"sendAgain": patch})
    except Refused as refused:
        if not refused.errors:
            raise
        typed = {name: value for name, value in (patch or {}).items() if name != "token"}
        return await _page(visit, "", status=422, errors=messages_of(refused), access_now=typed)
    query = urlencode(_began(visit))
    return visit.to(f"/webhooks/{visit.at('webhook')}/send-again" + ("?" + query if query else ""))


async def _page(
    visit: Visit,
    since: str,
    looks: bool = False,
    asks: bool = False,
    status: int = 200,
    **context: PageValues,
) -> Response:
    webhook = await loaded(visit)
    shown: PageValues = {"told": None, "errors": {}, "wrong": None, "access_now": webhook.send_again}
    at = None
    try:
        at = Time(moment(since, visit.gateway.clock())) if since else None
        if at is not None and (looks or asks):
            request = asking.SendAgainRequest(since=str(at), dry_run=not asks)
            shown["told"] = await visit.ask(asking.send_again, webhook.id, request)
    except ValueError as error:
        status, shown["errors"] = 422, {"since": f"{error}"}
    except Refused as refused:
        status, shown["wrong"] = refused.problem.status, problem_of(refused)
    began = _began(visit)
    return tab(
        visit,
        "calls",
        webhook,
        status,
        shown="send_again",
        since=at,
        asks=asks,
        began=began,
        kept=urlencode(began),
        words_of_began=BEGAN,
        look=min(whole_number(visit.query.get("look", "")) or 0, MOST_LOOKS),
        most_looks=MOST_LOOKS,
        **shown | context,
    )


def _began(visit: Visit) -> dict[str, Time]:
    times = {}
    for name in BEGAN:
        with suppress(ValueError):
            times[name] = Time(moment(visit.query.get(name, ""), visit.gateway.clock()))
    return times
