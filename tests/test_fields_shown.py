"""A field that is kept is in its answer, and a field of an answer is shown in the console and by the commands, under its own name
or as what is said here; or it is left out on purpose. REST and MCP have each field of an answer.
"""

import ast
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from jinja2 import Environment, nodes

from postern.core.access import accounts
from postern.core.deliveries import delivery
from postern.core.history import invocation, replay
from postern.core.listeners import Listener, ListenerCall
from postern.core.schedules import ScheduleState
from postern.core.watch import alarms
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.access import views as access
from postern.usecases.alarms.views import Incident
from postern.usecases.answers import View
from postern.usecases.deliveries.views import Replay
from postern.usecases.history.views import calls
from postern.usecases.history.views.calls import Invocation
from postern.usecases.listeners import views as listeners
from postern.usecases.operations.views import Run
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import views as webhooks
from postern.usecases.webhooks.views import Webhook

SURFACES = Path(__file__).parents[1] / "src" / "postern" / "surfaces"

ANSWERED: dict[tuple[Any, type[View]], dict[str, str]] = {
    (StoredWebhook, Webhook): {
        "settings": "have each a field of their own",
        "short_code": "url",
        "secrets": "authentication",
        "unreadable_secrets": "such a webhook is refused, and says why",
        "resolved": "authentication",
        "armed_until": "recording_until",
    },
    (invocation.Invocation, Invocation): {"duration_us": "duration_ms", "outcome": "status"},
    (invocation.Delivery, calls.Delivery): {
        **dict.fromkeys(("invocation_id", "webhook_id", "traceparent"), "the call has it"),
        **dict.fromkeys(("deadline", "answer_code"), "the call says what its caller heard"),
        "next_at": "next_attempt_at",
        "ask_at": "is for the next question to the engine",
        "lane": "is for the next start: where it waits",
        "turn": "is for the next start: `waits_for` says it in words",
        "place": "is for the next start: `waits_for` says it in words",
        "at_work": "is for the next start: `waits_for` says it in words",
        "may_run": "is for the next start",
    },
    (delivery.Run, Run): {},
    (replay.Replay, Replay): {"wanted": "filter", "total": "count", "position": "done"},
    (alarms.Incident, Incident): {"detail": "sentence", "tell_at": "it is soon"},
    (ScheduleState, webhooks.ScheduleState): {
        "webhook_id": "is the webhook's",
        "last_at": "last_run_at",
        **dict.fromkeys(
            ("anchor", "lease_until", "etag", "last_modified", "body_hash"), "is for the next fetch"
        ),
    },
    (Listener, listeners.Listener): {
        **dict.fromkeys(("owner", "owner_id"), "by"),
        **dict.fromkeys(("ended_by", "lease_until"), "only those that are there are listed"),
    },
    (ListenerCall, calls.LocalRun): {
        "owner": "by",
        "duration_us": "ms",
        "invocation_id": "it stands at the call",
        "listener_id": "the listener's name is there",
    },
    (accounts.User, access.User): {"password_hash": "is a secret"},
    (accounts.Session, access.Session): {"seen_at": "last_seen_at"},
}
"""What is kept, and its answer: the other name that a field has there, or why it has none."""

SHOWN: dict[tuple[type[View], str], tuple[str, dict[str, str]]] = {
    (InvocationSummary, "console"): (
        "templates/calls templates/parts.html views/history",
        {"config_version": "matters beside the webhook's changes", "matched": "stands in the call's story"},
    ),
    (InvocationSummary, "cli"): (
        "history/history.py history/story.py",
        {
            "answered_at": "the answer and its milliseconds are there",
            "bookmarked": "is asked for by --bookmarked",
            "edited_from": "the story says of whom it was made",
            "admitted_from": "is in what its caller heard",
            "matched": "stands in the call's story",
            "run_state": "the status says it",
            "runs": "the status says it",
        },
    ),
    (Invocation, "console"): (
        "templates/call views/history",
        {"config_version": "matters beside the webhook's changes", "edited_from": "is in edited", "matched": "is in its steps"},
    ),
    (Invocation, "cli"): (
        "history/story.py",
        {
            "answered_at": "what the caller heard is there with its milliseconds",
            "bookmarked": "is in bookmark",
            "edited_from": "is in edited",
            "admitted_from": "is in what its caller heard",
            "event": "is in the body",
            "judged_at": "is when it came, and some milliseconds",
            "matched": "is in its steps",
            "payload": "is the body",
            "run_state": "stands at each delivery",
            "runs": "stands at each delivery",
            "webhook_name": "the id can be pasted into another command",
        },
    ),
    (Incident, "console"): (
        "templates/incidents",
        {"reasons": "is in the sentence"},
    ),
    (Incident, "cli"): (
        "incidents.py",
        {
            "acknowledged_at": "show has it",
            "closed_because": "show has it",
            "acknowledged_note": "show has it",
            "told": "show has it",
            "opened_at": "a minute after the first",
            "reasons": "is in the sentence",
            "sender_clock": "show has it",
        },
    ),
    (Replay, "console"): ("templates/replays views/history", {"first": "the page lists them itself"}),
    (Replay, "cli"): (
        "history/replays.py",
        {
            "ended_at": "the state says it",
            "first": "calls list shows them, with the same filter",
            "started_at": "the progress says it",
        },
    ),
    (Webhook, "console"): (
        "templates/webhook templates/webhooks templates/creation views/webhooks",
        {"created_at": "the list's order says it", "updated_at": "its changes have their times", "recording_until": "stands on the page of workflows"},
    ),
    (Run, "console"): ("templates/workflows.html", {"id": "leads nowhere", "ended_at": "the state says it", "steps": "stand on the page of the call"}),
}  # fmt: skip
"""Where each answer is shown; and the fields that are left out there, and why. `webhooks show` prints the whole
answer, and no command lists runs: `history show` says how each ended."""


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _read(file: Path) -> set[str]:
    """The names that it reads of what it is given, as in Python or as in JSON."""
    if file.suffix == ".html":
        tree = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"]).parse(
            file.read_text("utf-8")
        )
        texts = [one.value for one in tree.find_all(nodes.Const) if isinstance(one.value, str)]
        return {one.attr for one in tree.find_all(nodes.Getattr)} | {*map(_snake, texts)}
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(_snake(node.value))
    return names


@pytest.mark.parametrize(("answer", "surface"), SHOWN, ids=str)
def test_a_field_is_shown_or_left_out_on_purpose(answer: type[View], surface: str) -> None:
    places, left_out = SHOWN[answer, surface]
    files = [
        file
        for place in places.split()
        for one in [SURFACES / surface / place]
        for file in ([one] if one.is_file() else [*one.rglob("*.html"), *one.rglob("*.py")])
    ]
    assert files
    lacking = set(answer.__struct_fields__) - set().union(*map(_read, files))
    assert not lacking - left_out.keys(), f"show them in surfaces/{surface}/ ({places}), or say here why not"
    assert not left_out.keys() - lacking, "they are shown now"


@pytest.mark.parametrize(("kept", "answer"), ANSWERED, ids=lambda one: one.__name__)
def test_what_is_kept_is_answered_or_left_out_on_purpose(kept: Any, answer: type[View]) -> None:
    lacking = get_type_hints(kept).keys() - {*answer.__struct_fields__}
    others = {one for one in ANSWERED[kept, answer].values() if " " not in one}
    assert others <= {*answer.__struct_fields__}
    assert lacking == ANSWERED[kept, answer].keys(), (
        f"put it into {answer.__module__}.{answer.__name__}, or say here as what"
    )
