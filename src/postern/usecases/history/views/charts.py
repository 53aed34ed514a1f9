"""How many calls, of which outcome and how fast."""

from postern.usecases.answers import Time, View


class Outcomes(View):
    accepted: int
    duplicate: int
    handshake: int
    rejected: int


class Latency(View):
    p50: float | None
    p95: float | None
    p99: float | None


class Point(View):
    at: Time
    calls: int
    outcomes: Outcomes
    failed_runs: int
    latency_ms: Latency


class Total(View):
    """``answers``: by the HTTP status that callers heard. ``runs``: deliveries by how their runs ended, where the
    engine tells; ``run_ms``: how long they took. ``latency_ms``: how long callers waited."""

    calls: int
    codes: dict[str, int]
    outcomes: Outcomes
    latency_ms: Latency
    answers: dict[str, int]
    runs: dict[str, int]
    run_ms: Latency


class Chart(View):
    range: str
    since: Time
    until: Time
    step_minutes: int
    points: list[Point]
    total: Total
