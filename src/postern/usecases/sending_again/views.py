"""The answer of a sender that was asked to send again."""

from postern.usecases.answers import Time, View


class UndeliveredEvent(View):
    event: str
    what: str
    at: Time | None


class SentAgain(View):
    """``listed``: whether the sender lists for programs what it did not deliver. ``asked``: the events that it was asked to send
    again, or would be. ``underWay``: how many it was asked for before, without a new attempt in its list. ``byItself``: how many it
    will still send by itself. ``refused``: how many it does not send again. ``left``: how many were not asked for yet, or without an
    answer. ``trouble``: why. ``retryAfterSeconds``: when to look again; null if nothing is left to do. ``byHand``: what to do if
    programs cannot ask it, else null. ``note``: what to know before asking."""

    sender: str
    listed: bool
    asked: list[UndeliveredEvent]
    under_way: int = 0
    by_itself: int = 0
    refused: int = 0
    left: int = 0
    trouble: str | None = None
    retry_after_seconds: float | None = None
    by_hand: str | None = None
    note: str | None = None
