"""Answers about rejected calls that would pass now."""

from typing import Annotated, Literal

from msgspec import Meta, field

from postern.usecases.answers import UNSET, UnsetType, View


class Passing(View):
    invocation_id: str
    code: str
    fields: dict[str, str]


class CameAgain(View):
    invocation_id: str
    accepted_as: str


class Recheck(View):
    webhook_id: str
    would_pass: list[Passing]
    came_again: Annotated[
        list[CameAgain],
        Meta(
            description="Would pass too, but the sender sent the same body again, and it was accepted. They are not admitted."
        ),
    ]
    still_rejected: int = field(name="stillRefused")
    not_kept: Annotated[
        int,
        Meta(
            description="Rejected calls that were counted and not kept. Their sender has to send them again."
        ),
    ]


class Admission(View):
    invocation_id: str
    admitted: bool
    reason: str
    delivery_key: str | UnsetType = UNSET


class Admitted(View):
    items: list[Admission]
    admitted: int


class Answered(View):
    status: Literal["answered"]


class EndNoted(View):
    status: Literal["noted"]
