"""Bookmarks and notes of calls over HTTP."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.usecases.history import marks
from postern.usecases.history.marks import NoteText
from postern.usecases.history.views.calls import Bookmark, Note
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("History")


class NoteRequest(Shape):
    text: NoteText


@row("PUT", "/invocations/{invocation_id}/bookmark", "Bookmark an invocation", level="write")
async def bookmark_invocation(gateway: Gateway, actor: Actor, invocation_id: str) -> Bookmark:
    """For everybody. It keeps nothing: retention takes a bookmarked call as any other."""
    return await marks.bookmark(gateway, actor, invocation_id)


@row(
    "DELETE", "/invocations/{invocation_id}/bookmark", "Take an invocation's bookmark away",
    level="write", status=204,
)  # fmt: skip
async def remove_invocation_bookmark(gateway: Gateway, actor: Actor, invocation_id: str) -> None:
    await marks.remove_bookmark(gateway, actor, invocation_id)


@row(
    "POST", "/invocations/{invocation_id}/notes", "Write a note to an invocation",
    level="write", status=201, refuses=("conflict",), idempotent=True,
)  # fmt: skip
async def note_invocation(gateway: Gateway, actor: Actor, invocation_id: str, body: NoteRequest) -> Note:
    """For everybody who looks at it, with who wrote it and when."""
    return await marks.add_note(gateway, actor, invocation_id, body.text)


@row(
    "DELETE", "/invocations/{invocation_id}/notes/{note_id}", "Delete a note of an invocation",
    level="write", status=204,
)  # fmt: skip
async def delete_invocation_note(gateway: Gateway, actor: Actor, invocation_id: str, note_id: str) -> None:
    """One's own, or, for an administrator, anybody's."""
    await marks.delete_note(gateway, actor, invocation_id, note_id)
