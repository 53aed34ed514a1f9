"""What engines outside this process are handed, and what goes for all of them."""

import asyncio
from datetime import UTC, datetime
from typing import Literal

import msgspec

from postern.core.address import NOBODY, Allowlist
from postern.core.deliveries.delivery import ResponseSlot, Trigger
from postern.core.documents import Document

NEAR = Allowlist.parse(
    ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"]
)
"""Where an engine that the operator named may be besides the public internet: this machine and private
networks.

Safe because the name comes from the operator's environment and never from a user, and because redirects are
not followed: no other host is ever reached. Metadata services and link-local addresses stay shut.
"""


def read_ranges(text: str) -> Allowlist:
    """Where an engine may be, as it is configured: nothing for ``NEAR``, ``none`` for the public internet
    alone, or ranges."""
    entries = [part.strip() for part in text.split(",") if part.strip()]
    return NEAR if not entries else NOBODY if entries == ["none"] else Allowlist.parse(entries)


def document(trigger: Trigger) -> Document:
    """The trigger's variables, the whole payload, and where to answer, or null when nobody waits."""
    return {
        **trigger.variables,
        "payload": msgspec.Raw(trigger.payload or b"null"),
        "response": slot_document(trigger.response),
    }


def slot_document(slot: ResponseSlot | None) -> dict[str, str] | None:
    return None if slot is None else {"url": slot.url, "token": slot.token, "deadline": deadline_text(slot)}


def deadline_text(slot: ResponseSlot) -> str:
    return (
        datetime.fromtimestamp(slot.deadline, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


async def never_known() -> Literal["completed", "failed"]:
    """For engines that do not tell when a run has ended: the caller's own deadline ends the wait."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable: the future above is nobody's to resolve")
