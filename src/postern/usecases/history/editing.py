"""EditedFrom replays: a workflow is started with a changed copy of a recorded call. The copy is an invocation of its own."""

from functools import partial

import msgspec
from msgspec.structs import replace

from postern.core.access.accounts import Actor
from postern.core.calls.content import (
    LARGEST_PAYLOAD_LIMIT,
    LONGEST_VALUE,
    RECORDED,
    UnreadableContent,
    read_object,
)
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.invocation import Invocation
from postern.core.history.marks import EditedFrom
from postern.core.history.replay import Values
from postern.core.problems import FieldError, Refused, invalid, refuse_wrong
from postern.identity import new_id
from postern.usecases.access.audit import noted
from postern.usecases.history.comparing import document_changes, line
from postern.usecases.history.history import fields_of_replay, recorded, replayable, started_again
from postern.usecases.history.views.calls import Replayed
from postern.usecases.runtime.gateway import Gateway, require

MOST_NAMED = 20
LONGEST_NAMED = 120


async def replay_edited(
    gateway: Gateway,
    actor: Actor,
    invocation_id: str,
    *,
    body: str | None = None,
    values: dict[str, str] | None = None,
    fields: Values = "current",
) -> Replayed:
    """Start the workflow with a changed copy of a recorded call: another ``body``, read as the first was, or
    ``values`` set by hand; the other fields are as the mapping finds them in the body, or as they were
    recorded. The answer names the copy, an invocation of its own, which says of which one it was made and
    what was changed. The recorded call stays as it came. No signature is checked: whoever may write vouches
    for it."""
    require(actor, "write")
    story = await recorded(gateway, invocation_id)
    original = story.invocation
    webhook = replayable(gateway, story)
    content = original.body if body is None else body.encode(errors="replace")
    if content is None:
        raise Refused("conflict", "the call's body is no longer kept")
    if len(content) > LARGEST_PAYLOAD_LIMIT:
        raise Refused("payload_too_large", f"a body has at most {LARGEST_PAYLOAD_LIMIT // 1024**2} MiB")
    length = str(len(content))
    headers = [
        (name, length if name.lower() == "content-length" else it) for name, it in original.header_pairs
    ]
    made = replace(
        original,
        id=new_id("inv"),
        received_at=gateway.clock(),
        outcome="edited",
        code="edited",
        status=0,
        config_version=webhook.version,
        headers=msgspec.json.encode(headers),
        body=content,
        body_size=len(content),
        address="",
        duration_us=0,
        matched="",
        detail="",
        duplicate_of=None,
    )
    payload = read_object(made.as_call(), RECORDED)
    if isinstance(payload, UnreadableContent):
        raise invalid("body", payload.detail)
    mapped = fields_of_replay(webhook, story, payload, fields)
    by_hand = {name: value for name, value in (values or {}).items() if mapped.get(name, "") != value}
    _check(values or {})
    found_changes = await line.run(partial(_changes, original, content))
    changed = found_changes + [f"{name} set by hand" for name in FIELD_NAMES if name in by_hand]
    if not changed:
        raise Refused("invalid_request", "nothing was changed: replay the call as it is")
    said = f"made by {actor.name} from {original.id}: {'; '.join(changed)}"
    made.trace = msgspec.json.encode([("edited", True, said)])
    return await started_again(
        gateway,
        webhook,
        made.id,
        mapped | by_hand,
        payload,
        by=actor.name,
        note=noted(gateway, actor, "edited invocation replayed", original.id, made=made.id, changed=changed),
        made=(made, EditedFrom(original.id, actor.name, changed)),
    )


def _check(values: dict[str, str]) -> None:
    errors = []
    for name, value in values.items():
        if name not in FIELD_NAMES:
            errors.append(FieldError(f"values.{name[:40]}", f"choose one of: {', '.join(FIELD_NAMES)}"))
        elif len(value) > LONGEST_VALUE:
            errors.append(FieldError(f"values.{name}", f"has at most {LONGEST_VALUE:,} characters"))
    refuse_wrong(errors)


def _changes(original: Invocation, content: bytes) -> list[str]:
    """The changes in short words. The earlier body is shown by its own call."""
    was = original.body or b""
    if was == content:
        return []
    differences = document_changes(was, content)
    if differences is None:
        return ["body changed"]
    if not differences.count:
        return ["body written differently"]
    words = [f"{change.place[:LONGEST_NAMED]} {change.kind}" for change in differences.items[:MOST_NAMED]]
    return words + ([f"and {differences.count - MOST_NAMED} more"] if differences.count > MOST_NAMED else [])
