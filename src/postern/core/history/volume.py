"""How many calls came in, with what outcome, and how long answering took: counts per bucket of time, and what
they tell."""

from dataclasses import dataclass, field

OUTCOMES = ("accepted", "duplicate", "handshake", "rejected")
LATENCY_BOUNDS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 1000, 5000)


@dataclass(slots=True)
class Volume:
    """The calls of one bucket of time. What the latency counts leave of ``calls`` was slower than every
    bound."""

    calls: int = 0
    by_code: dict[str, int] = field(default_factory=dict)
    within: list[int] = field(default_factory=lambda: [0] * len(LATENCY_BOUNDS_MS))
    """How many were answered within each bound and not within the one before it."""

    def add(self, code: str, calls: int, within: list[int]) -> None:
        self.calls += calls
        self.by_code[code] = self.by_code.get(code, 0) + calls
        self.within = [mine + more for mine, more in zip(self.within, within, strict=True)]

    def outcomes(self) -> dict[str, int]:
        return outcomes(self.by_code)

    def percentile(self, share: float) -> float | None:
        """Milliseconds within which that share of the calls was answered: exact to its bucket, evenly spread
        inside it."""
        if not self.calls:
            return None
        wanted = share * self.calls
        seen = 0
        lower = 0.0
        for bound, calls in zip(LATENCY_BOUNDS_MS, self.within, strict=True):
            if calls and seen + calls >= wanted:
                return round(lower + (bound - lower) * (wanted - seen) / calls, 2)
            seen += calls
            lower = bound
        return float(LATENCY_BOUNDS_MS[-1])


def outcomes(by_code: dict[str, int]) -> dict[str, int]:
    """The codes in the four groups that a chart can show."""
    groups = dict.fromkeys(OUTCOMES, 0)
    for code, calls in by_code.items():
        groups[code if code in groups else "rejected"] += calls
    return groups
