"""The answer to a request for which the database was away."""

from contextvars import ContextVar

from postern.core.problems import Refused

may_have_changed: ContextVar[bool] = ContextVar("may_have_changed", default=False)
"""Whether a commit of this task went well, or nobody knows its end. Who answers a request sets it back."""


def store_away() -> Refused:
    told = (
        "Look whether it was done before you try again." if may_have_changed.get() else "Nothing was changed."
    )
    return Refused("temporarily_unavailable", f"The database cannot be used now. {told}")
