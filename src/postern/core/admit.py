"""May this call come in, and what does it mean? The order of the questions, readable on one screen.

Cheap before costly, and nothing a stranger does may cost the real sender: the per-webhook rate is asked only
of those who have proven themselves, and duplicate keys are claimed last of all.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec.structs import replace

from postern.core.answer import CallerAnswer
from postern.core.calls.call import Call
from postern.core.calls.content import (
    MOST_ELEMENTS,
    Payload,
    UnreadableContent,
    elements_of,
    headers_of_part,
    read_object,
)
from postern.core.calls.cors import is_preflight
from postern.core.calls.paths import walk_members
from postern.core.limits import Limits
from postern.core.problems import PROBLEMS
from postern.core.signatures.credential import Matched, OwnRequest, Unproven, VerifiedCall
from postern.core.signatures.handshake import HandshakeAnswer
from postern.core.webhooks.webhook import DuplicateKey, Webhook

Outcome = Literal["accepted", "rejected", "handshake", "preflight"]
Step = tuple[str, bool, str]

NEVER_READ = (
    "method_not_allowed",
    "webhook_disabled",
    "ip_not_allowed",
    "payload_too_large",
    "origin_not_allowed",
)
"""Rejected before there was a body to keep: such a call cannot be judged again."""


UNPROVEN = frozenset(
    {*NEVER_READ, "signing_keys_unavailable", *(one.code for one in PROBLEMS.values() if one.status == 401)}
)
"""Rejected before the caller had proven anything: a stranger's, as far as is known."""


class Verdict(msgspec.Struct):
    """What was decided about a call and why. ``detail`` and ``trace`` are for the owner; the caller hears the
    code."""

    outcome: Outcome
    code: str
    detail: str = ""
    trace: list[Step] = msgspec.field(default_factory=list)
    matched: Matched = ""
    payload: bytes = b""
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    duplicate_key: bytes | None = None
    handshake: HandshakeAnswer | None = None
    retry_after: int | None = None
    elements: "Sequence[tuple[Call, Verdict]]" = ()
    """Where each element of an array is a call of its own: these are recorded in the place of the call that brought
    them."""
    wanted: str = ""
    """The address of keys with which the call may be judged once more (``Unproven.wanted``)."""


def admit_head(webhook: Webhook, call: Call) -> Verdict | None:
    """The questions that need no body. None means: read it and ask ``admit``."""
    if webhook.cors and is_preflight(call):
        if webhook.cors.allows(call.first_header(b"origin") or b""):
            return Verdict("preflight", "accepted")
        return _reject(
            [], "CORS preflight", "origin_not_allowed", "the page's origin is not on this webhook's list"
        )
    if call.method not in webhook.allowed_methods:
        return _reject([], "method", "method_not_allowed", f"{call.method[:20]} instead of POST")
    if not webhook.enabled:
        return _reject([], "enabled", "webhook_disabled", "the webhook is disabled")
    origin = call.first_header(b"origin") if webhook.cors else None
    if webhook.cors and origin is not None and not webhook.cors.allows(origin):
        # A browser asks nobody before it sends a form or a text: here is where such a call is stopped.
        return _reject([], "CORS", "origin_not_allowed", "the page's origin is not on this webhook's list")
    if webhook.allowlist is not None and not webhook.allowlist.allows(call.address):
        return _reject([], "IP allowlist", "ip_not_allowed", f"{call.address[:60]} is not on the allowlist")
    return None


def too_large(webhook: Webhook) -> Verdict:
    """The verdict of whoever reads the body, as soon as one byte too many has come."""
    return _reject(
        [], "body size", "payload_too_large", f"the body is larger than {webhook.payload_limit} bytes"
    )


def admit(webhook: Webhook, call: Call, limits: Limits) -> Verdict:
    """The questions about a call whose body has been read whole."""
    trace: list[Step] = []
    if webhook.allowlist is not None:
        trace.append(("IP allowlist", True, f"{call.address} is allowed"))

    if webhook.handshake is not None:
        reply = webhook.handshake.before_authentication(call)
        if reply is not None:
            return _handshake(webhook, limits, trace, reply)

    verified = webhook.credential.check(call)
    if isinstance(verified, Unproven):
        return replace(
            _reject(trace, "authentication", verified.code, verified.detail), wanted=verified.wanted
        )
    trace.append(("authentication", True, verified.step))

    if webhook.handshake is not None:
        reply = webhook.handshake.after_authentication(verified)
        if reply is not None:
            return _handshake(webhook, limits, trace, reply, verified.matched)
        if call.method != "POST":
            return _reject(
                trace,
                "method",
                "method_not_allowed",
                f"{call.method[:20]} is answered for the set-up handshake only",
            )

    wait = limits.call(webhook.id, webhook.calls_per_second, webhook.burst)
    if wait:
        detail = f"more than {webhook.calls_per_second:g} calls a second"
        return _reject(trace, "rate limit", "rate_limited", detail, wait, verified.matched)
    return _read_verified(webhook, verified, trace)


