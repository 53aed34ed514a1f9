"""Webhooks over HTTP."""

from support.client import Client
from support.rest import WEBHOOK, made, problem


def test_a_creation_says_where_the_thing_is_and_never_a_secret(api: Client) -> None:
    reply = api.post("webhooks", WEBHOOK)
    assert reply.status == 201
    assert reply.headers["location"] == f"/api/v1/webhooks/{reply.json['id']}"
    assert reply.headers["etag"] == '"1"'
    assert api.get(reply.headers["location"]).json == reply.json
    assert "a token of the tests" not in reply.text
    assert reply.json["authentication"]["tokenSet"] is True


def test_a_lost_update_is_refused(api: Client) -> None:
    path = f"webhooks/{made(api)['id']}"
    assert api.patch(path, {"name": "First"}, If_Match='"1"').headers["etag"] == '"2"'
    assert problem(api.patch(path, {"name": "Second"}, If_Match='"1"')) == (412, "version_conflict")
    assert problem(api.patch(path, {"name": "Second"}, If_Match='W/"2"')) == (412, "version_conflict")
    assert problem(api.delete(path, If_Match='"1"')) == (412, "version_conflict")
    assert api.patch(path, {"name": "Second"}, If_Match='"7", "2"').json["name"] == "Second"
    assert api.patch(path, {"name": "Third"}, If_Match="*").json["version"] == 4
    assert api.delete(path, If_Match='"4"').status == 204
    assert api.get(path).status == 404
