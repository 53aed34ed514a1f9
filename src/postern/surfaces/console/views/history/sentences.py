"""Sentences that tell what became of a call."""

from postern.surfaces.console import words
from postern.usecases.answers import UnsetType
from postern.usecases.history.views.calls import Delivery, Invocation
from postern.usecases.summary import InvocationSummary


def reason(item: InvocationSummary) -> str:
    """One sentence for the whole story."""
    if item.status == "rejected":
        why = item.detail or words.code(item.code)
        return f"{why[:1].upper()}{why[1:]}."
    if item.status == "filtered":
        return f"Not started: {item.detail}."
    if item.status == "started" and item.nobody_listens:
        return "Accepted, and no workflow was started: none wants the calls of this webhook."
    if item.status == "failed" and item.run_state != "failed":
        why = (item.error or "no reason was given").rstrip(".")
        return f"Accepted, but {_not_begun(why)}: {why}{_answered(item)}."
    if item.status == "accepted" and item.error:
        why = item.error.rstrip(".")
        return f"Stored; {_not_begun(why)} yet, and is tried again: {why}{_answered(item)}."
    if item.runs:
        return f"{_ran(item)}{_answered(item)}."
    return words.STATUS_HELP.get(item.status, "")


def _not_begun(why: str) -> str:
    return "it could not be sent" if why.startswith("the target ") else "its workflow could not be started"


def _ran(item: InvocationSummary) -> str:
    if item.workflows and item.workflows[0].startswith(("http://", "https://")):
        return f"{item.workflows[0]} has taken it"  # a webhook's own target
    names = words.listed(item.workflows) if item.workflows else words.plural(item.runs or 0, "workflow")
    several = (item.runs or 0) > 1
    if item.status == "lost":
        return f"{names} {'were' if several else 'was'} started, and the engine does not know {'them' if several else 'it'} any more"
    match item.run_state:
        case "completed":
            return f"{names} completed"
        case "failed":
            # Engines that run several workflows for a call say which of them it was.
            why = (item.error or "no reason was given").removeprefix(f"{names}: ").rstrip(".")
            return f"{names} failed: {why}"
        case "running":
            return f"{names} {'are' if several else 'is'} running"
        case "unknown" | UnsetType() | None:
            return f"{names} {'were' if several else 'was'} started; this engine does not report how {'they' if several else 'it'} ended"


def caller(item: Invocation) -> str:
    """The answer that the caller got and when, as far as it is known."""
    if item.uncalled:
        return item.uncalled
    first = item.deliveries[0] if item.deliveries and item.deliveries[0].emission == 1 else None
    if item.caller_gone:
        return f"had left before its answer ({item.http_status}), {words.milliseconds(item.duration_ms)} after its call"
    if item.answered_at is not None:
        return f"answered {item.http_status} in {words.milliseconds(item.duration_ms)}"
    if first is not None and first.answer == "waiting":
        return "waits for the answer of the workflow"
    if first is not None and first.answer is not None:
        return f"answered {item.http_status}; whether it was still connected is not known"
    return f"answered {item.http_status}" if item.http_status else "its answer is not known"


def started_by(item: Invocation, delivery: Delivery) -> tuple[str, str]:
    """Who did it, and what: the title of a delivery in the call's story."""
    who = delivery.asked_by or "Postern"
    if delivery.emission > 1:
        return who, "replayed it again" if delivery.emission > 2 else "replayed it"
    if item.code == "filtered":
        return who, "started it by hand"
    if item.code not in ("accepted", "edited"):
        return who, "checked it again and admitted it"
    return who, "started its workflow" if delivery.started_at else "starts its workflow"


def _answered(item: InvocationSummary) -> str:
    if item.caller_gone:
        return "; the caller had left before its answer"
    if item.status == "responded":
        return "; the caller heard its answer" if item.answered_at else ""
    if item.answered_at and item.http_status and item.http_status >= 500:
        return f"; the caller heard {item.http_status}"
    return ""