def admit_fetched(webhook: Webhook, call: Call, step: Step) -> Verdict:
    """The questions that are left where nobody called and a schedule has fetched: content, mapping, duplicate key."""
    return _read_verified(webhook, OwnRequest(step[2]).check(call), [step])


def _read_verified(
    webhook: Webhook, verified: VerifiedCall, trace: list[Step], is_element: bool = False
) -> Verdict:
    """What a genuine call says: its object, the mapped fields, its key."""
    payload = read_object(verified.call, webhook.takes)
    if isinstance(payload, UnreadableContent):
        return _reject(trace, "content", payload.code, payload.detail, matched=verified.matched)
    if payload.is_array and webhook.takes.arrays == "each":
        return _divide(webhook, verified, trace, elements_of(payload.members["items"]))
    trace.append(
        ("content", True, f"{payload.sent_as}a JSON object of {len(payload.text)} bytes{payload.remark}")
    )

    fields, found = webhook.mapping.apply(payload)
    trace.append(("field mapping", True, found))

    key = None
    if webhook.duplicates is not None:
        key, source = _duplicate_key(webhook.duplicates, verified, payload, is_element)
        trace.append(("duplicate key", True, source))
    return Verdict("accepted", "accepted", "", trace, verified.matched, payload.text, fields, key)


def _divide(webhook: Webhook, verified: VerifiedCall, trace: list[Step], found: list[bytes]) -> Verdict:
    """Each element is read like a call that brought nothing else."""
    if not found:
        detail = "the array is empty, so nothing is started"
        return Verdict(
            "handshake",
            "handshake",
            detail,
            [*trace, ("content", True, detail)],
            verified.matched,
            handshake=HandshakeAnswer(CallerAnswer(200), detail),
        )
    if len(found) > MOST_ELEMENTS:
        detail = f"an array of {len(found)} elements; one call may bring {MOST_ELEMENTS}"
        return _reject(trace, "content", "payload_too_large", detail, matched=verified.matched)
    headers = headers_of_part(verified.call.headers)
    elements = []
    for number, body in enumerate(found, 1):
        one = replace(verified, call=verified.call.but(body=body, headers=headers), delivery_id=None)
        step = ("array", True, f"element {number} of {len(found)}")
        elements.append((one.call, _read_verified(webhook, one, [*trace, step], is_element=True)))
    if all(one.outcome == "rejected" for _, one in elements):
        code, detail = elements[0][1].code, f"no element is an object: {elements[0][1].detail}"
        return _reject(trace, "content", code, detail, matched=verified.matched)
    return Verdict("accepted", "accepted", "", trace, verified.matched, elements=elements)


def _duplicate_key(
    setting: DuplicateKey, verified: VerifiedCall, payload: Payload, is_element: bool
) -> tuple[bytes, str]:
    call = verified.call
    if setting.header is not None:
        own = call.first_header(setting.header)
        if own:
            name = setting.header.decode("latin-1")
            if is_element:  # all of one array have the same
                own += b"\0" + call.body
                return sha256(b"header\0" + own).digest(), f"the header {name} and the element"
            return sha256(b"header\0" + own).digest(), f"the header {name}"
    if setting.path is not None:
        value = walk_members(payload.members, setting.path)
        if value is not None:
            return sha256(b"path\0" + value).digest(), "the configured path in the body"
    if setting.header is None and setting.path is None and verified.delivery_id:
        if verified.delivery_id_signed:
            return sha256(b"id\0" + verified.delivery_id).digest(), "the sender's delivery id"
        # Anybody who saw one genuine call could send it again under another unsigned id, or take the id of a
        # later one.
        return sha256(
            b"id\0" + verified.delivery_id + b"\0" + sha256(call.body).digest()
        ).digest(), "the sender's delivery id and the body"
    return sha256(b"body\0" + call.body).digest(), "the body"


def _handshake(
    webhook: Webhook,
    limits: Limits,
    trace: list[Step],
    reply: HandshakeAnswer | Unproven,
    matched: Matched = "",
) -> Verdict:
    if isinstance(reply, Unproven):
        return _reject(trace, "set-up handshake", reply.code, reply.detail)
    wait = limits.handshake(webhook.id)
    if wait:
        detail = "more set-up handshakes than any sender makes"
        return _reject(trace, "set-up handshake", "rate_limited", detail, wait)
    trace.append(("set-up handshake", True, reply.detail))
    return Verdict("handshake", "handshake", reply.detail, trace, matched, handshake=reply)


def _reject(
    trace: list[Step], step: str, code: str, detail: str, wait: float | None = None, matched: Matched = ""
) -> Verdict:
    trace.append((step, False, detail))
    return Verdict(
        "rejected", code, detail, trace, matched, retry_after=None if wait is None else int(wait) + 1
    )
