"""Everybody is tried on every operation. The list is the API's own description: a new operation cannot be
forgotten."""

import pytest

from postern.core.access.accounts import LEVELS
from postern.surfaces.rest import table
from support.client import Client, admin_of, with_level
from support.program import Program
from support.rest import problem

METHODS = ("get", "post", "put", "patch", "delete")


def operations(document: dict) -> list[tuple[str, str, str]]:  # type: ignore[type-arg]
    return [
        (method.upper(), path, operation["x-access-level"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]


@pytest.fixture(scope="module")
def every(served: Program) -> list[tuple[str, str, str]]:
    document = Client(served.port).get("openapi.json").json
    found = operations(document)
    assert len(found) >= 25
    return found


@pytest.fixture(scope="module")
def actors(served: Program) -> dict[str, Client]:
    return {
        "reader": with_level(served, "read"),
        "editor": with_level(served, "write"),
        "admin": admin_of(served),
    }


def tried(client: Client, method: str, path: str) -> int:
    """On ids that are not there and with an empty body: whoever is let in hears 404 or 422, and changes
    nothing."""
    there = path.replace("{", "none_").replace("}", "")
    return client.ask(method, there, {} if method in ("POST", "PATCH") else None).status


def test_a_stranger_is_let_in_nowhere_but_at_these_operations(
    every: list[tuple[str, str, str]], served: Program
) -> None:
    stranger = Client(served.port)
    for method, path, level in every:
        if level != "none":
            assert tried(stranger, method, path) == 401, (method, path)
            assert tried(Client(served.port, "pk_guessed"), method, path) == 401, (method, path)
            guessed = Client(served.port, Cookie="postern_session=ps_guessed")
            assert tried(guessed, method, path) in (401, 403), (method, path)
    of_a_workflow = "invocations/inv_0/response"
    for headers, body in (({}, {"status": 99}), ({"Authorization": "Bearer rt_0"}, {"body": 1})):
        assert problem(stranger.post(of_a_workflow, body, **headers)) == (401, "not_authenticated")
    open_doors = {(method, path) for method, path, level in every if level == "none"}
    assert open_doors == {
        ("POST", "/api/v1/sessions"),
        ("POST", "/api/v1/invocations/{invocation_id}/response"),
        ("POST", "/api/v1/invocations/{invocation_id}/end"),
    }


@pytest.mark.parametrize(("actor", "own"), [("reader", "read"), ("editor", "write"), ("admin", "admin")])
def test_a_level_opens_its_own_operations_and_no_more(
    every: list[tuple[str, str, str]], actors: dict[str, Client], actor: str, own: str
) -> None:
    for method, path, level in every:
        if level == "none" or path == "/api/v1/live":
            continue
        status = tried(actors[actor], method, path)
        if LEVELS.index(own) < LEVELS.index(level):  # type: ignore[arg-type]
            assert status == 403, (method, path)
        elif path not in PERSONS_ONLY:
            assert status not in (401, 403, 405, 500), (method, path, status)


# Asked with a key, these say that only somebody who is signed in has such a thing.
PERSONS_ONLY = {"/api/v1/sessions", "/api/v1/sessions/{session_id}", "/api/v1/me/password"}


def test_whatever_changes_something_needs_more_than_reading() -> None:
    """The exceptions concern nobody but the one who asks, or keep nothing. Whoever reads may listen; to end somebody
    else's listener takes more (tests/usecases/listeners)."""
    own = {
        ("DELETE", "/api/v1/sessions/{session_id}"),
        ("POST", "/api/v1/me/password"),
        ("POST", "/api/v1/signature-tests"),
        ("POST", "/api/v1/webhooks/{webhook_id}/try-conditions"),
        ("POST", "/api/v1/listeners"),
        ("POST", "/api/v1/listeners/{listener_id}/calls"),
        ("POST", "/api/v1/listeners/{listener_id}/calls/{handed_id}"),
        ("DELETE", "/api/v1/listeners/{listener_id}"),
    }
    rows = [(one.method, one.path, one.level) for one in table.operations()]
    assert {(method, path) for method, path, level in rows if method != "GET" and level == "read"} <= own
