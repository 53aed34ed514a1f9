"""Filters of the history, as every surface asks for them."""

import re
from typing import Annotated, Any

from pydantic import Field
from pydantic.alias_generators import to_camel

from postern import identity
from postern.core.calls.paths import InvalidPath, parse_path
from postern.core.history.invocation import STATUSES, HistoryFilter, StatusFilter
from postern.core.history.part import part_of
from postern.core.moment import moment as read_moment
from postern.core.problems import FieldError, Refused, invalid, refuse_wrong
from postern.core.visible import can_be_stored
from postern.usecases.shapes import Shape

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ANSWER = re.compile(r"[1-5](xx|\d\d)|gone")

Id = Annotated[str, Field(max_length=80)]
MomentText = Annotated[str, Field(max_length=40)]
FilterText = Annotated[str, Field(max_length=200)]
FilterValue = Annotated[str, Field(max_length=4000)]
PartText = Annotated[str, Field(max_length=300)]


class FilterRequest(Shape):
    """Which calls: every part that is given must hold."""

    webhook_id: Id | None = Field(default=None, description="Only calls to this webhook.")
    status: StatusFilter | None = Field(
        default=None,
        description="Only invocations in this status. delivered: started, responded or completed, where a workflow wanted it. waiting: accepted or held.",
    )
    code: Id | None = Field(default=None, description="Only this reason, like signature_mismatch.")
    since: MomentText | None = Field(
        default=None,
        description="Not before this time: ISO 8601, seconds since 1970, or how long ago: 45s, 30m, 1h, 2d.",
        examples=["2026-11-21T09:00:00Z"],
    )
    until: MomentText | None = Field(
        default=None, description="Before this time, written likewise.", examples=["2026-11-21T09:00:00Z"]
    )
    search: FilterText | None = Field(
        default=None,
        description="Only calls whose headers, query or body hold this text, in capitals or not, or the reason why they were rejected or failed.",
    )
    answer: Annotated[str, Field(max_length=4)] | None = Field(
        default=None,
        description="Only calls whose caller heard this: a status like 504, all of a kind like 5xx, or gone, where it had left.",
    )
    value: FilterValue | None = Field(
        default=None,
        description="Only calls with this whole mapped value or event name, in capitals or not, or, with a * at its end, its "
        "beginning; or the calls with these IDs, with commas between them. Quick in a history of any length; found some seconds after the call. A rejected call has the values that the mapping found then, where its body is an object of 16 KiB at most.",
    )
    address: Id | None = Field(
        default=None, description="Only calls from this address. Found some seconds after the call."
    )
    bookmarked: bool = Field(default=False, description="Only calls that somebody has bookmarked.")
    header: PartText | None = Field(
        default=None,
        description="Only calls with this header: its name, name=value, or name=beginning*. The calls are gone through.",
    )
    field: PartText | None = Field(
        default=None,
        description="Only calls with this mapped value (fieldOne=1001), or this value at a path of the payload (customer.id=7), for "
        "which the calls are gone through; a * at the end stands for any ending. A replay can be planned by mapped values alone.",
    )

    replay: Id | None = Field(
        default=None, description="Only calls that this replay of many has replayed (rpl_…)."
    )
    error: Annotated[str, Field(max_length=500)] | None = Field(
        default=None,
        description="Only calls that failed with this error, the whole of it; a … in it stands for any text.",
    )

    def wanted(self, within: str = "") -> HistoryFilter:
        parts = {name: getattr(self, name) for name in FilterRequest.model_fields}
        return filter_of(**parts, within=within)


def filter_of(within: str = "", **parts: Any) -> HistoryFilter:
    """Reads what somebody asked for; an empty text asks for nothing. Refuses wrong fields by their names after ``within``."""
    given = {name: value for name, value in parts.items() if value}
    errors: list[FieldError] = []

    def refuse(field: str, why: str) -> None:
        errors.append(FieldError(within + field, why))

    for name in ("webhook_id", "code", "search", "value", "header", "field", "error"):
        # No stored text holds such characters, and Postgres refuses to look for them.
        if not can_be_stored(given.get(name, "")):
            refuse(to_camel(name), "holds a character that no text has")
    if "header" in given and not _HEADER.fullmatch(part_of(given["header"]).name):
        refuse("header", "write a header's name, or name=value, like x-event=paid")
    if "field" in given:
        try:
            parse_path(part_of(given["field"]).name)
        except InvalidPath as error:
            refuse("field", f"{error}; then = and a value")
    if given.get("status", STATUSES[0]) not in STATUSES:
        refuse("status", f"choose one of: {', '.join(STATUSES)}")
    if "answer" in given and not _ANSWER.fullmatch(given["answer"]):
        refuse("answer", "write a status like 504, all of a kind like 5xx, or gone")
    for name in ("since", "until"):
        try:
            given[name] = moment(given.get(name), within + name)
        except Refused as refused:
            errors += refused.errors
    refuse_wrong(errors)
    if "address" in given:
        given["address"] = given["address"].strip().lower() or None
    return HistoryFilter(**given)


def moment(text: str | None, field: str) -> float | None:
    if not text:
        return None
    try:
        return read_moment(text, identity.clock())
    except ValueError as error:
        raise invalid(field, str(error)) from None
