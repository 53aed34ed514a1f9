"""Answers about rejected calls that would pass now."""

from typing import Annotated, Literal

from msgspec import Meta, field

from postern.usecases.answers import UNSET, UnsetType, View

AdmissionStanding = Literal["starts", "still_rejected", "cannot_be_admitted", "came_again"]
"""The fate of a rejected call if it were checked now."""

Result = Literal["admitted", "still_rejected", "cannot_be_admitted", "left_out"]
"""The result of a call's admission. ``left_out``: its event has come in by another call."""


class Passing(View):
    """An event that would start now, by the oldest of its ``attempts``."""

    invocation_id: str
    code: str
    fields: dict[str, str]
    attempts: int


class CameAgain(View):
    invocation_id: str
    accepted_as: str


class Why(View):
    """``invocation_ids``: the oldest of them."""

    reason: str
    calls: int
    invocation_ids: list[str]


class Recheck(View):
    """``calls`` would start now, as so many ``events``: several attempts at one event start it once. ``all_judged``: false
    while it is under way, or where there are too many, so that all numbers are at least those."""

    webhook_id: str
    judged: int
    all_judged: bool
    under_way: bool
    calls: int
    events: int
    counted: str
    would_pass: list[Passing]
    """The oldest thousand events."""
    came_again: Annotated[
        list[CameAgain],
        Meta(
            description="Would pass too, but their event came in by another call: the sender sent the same body again, or another attempt was admitted. They are not admitted."
        ),
    ]
    still_rejected: int = field(name="stillRefused")
    still_rejected_because: list[Why]
    cannot_be_admitted: int
    cannot_because: list[Why]
    not_kept: Annotated[
        int,
        Meta(
            description="Rejected calls that were counted and not kept. Their sender has to send them again."
        ),
    ]
    in_words: list[str]


class Admission(View):
    invocation_id: str
    admitted: bool
    result: Result
    reason: str
    delivery_key: str | UnsetType = UNSET


class Admitted(View):
    """``admitted``: events that are started. ``more``: there are more than are started at once."""

    items: list[Admission]
    admitted: int
    left_out: int
    still_rejected: int
    cannot_be_admitted: int
    more: bool
    in_words: list[str]


class Answered(View):
    status: Literal["answered"]


class EndNoted(View):
    status: Literal["noted"]
