"""The engine over HTTP."""

from support.client import Client
from support.rest import problem


def test_an_engine_that_cannot_tell_says_so(api: Client) -> None:
    assert problem(api.get("runs")) == (409, "conflict")
