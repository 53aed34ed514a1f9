"""What callers hear, to the header: programs are written against it."""

from typing import Any

import msgspec
import pytest

from postern.core import answer
from postern.core.answer import LARGEST_RESPONSE, InvalidResponse, WorkflowResponse, workflow_response
from postern.core.problems import PROBLEMS


@pytest.mark.parametrize("status", ["accepted", "duplicate", "completed"])
def test_a_call_that_was_taken_hears_its_status_and_its_id(status: Any) -> None:
    given = answer.stored(status, "inv_1")
    assert given.status == 200
    assert msgspec.json.decode(given.body) == {"status": status, "invocationId": "inv_1"}
    assert given.headers == [(b"content-type", b"application/json"), (b"x-invocation-id", b"inv_1")]


def test_a_problem_says_what_it_is_and_nothing_that_was_not_asked() -> None:
    given = answer.problem("credential_missing")
    assert (given.status, given.headers) == (401, [(b"content-type", b"application/problem+json")])
    document = msgspec.json.decode(given.body)
    assert document.keys() == {"type", "title", "status", "detail", "code"}
    assert (document["type"], document["status"]) == ("/problems/credential_missing", 401)


def test_a_problem_says_when_to_come_again_who_it_was_and_how_to_prove_it() -> None:
    given = answer.problem("rate_limited", "inv_1", challenge=b"Bearer", retry_after=7, allow=b"POST")
    # No challenge: the caller's proof is not what was wrong.
    assert given.headers[1:] == [(b"x-invocation-id", b"inv_1"), (b"retry-after", b"7"), (b"allow", b"POST")]
    assert msgspec.json.decode(given.body)["invocationId"] == "inv_1"
    given = answer.problem("credential_mismatch", challenge=b"Bearer")
    assert (b"www-authenticate", b"Bearer") in given.headers
    at_once = answer.problem("rate_limited", retry_after=0)
    assert (b"retry-after", b"0") in at_once.headers
    usual = str(PROBLEMS["temporarily_unavailable"].retry_after).encode()
    assert (b"retry-after", usual) in answer.problem("temporarily_unavailable").headers


def wrong_in(status: object, headers: object, body: object) -> str:
    """The field that is refused."""
    with pytest.raises(InvalidResponse) as wrong:
        workflow_response(status, headers, body)
    return wrong.value.field


def test_a_workflow_may_answer_with_any_final_status_and_with_nothing_else() -> None:
    for status in (200, 599, 404):
        assert workflow_response(status, {}, "") == WorkflowResponse(status, (), b"")
    for none in (199, 600, True, "200", None, 200.0):
        assert wrong_in(none, {}, "") == "status"


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        ("text", b"text", "text/plain; charset=utf-8"),
        ("half a character: \ud83d", b"half a character: ?", "text/plain; charset=utf-8"),
        ({"a": [1]}, b'{"a":[1]}', "application/json"),
        (None, b"null", "application/json"),
    ],
)
def test_what_a_workflow_answers_has_its_type(body: object, sent: bytes, kind: str) -> None:
    assert workflow_response(200, {}, body) == WorkflowResponse(200, (("content-type", kind),), sent)


def test_a_type_that_the_workflow_names_is_the_only_one() -> None:
    made = workflow_response(200, {"Content-Type": "text/csv", "X-Rows": "2"}, "a,b")
    assert made.headers == (("content-type", "text/csv"), ("x-rows", "2"))


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_has_no_type(status: int) -> None:
    for body in ("text", {"a": 1}, None):
        assert workflow_response(status, {}, body) == WorkflowResponse(status, (), b"")


def test_a_body_may_have_a_mebibyte() -> None:
    assert len(workflow_response(200, {}, "x" * LARGEST_RESPONSE).body) == 1024 * 1024
    assert wrong_in(200, {}, "x" * (LARGEST_RESPONSE + 1)) == "body"


def test_a_headers_value_may_have_4096_characters() -> None:
    assert workflow_response(200, {"X-Long": "x" * 4096}, "").headers[-1][1] == "x" * 4096
    for value in ("x" * 4097, "two\nlines", "é"):
        assert wrong_in(200, {"X-Long": value}, "") == "headers"


@pytest.mark.parametrize("headers", [None, [], {"X-A": 1}, {1: "a"}, {"X A": "a"}, {"": "a"}])
def test_headers_are_texts_with_names(headers: object) -> None:
    with pytest.raises(InvalidResponse, match="object of texts"):
        workflow_response(200, headers, "")


def test_what_a_workflow_answers_stays_in_a_sandbox_that_loads_nothing_of_ours() -> None:
    given = answer.responded(WorkflowResponse(201, (("content-type", "text/html"),), b"<p>"), "inv_1")
    headers = dict(given.headers)
    policy = dict(part.partition(b" ")[::2] for part in headers[b"content-security-policy"].split(b"; "))
    assert policy == {
        b"sandbox": b"",
        b"default-src": b"'none'",
        b"style-src": b"'unsafe-inline'",
        b"img-src": b"data: https:",
    }
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert (given.status, headers[b"x-invocation-id"], given.body) == (201, b"inv_1", b"<p>")


def test_what_a_server_adds_by_itself_is_no_part_of_a_workflows_answer() -> None:
    headers = [
        ("X-Powered-By", "PHP"),
        ("Set-Cookie", "a=b"),
        ("ETag", '"1"'),
        ("X-Own", "1"),
        ("X-own", "2"),
    ]
    given = answer.response_of_http(201, headers, b"\xff\0")
    own = ("content-type", "application/octet-stream")
    assert given == WorkflowResponse(201, (own, ("etag", '"1"'), ("x-own", "2")), b"\xff\0")
    typed = answer.response_of_http(200, [("Content-Type", "text/csv")], b"a,b")
    assert typed == WorkflowResponse(200, (("content-type", "text/csv"),), b"a,b")
    assert answer.response_of_http(200, [], b"") == WorkflowResponse(200, (), b"")
    for status in (204, 304):
        assert answer.response_of_http(status, [], b"left out") == WorkflowResponse(status, (), b"")
    assert len(answer.response_of_http(200, [], b"x" * LARGEST_RESPONSE).body) == LARGEST_RESPONSE
    with pytest.raises(InvalidResponse, match="1 MiB"):
        answer.response_of_http(200, [], b"x" * (LARGEST_RESPONSE + 1))
