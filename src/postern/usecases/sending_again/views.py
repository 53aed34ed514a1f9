"""The answer of a sender that was asked to send again."""

from postern.usecases.answers import Time, View


class UndeliveredEvent(View):
    event: str
    what: str
    at: Time | None


class SentAgain(View):
    """``listed``: whether the sender lists for programs what it did not deliver. ``asked``: the events that it was asked to send
    again, or would be. ``byItself``: how many it will still send by itself. ``left``: how many were not asked for yet;
    ``retryAfterSeconds``: when the sender takes the next request. ``byHand``: what to do if programs cannot ask it, else null.
    ``note``: what to know before asking."""

    sender: str
    listed: bool
    asked: list[UndeliveredEvent]
    by_itself: int
    left: int
    retry_after_seconds: float | None
    by_hand: str | None
    note: str | None
