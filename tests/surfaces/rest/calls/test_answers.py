"""Answers of workflows over HTTP."""

from support.client import Client
from support.program import Program
from support.rest import problem


def test_a_stranger_cannot_answer_for_a_workflow(served: Program) -> None:
    stranger = Client(served.port)
    assert problem(stranger.post("invocations/inv_0/response", {"body": 1}, Authorization="Bearer rt_0")) == (
        401,
        "not_authenticated",
    )
    assert problem(stranger.post("invocations/inv_0/response", {"status": 99})) == (401, "not_authenticated")
