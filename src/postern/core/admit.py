"""May this call come in, and what does it mean? The order of the questions, readable on one screen.

Cheap questions come before costly ones, and nothing a stranger does may cost the real sender: the webhook's rate
limit counts only callers who have proven themselves, and duplicate keys are claimed last.
"""

from msgspec.structs import replace

from postern.core.answer import CallerAnswer
from postern.core.calls.call import Call
from postern.core.calls.content import (
    MOST_ELEMENTS,
    UnreadableContent,
    elements_of,
    headers_of_part,
    read_object,
)
from postern.core.calls.cors import is_preflight
from postern.core.limits import Limits
from postern.core.signatures.credential import Matched, Proven, Unproven, VerifiedCall
from postern.core.signatures.handshake import HandshakeAnswer
from postern.core.verdict import Step, Verdict, rejected
from postern.core.webhooks.webhook import Webhook


def admit_head(webhook: Webhook, call: Call) -> Verdict | None:
    """Asks what needs no body. Returns None if the call passes: then its body is read and ``admit`` is asked."""
    origin = call.first_header(b"origin") if webhook.cors else None
    foreign = webhook.cors is not None and origin is not None and not webhook.cors.allows(origin)
    if webhook.cors and is_preflight(call):
        return _foreign("CORS preflight") if foreign else Verdict("preflight", "accepted")
    # A browser's OPTIONS asks for something else than a sender of CloudEvents does.
    asks_nothing = call.method == "OPTIONS" and call.first_header(b"webhook-request-origin") is None
    if asks_nothing or call.method not in webhook.allowed_methods:
        return rejected([], "method", "method_not_allowed", f"{call.method[:20]} instead of POST")
    if not webhook.enabled:
        return rejected([], "enabled", "webhook_disabled", "the webhook is disabled")
    if foreign:  # browsers send forms and texts without a preflight: this stops them
        return _foreign("CORS")
    if webhook.allowlist is not None and not webhook.allowlist.allows(call.address):
        return rejected([], "IP allowlist", "ip_not_allowed", f"{call.address[:60]} is not on the allowlist")
    return None


def too_large(webhook: Webhook) -> Verdict:
    """The reader of the body asks for this as soon as one byte too many has come."""
    detail = f"the body is larger than {webhook.payload_limit} bytes"
    return rejected([], "body size", "payload_too_large", detail)


def admit(webhook: Webhook, call: Call, limits: Limits) -> Verdict:
    """Asks everything else, once the whole body has been read."""
    trace: list[Step] = []
    if webhook.allowlist is not None:
        trace.append(("IP allowlist", True, f"{call.address} is allowed"))

    if webhook.handshake is not None and (reply := webhook.handshake.before_authentication(call)):
        return _handshake(webhook, limits, trace, reply)

    verified = webhook.credential.check(call)
    if isinstance(verified, Unproven):
        unproven = rejected(trace, "authentication", verified.code, verified.detail)
        return replace(unproven, wanted=verified.wanted)
    trace.append(("authentication", True, verified.step))

    if webhook.handshake is not None:
        if reply := webhook.handshake.after_authentication(verified):
            return _handshake(webhook, limits, trace, reply, verified.matched)
        if call.method != "POST":
            detail = f"{call.method[:20]} is answered for the set-up handshake only"
            return rejected(trace, "method", "method_not_allowed", detail)

    wait = limits.call(webhook.id, webhook.calls_per_second, webhook.burst)
    if wait:
        detail = f"more than {webhook.calls_per_second:g} calls a second"
        return rejected(trace, "rate limit", "rate_limited", detail, wait=wait, matched=verified.matched)
    return _understood(webhook, verified, trace)


def admit_fetched(webhook: Webhook, call: Call, step: Step) -> Verdict:
    """Asks about content, conditions, mapping and duplicate key: the gateway has fetched this, so nobody has to prove anything."""
    return _understood(webhook, Proven(step[2]).check(call), [step])


def _understood(
    webhook: Webhook, verified: VerifiedCall, trace: list[Step], is_element: bool = False
) -> Verdict:
    payload = read_object(verified.call, webhook.takes)
    if isinstance(payload, UnreadableContent):
        return rejected(trace, "content", payload.code, payload.detail, matched=verified.matched)
    if payload.is_array and webhook.takes.arrays == "each":
        return _divided(webhook, verified, trace, elements_of(payload.members["items"]))
    content = f"{payload.sent_as}a JSON object of {len(payload.text)} bytes{payload.remark}"
    trace.append(("content", True, content))

    if webhook.conditions is not None:
        if problem := webhook.conditions.problem(verified.call, payload):
            trace.append(("conditions", False, problem))
            return Verdict("filtered", "filtered", problem, trace, verified.matched)
        trace.append(("conditions", True, webhook.conditions.all_hold))

    fields, summary = webhook.mapping.apply(payload)
    trace.append(("field mapping", True, summary))

    turn = None
    if webhook.turns is not None:
        turn, whose = webhook.turns.of(payload, fields)
        trace.append(("turn", True, whose))

    key = None
    if webhook.duplicates is not None:
        key, source = webhook.duplicates.key_of(verified, payload, is_element)
        trace.append(("duplicate key", True, source))
    return Verdict("accepted", "accepted", "", trace, verified.matched, payload.text, fields, key, turn)


def _divided(webhook: Webhook, verified: VerifiedCall, trace: list[Step], bodies: list[bytes]) -> Verdict:
    """Reads each element of an array like a call that brought nothing else."""
    if not bodies:
        detail = "the array is empty, so nothing is started"
        trace.append(("content", True, detail))
        empty = HandshakeAnswer(CallerAnswer(200), detail)
        return Verdict("handshake", "handshake", detail, trace, verified.matched, handshake=empty)
    if len(bodies) > MOST_ELEMENTS:
        detail = f"an array of {len(bodies)} elements; one call may bring {MOST_ELEMENTS}"
        return rejected(trace, "content", "payload_too_large", detail, matched=verified.matched)
    headers = headers_of_part(verified.call.headers)
    elements = []
    for number, body in enumerate(bodies, 1):
        element = replace(verified, call=verified.call.but(body=body, headers=headers), delivery_id=None)
        step = ("array", True, f"element {number} of {len(bodies)}")
        elements.append((element.call, _understood(webhook, element, [*trace, step], is_element=True)))
    if all(verdict.outcome == "rejected" for _, verdict in elements):
        code, detail = elements[0][1].code, f"no element is an object: {elements[0][1].detail}"
        return rejected(trace, "content", code, detail, matched=verified.matched)
    if all(verdict.outcome != "accepted" for _, verdict in elements):
        detail = f"none of {len(bodies)} elements fulfils the conditions"
        return Verdict("filtered", "filtered", detail, trace, verified.matched, elements=elements)
    return Verdict("accepted", "accepted", "", trace, verified.matched, elements=elements)


def _handshake(
    webhook: Webhook,
    limits: Limits,
    trace: list[Step],
    reply: HandshakeAnswer | Unproven,
    matched: Matched = "",
) -> Verdict:
    if isinstance(reply, Unproven):
        return rejected(trace, "set-up handshake", reply.code, reply.detail)
    wait = limits.handshake(webhook.id)
    if wait:
        detail = "more set-up handshakes than any sender makes"
        return rejected(trace, "set-up handshake", "rate_limited", detail, wait=wait)
    trace.append(("set-up handshake", True, reply.detail))
    return Verdict("handshake", "handshake", reply.detail, trace, matched, handshake=reply)


def _foreign(step: str) -> Verdict:
    return rejected([], step, "origin_not_allowed", "the page's origin is not on this webhook's list")
