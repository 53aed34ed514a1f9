"""The page that lists what the sender did not deliver, and asks for it."""

from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console.views.webhooks.webhook import loaded, tab
from postern.surfaces.console.visit import Visit
from postern.usecases.sending_again import asking
from postern.usecases.shapes import validated


async def show(visit: Visit) -> Response:
    return await _page(visit, visit.query.get("since", ""), dry_run=True)


async def ask(visit: Visit) -> Response:
    return await _page(visit, (await visit.form()).text("since"), dry_run=False)


async def _page(visit: Visit, since: str, dry_run: bool) -> Response:
    head = await loaded(visit)
    told, problem = None, ""
    if since:
        try:
            asked = validated(asking.SendAgainRequest, {"since": since, "dryRun": dry_run})
            told = await asking.send_again(visit.gateway, visit.actor, head.webhook.id, asked)
        except Refused as refused:
            problem = refused.errors[0].message if refused.errors else refused.detail or refused.code
    return tab(
        visit,
        "calls",
        head,
        shown="send_again",
        told=told,
        problem=problem,
        since=since or "2h",
        was_asked=not dry_run,
    )
