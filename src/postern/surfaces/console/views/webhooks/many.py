"""The same done with many webhooks: what was chosen, what follows from it, and what came of it."""

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from postern.core.documents import Document
from postern.core.problems import Refused
from postern.surfaces.console import words
from postern.surfaces.console.views.confirmations import FOLLOWS, Question, asked
from postern.surfaces.console.views.webhooks.listing import ACTIONS, FILTERS
from postern.surfaces.console.visit import Visit, messages_of, problem_of, whole_number
from postern.usecases.runtime.gateway import require
from postern.usecases.shapes import validated
from postern.usecases.webhooks import many
from postern.usecases.webhooks.many import ManyRequest

DONE = {
    "enable": "Enabled {}.",
    "disable": "Disabled {}: whoever calls hears 403.",
    "hold": "{} on hold: calls are checked and stored, and their workflows wait.",
    "release": "Released {}.",
    "tag": "Tagged {}.",
    "untag": "Took tags away from {}.",
    "move": "Moved {}.",
    "delete": "Deleted {}: their URLs answer 404. For seven days each can be restored from the bin.",
}


class Chosen(Struct, frozen=True):
    action: str
    ids: list[str]
    everything: bool
    """All that match the filter, instead of those that are marked."""
    filters: dict[str, str]
    tags: str
    folder: str
    back: str
    expected: int | None

    def request(self) -> ManyRequest:
        request: Document = {"action": self.action}
        if self.everything:
            request["filter"] = self.filters
        else:
            request["webhookIds"] = self.ids
        if self.action in ("tag", "untag"):
            request["tags"] = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        if self.action == "move":
            request["folder"] = self.folder.strip() or None
        made: ManyRequest = validated(ManyRequest, request)
        return made

    @property
    def hidden(self) -> list[tuple[str, str]]:
        which = [("all", "on")] if self.everything else [("chosen", webhook_id) for webhook_id in self.ids]
        return [*self.filters.items(), *which, ("action", self.action), ("back", self.back)]


async def _chosen(visit: Visit) -> Chosen:
    pairs = await visit.pairs()
    fields = dict(pairs)
    back = fields.get("back", "")
    return Chosen(
        action=fields.get("action", ""),
        ids=list(dict.fromkeys(value for name, value in pairs if name == "chosen")),
        everything=fields.get("all") == "on",
        filters={name: value for name in FILTERS if (value := fields.get(name, "").strip())},
        tags=fields.get("tags", ""),
        folder=fields.get("to", ""),
        back=back if back.startswith("/webhooks") else "/webhooks",
        expected=whole_number(fields.get("expected", "")),
    )


async def ask(visit: Visit) -> Response:
    """Shows the consequences before anything is done."""
    require(visit.actor, "write")
    return await _asked(visit, await _chosen(visit))


async def _asked(visit: Visit, chosen: Chosen, status: int = 200, problem: Refused | None = None) -> Response:
    if not chosen.everything and not chosen.ids:
        how = "Mark the webhooks in the list, or all that match."
        return asked(visit, Question("Choose webhooks first", [how], "", "", []), chosen.back, status)
    if chosen.action not in ACTIONS:
        raise Refused("not_found")
    # Only to count: what is to be written comes with the answer.
    counted = replace(chosen, tags="-", folder="").request()
    result = await visit.ask(many.effects, counted)
    return asked(
        visit,
        _question(chosen, result),
        chosen.back,
        status,
        chosen=chosen,
        asks={"tag": "tags", "untag": "tags", "move": "folder"}.get(chosen.action, ""),
        errors=messages_of(problem) if problem else {},
        problem=problem_of(problem) if problem and not problem.errors else None,
    )


TITLES = {
    "tag": "Add tags to {}?",
    "untag": "Take tags away from {}?",
    "move": "Move {} to a folder?",
}


def _question(chosen: Chosen, effects: many.Effects) -> Question:
    those, label = words.plural(effects.count, "webhook"), ACTIONS[chosen.action][0]
    follows = [
        words.listed([*effects.names, *[""] * (effects.count - len(effects.names))], len(effects.names)) + "."
    ]
    if chosen.action in ("disable", "delete"):
        follows.append(f"{words.plural(effects.last_day, 'call')} came to them in the last 24 hours.")
    if chosen.action == "release":
        follows.append(f"{words.plural(effects.waiting, 'call')} waiting behind them will be started now.")
    return Question(
        TITLES.get(chosen.action, label + " {}?").format(those),
        follows + FOLLOWS.get(chosen.action, []),
        "/webhooks/many",
        f"{label}: {those}",
        [*chosen.hidden, ("expected", str(effects.count))],
        danger=chosen.action in ("disable", "delete"),
    )


async def do(visit: Visit) -> Response:
    require(visit.actor, "write")
    chosen = await _chosen(visit)
    try:
        request = chosen.request()
        request.expected = chosen.expected
        done = await visit.ask(many.change, request)
    except Refused as refused:
        if refused.code not in ("invalid_request", "conflict"):
            raise
        return await _asked(visit, chosen, refused.problem.status, refused)
    outcome = DONE[done.action].format(words.plural(done.done, "webhook"))
    return visit.page("webhooks/many_done.html", done=done, outcome=outcome, back=chosen.back)
