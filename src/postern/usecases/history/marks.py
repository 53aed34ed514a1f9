"""Bookmarks and notes, which people add to calls for each other."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.history.marks import LONGEST_NOTE, MOST_NOTES, Bookmark, Note
from postern.core.moment import Time
from postern.core.problems import Refused, existing, invalid
from postern.core.visible import can_be_stored
from postern.identity import new_id
from postern.usecases.access.audit import noted
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require

NoteText = Annotated[str, Field(json_schema_extra={"maxLength": LONGEST_NOTE})]
"""Announced, and checked below: blanks at its ends do not count."""


async def bookmark(gateway: Gateway, actor: Actor, invocation_id: str) -> Bookmark:
    """For everybody, so that a call is found again. A second one changes nothing. It keeps nothing: retention
    takes a bookmarked call as any other."""
    require(actor, "write")
    await recorded(gateway, invocation_id)
    note = noted(gateway, actor, "call bookmarked", invocation_id)
    return await gateway.store.marks.bookmark(invocation_id, actor.name, gateway.clock(), note)


async def remove_bookmark(gateway: Gateway, actor: Actor, invocation_id: str) -> None:
    """Where there is none, nothing is done."""
    require(actor, "write")
    await recorded(gateway, invocation_id)
    note = noted(gateway, actor, "bookmark removed", invocation_id)
    await gateway.store.marks.forget_bookmark(invocation_id, note)


async def add_note(gateway: Gateway, actor: Actor, invocation_id: str, text: str) -> Note:
    """Write something beside a call, for everybody who looks at it, with who wrote it and when."""
    require(actor, "write")
    written = text.strip()
    if not written:
        raise invalid("text", "write something")
    if len(written) > LONGEST_NOTE:
        raise invalid("text", f"has at most {LONGEST_NOTE:,} characters")
    if not can_be_stored(written):
        raise invalid("text", "holds a character that no text has")
    await recorded(gateway, invocation_id)
    new_note = Note(new_id("note"), Time(round(gateway.clock(), 3)), actor.name, written)
    note = noted(gateway, actor, "call noted", invocation_id, note=new_note.id)
    if not await gateway.store.marks.add_note(invocation_id, new_note, MOST_NOTES, note):
        raise Refused("conflict", f"a call has at most {MOST_NOTES} notes")
    return new_note


async def delete_note(gateway: Gateway, actor: Actor, invocation_id: str, note_id: str) -> None:
    """One's own, or, for an administrator, anybody's."""
    require(actor, "write")
    await recorded(gateway, invocation_id)
    notes = (await gateway.store.marks.of(invocation_id)).notes
    stored = existing(
        next((note for note in notes if note.id == note_id), None), "this call has no such note"
    )
    if stored.by != actor.name and not actor.may("admin"):
        raise Refused("access_denied", "a note is deleted by who wrote it, or by an administrator")
    written = noted(gateway, actor, "call's note deleted", invocation_id, note=note_id, writtenBy=stored.by)
    await gateway.store.marks.delete_note(note_id, written)
