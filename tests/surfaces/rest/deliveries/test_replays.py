"""Replaying many over HTTP."""

from urllib.parse import urlsplit

from support.client import Client
from support.rest import fields, made, problem
from support.waiting import wait_until


def test_many_are_replayed_over_http(api: Client) -> None:
    webhook = made(api, authentication={"method": "none"})
    for number in range(3):
        assert api.post(urlsplit(webhook["url"]).path, {"n": number}).status == 200
    plan = api.post("replays", {"filter": {"webhookId": webhook["id"]}})
    assert (plan.status, plan.json["state"], plan.json["count"]) == (201, "planned", 3)
    path = plan.headers["location"]
    assert fields(api.post(f"{path}/run?fields=others")) == {"fields"}
    assert api.post(f"{path}/run?fields=recorded").json["fields"] == "recorded"
    done = wait_until(
        lambda: (reply := api.get(path).json)["state"] == "done" and reply, what="the replay to be done"
    )
    assert (done["done"], done["skipped"]) == (3, 0)
    assert problem(api.post(f"{path}/cancel")) == (409, "conflict")
    assert fields(api.post("replays", {"filter": {"status": "gone"}})) == {"filter.status"}
    every = api.post("replays", {"filter": {"webhookId": webhook["id"]}, "includeCompleted": True}).json
    assert (every["count"], every["completed"], every["includeCompleted"]) == (3, 0, True)
