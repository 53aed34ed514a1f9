"""What is answered to who asks a sender to send again."""

from postern.usecases.answers import Time, View


class UndeliveredEvent(View):
    event: str
    what: str
    at: Time | None


class SentAgain(View):
    """``listed``: whether the sender lets a program see what it did not deliver. ``asked``: what the sender was asked to send again, or would be. ``by_itself``: how many it is still trying.
    ``left``: those not asked for yet; ``retry_after_seconds``: when the sender takes the next request. ``by_hand``: what to do
    where the sender has no such button; null where it has one. ``note``: what to know before asking."""

    sender: str
    listed: bool
    asked: list[UndeliveredEvent]
    by_itself: int
    left: int
    retry_after_seconds: float | None
    by_hand: str | None
    note: str | None
