"""A verdict: what was decided about a call, and why."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from postern.core.calls.call import Call
from postern.core.problems import PROBLEMS
from postern.core.signatures.credential import Matched
from postern.core.signatures.handshake import HandshakeAnswer

Outcome = Literal["accepted", "filtered", "rejected", "handshake", "preflight"]
Step = tuple[str, bool, str]
"""The name of a question, whether the call passed it, and the details."""

NEVER_READ = (
    "method_not_allowed",
    "webhook_disabled",
    "ip_not_allowed",
    "payload_too_large",
    "origin_not_allowed",
)
"""Codes of calls that are rejected without the body. Often it is read all the same, so that the call can be admitted."""

UNPROVEN = frozenset(
    {
        *NEVER_READ,
        "signing_keys_unavailable",
        *(problem.code for problem in PROBLEMS.values() if problem.status == 401),
    }
)
"""Codes of calls that are rejected before the caller has proven anything. Any stranger can cause them."""


class Verdict(msgspec.Struct):
    """``detail`` and ``trace`` are for the webhook's owner; the caller hears the code."""

    outcome: Outcome
    code: str
    detail: str = ""
    trace: list[Step] = msgspec.field(default_factory=list)
    matched: Matched = ""
    payload: bytes = b""
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    duplicate_key: bytes | None = None
    turn: str | None = None
    """``TurnRules.of``; None for a webhook without turns."""
    handshake: HandshakeAnswer | None = None
    retry_after: int | None = None
    elements: "Sequence[tuple[Call, Verdict]]" = ()
    """The elements of an array, if each is a call of its own. They are recorded instead of the array."""
    wanted: str = ""
    """The address of the keys with which the call may be judged once more (``Unproven.wanted``)."""


def rejected(
    trace: list[Step], step: str, code: str, detail: str, *, wait: float | None = None, matched: Matched = ""
) -> Verdict:
    """``wait``: seconds after which the caller may try again."""
    trace.append((step, False, detail))
    retry_after = None if wait is None else int(wait) + 1
    return Verdict("rejected", code, detail, trace, matched, retry_after=retry_after)
