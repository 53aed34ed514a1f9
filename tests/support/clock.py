"""The clock of a gateway in this process, moved by the test."""

from postern.usecases.runtime.gateway import Gateway


class HeldClock:
    """Stands still in the place of a gateway's own, at a whole second where no other time is given, until the test sets it."""

    def __init__(self, gateway: Gateway, now: float | None = None) -> None:
        self.now = float(int(gateway.clock())) if now is None else now
        gateway.clock = lambda: self.now


def later(gateway: Gateway, seconds: float) -> None:
    """Stops its clock, so many seconds later than it is."""
    HeldClock(gateway, gateway.clock() + seconds)
