"""Every operation of the API, in the order in which its description shows them, by name: a gateway loads all topics, and
a command that asks for one operation of eighty loads no other topic than the one that has it
(`docs/decisions/0018-commands.md`)."""

from collections.abc import Iterator
from importlib import import_module

from postern.surfaces.rest.framework.operation import Operation, Rows

TOPICS: dict[str, set[str]] = {
    "webhooks.webhooks:row": {"webhooks"},
    "webhooks.bin:row": {"bin"},
    "history.samples:row": {"webhooks", "record-events"},
    "signatures.sending:row": {"webhooks"},
    "schedules:row": {"webhooks"},
    "deliveries.holds:row": {"webhooks"},
    "calls.readmission:webhooks_row": {"webhooks"},
    "webhooks.configuration:row": {"configuration"},
    "operations:configuration_row": {"status", "settings"},
    "signatures.signatures:row": {"providers", "proposals", "signature-tests"},
    "history.history:row": {"invocations", "volumes"},
    "history.marks:row": {"invocations"},
    "signatures.signatures:fix_row": {"invocations"},
    "calls.answers:row": {"invocations"},
    "calls.readmission:history_row": {"readmissions"},
    "deliveries.replays:row": {"replays"},
    "history.live:row": {"live"},
    "listeners:row": {"listeners"},
    "operations:engine_row": {"workflows", "runs"},
    "access:row": {"api-keys", "audit", "users", "sessions", "me"},
}
"""Module and name of the rows: the words that their paths begin with."""


def operations(word: str | None = None) -> Iterator[Operation]:
    """All, or those of the topics that have paths which begin with ``word``. A topic is loaded when it is reached."""
    for place, words in TOPICS.items():
        if word is None or word in words:
            yield from _rows(place).operations


def _rows(place: str) -> Rows:
    module, _, name = place.partition(":")
    rows: Rows = getattr(import_module(f"postern.surfaces.rest.{module}"), name)
    return rows
