"""The same done with many webhooks: what was chosen, what follows from it, and what came of it."""

from msgspec import Struct
from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console import words
from postern.surfaces.console.views.confirmations import Question
from postern.surfaces.console.views.webhooks.listing import ACTIONS, FILTERS
from postern.surfaces.console.visit import Visit, problem_of, read_pairs, whole_number
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


class Chosen(Struct):
    """What the form says."""

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
        asked: dict[str, object] = {"action": self.action}
        if self.everything:
            asked["filter"] = {name: value for name, value in self.filters.items() if value}
        else:
            asked["webhookIds"] = self.ids
        if self.action in ("tag", "untag"):
            asked["tags"] = [one.strip() for one in self.tags.split(",") if one.strip()]
        if self.action == "move":
            asked["folder"] = self.folder.strip() or None
        request: ManyRequest = validated(ManyRequest, asked)
        return request


async def _chosen(visit: Visit) -> Chosen:
    pairs = await read_pairs(visit.request)
    fields = dict(pairs)
    back = fields.get("back", "")
    return Chosen(
        fields.get("action", ""),
        list(dict.fromkeys(value for name, value in pairs if name == "chosen")),
        fields.get("all") == "on",
        {name: fields.get(name, "").strip() for name in FILTERS},
        fields.get("tags", ""),
        fields.get("to", ""),
        back if back.startswith("/webhooks") else "/webhooks",
        whole_number(fields.get("expected", "")),
    )


async def ask(visit: Visit) -> Response:
    """What would follow, before anything is done."""
    require(visit.actor, "write")
    return await _asked(visit, await _chosen(visit))


async def _asked(visit: Visit, chosen: Chosen, status: int = 200, problem: Refused | None = None) -> Response:
    template = "webhooks/many_dialog.html" if visit.wants_part else "webhooks/many_page.html"
    if not chosen.everything and not chosen.ids:
        nothing = Question("Choose webhooks first", [], "", "", "Back to the list")
        return visit.page(template, status, question=nothing, chosen=chosen, back=chosen.back, errors={})
    if chosen.action not in ACTIONS:
        raise Refused("not_found")
    # Only to count: what is to be written comes with the answer.
    counted = Chosen(**{name: getattr(chosen, name) for name in Chosen.__struct_fields__})
    counted.tags, counted.folder = "-", ""
    found = await many.effects(visit.gateway, visit.actor, counted.request())
    chosen.expected = found.count
    errors = {error.field.split(".")[0]: error.message for error in problem.errors} if problem else {}
    return visit.page(
        template,
        status,
        question=_question(chosen, found),
        chosen=chosen,
        back=chosen.back,
        errors={name: text[:1].upper() + text[1:] for name, text in errors.items()},
        problem=problem_of(problem) if problem and not problem.errors else None,
    )


def _question(chosen: Chosen, found: many.Effects) -> Question:
    those = words.plural(found.count, "webhook")
    label = f"{ACTIONS[chosen.action][0]}: {those}"
    title = {
        "tag": f"Add tags to {those}?",
        "untag": f"Take tags away from {those}?",
        "move": f"Move {those} to a folder?",
    }.get(chosen.action, f"{ACTIONS[chosen.action][0]} {those}?")
    named = [words.listed([*found.names, *[""] * (found.count - len(found.names))], len(found.names)) + "."]
    calls = [f"{words.plural(found.last_day, 'call')} came to them in the last 24 hours."]
    consequences = {
        "enable": ["Their URLs accept calls again."],
        "disable": [
            *calls,
            "From now on each call hears 403. Many senders try again for some hours or days; some give the webhook up.",
        ],
        "hold": [
            "Calls are checked and stored as usual. Their workflows wait until you release them; so does the answer of a workflow: callers are told at once that the call was accepted."
        ],
        "release": [f"{words.plural(found.waiting, 'call')} waiting behind them will be started now."],
        "delete": [
            *calls,
            "From now on whoever calls their URLs hears 404.",
            "For seven days each can be restored from the bin, with its URL, settings, secrets and history. Then its "
            "settings and secrets are gone for good.",
        ],
    }.get(chosen.action, [])
    return Question(
        title,
        named + consequences,
        "/webhooks/many",
        label,
        "Leave them as they are",
    )


async def do(visit: Visit) -> Response:
    require(visit.actor, "write")
    chosen = await _chosen(visit)
    try:
        request = chosen.request()
        request.expected = chosen.expected
        done = await many.change(visit.gateway, visit.actor, request)
    except Refused as refused:
        if refused.code not in ("invalid_request", "conflict"):
            raise
        return await _asked(visit, chosen, refused.problem.status, refused)
    outcome = DONE[done.action].format(words.plural(done.done, "webhook"))
    return visit.page("webhooks/many_done.html", done=done, outcome=outcome, back=chosen.back)
