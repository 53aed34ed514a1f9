"""How long each part of a call's life took, from what was recorded. What nobody noted is not drawn: an ordinary answer
follows its verdict as soon as the call is on disk, and has no time of its own."""

from msgspec import Struct

from postern.usecases.history.views.calls import Delivery, Invocation


class Span(Struct, frozen=True):
    title: str
    start: float
    end: float | None
    """None: a moment, or what has no end yet."""
    tone: str = ""
    still: bool = False

    @property
    def lasted(self) -> float | None:
        """Milliseconds."""
        return None if self.end is None else max(0.0, (self.end - self.start) * 1000)


class Drawn(Struct, frozen=True):
    """A span in its place, in thousandths of the whole."""

    span: Span
    after: float
    """Milliseconds from the beginning."""
    x: float
    width: float


class Life(Struct, frozen=True):
    title: str
    began: float
    lasted: float
    """Milliseconds."""
    parts: list[Drawn]


NARROWEST = 4.0


def lives(item: Invocation, now: float) -> list[Life]:
    """That of the call with its first start, and that of each replay, the newest first: each has a scale of its own,
    for a replay may come days later."""
    first = item.deliveries[0] if item.deliveries and item.deliveries[0].emission == 1 else None
    found = [_life("The call" if item.edited is None else "The start", _call(item) + _start(first, now))]
    for delivery in item.deliveries:
        if delivery is not first:
            found.append(_life(f"Replay {delivery.emission - 1}", _start(delivery, now)))
    return [one for one in reversed(found) if one is not None]


def _call(item: Invocation) -> list[Span]:
    if item.judged_at is None:
        return []
    spans = [Span("Received and judged", item.received_at, max(item.judged_at, item.received_at))]
    if item.answered_at is not None:
        title = (
            "Until the caller had left" if item.caller_gone else f"Until the caller heard {item.http_status}"
        )
        bad = item.caller_gone or (item.http_status or 0) >= 500
        spans.append(Span(title, item.received_at, item.answered_at, "bad" if bad else "good"))
    return spans


def _start(delivery: Delivery | None, now: float) -> list[Span]:
    if delivery is None:
        return []
    spans, begun = [], float(delivery.created_at)
    if delivery.released_at is not None or delivery.state == "held":
        spans.append(
            Span("On hold", begun, delivery.released_at or now, "wait", delivery.released_at is None)
        )
        begun = float(delivery.released_at or now)
    tries = [one for one in delivery.log if one.outcome != "started"]
    spans += [Span("Could not be started", one.at, None, "bad") for one in tries]
    if delivery.started_at is not None:
        spans.append(Span("Waiting to be started", begun, delivery.started_at, "wait"))
    elif delivery.state == "queued":
        spans.append(Span("Waiting to be started", begun, now, "wait", still=True))
    if delivery.started_at is not None and delivery.runs:
        if delivery.ended_at is not None:
            failed = delivery.state == "failed"
            spans.append(
                Span(
                    "Running, until it failed" if failed else "Running",
                    delivery.started_at,
                    delivery.ended_at,
                    "bad" if failed else "good",
                )
            )
        elif delivery.run_state == "running":
            spans.append(Span("Running", delivery.started_at, now, "good", still=True))
        else:
            spans.append(Span("Started; its end is not known", delivery.started_at, None))
    if delivery.responded_at is not None:
        spans.append(Span("The workflow answered", delivery.responded_at, None, "good"))
    return spans


def _life(title: str, spans: list[Span]) -> Life | None:
    if not spans:
        return None
    spans = sorted(
        spans, key=lambda one: one.start
    )  # a clock that was set back in between must not turn it round
    began = spans[0].start
    ended = max(max(one.end or one.start, one.start) for one in spans)
    whole = max(ended - began, 0.000_001)
    parts = []
    for one in spans:
        width = max(((one.end or one.start) - one.start) / whole * 1000, NARROWEST)
        x = min((one.start - began) / whole * 1000, 1000 - NARROWEST)
        parts.append(Drawn(one, (one.start - began) * 1000, round(x, 1), round(min(width, 1000 - x), 1)))
    return Life(title, began, (ended - began) * 1000, parts)
