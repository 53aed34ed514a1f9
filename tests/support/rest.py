"""Requests to the API, and how tests read what it refuses."""

from typing import Any

from support.client import Client, HttpReply

WEBHOOK = {"name": "Orders", "authentication": {"method": "token", "token": "a token of the tests"}}


def made(api: Client, **settings: Any) -> dict[str, Any]:
    webhook: dict[str, Any] = api.post("webhooks", {**WEBHOOK, **settings}).json
    return webhook


def problem(reply: HttpReply) -> tuple[int, str]:
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    assert reply.json["type"] == f"/problems/{reply.json['code']}"
    return reply.status, reply.json["code"]


def fields(reply: HttpReply) -> set[str]:
    assert problem(reply) == (422, "invalid_request")
    return {error["field"] for error in reply.json["errors"]}
