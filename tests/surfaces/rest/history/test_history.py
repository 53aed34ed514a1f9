"""The history over HTTP."""

import shlex
from urllib.parse import urlsplit

from support.client import Client
from support.rest import made


def test_a_recorded_call_is_shown_as_a_curl_command_without_its_secret(api: Client) -> None:
    webhook = made(api)
    api.post(urlsplit(webhook["url"]).path + "?a=1", {"it's": "quoted"}, X_Api_Key="a token of the tests")
    invocation = api.get(f"invocations?webhookId={webhook['id']}").json["items"][0]["id"]
    reply = api.get(f"invocations/{invocation}/code")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "a token of the tests" not in reply.text
    words = shlex.split(reply.text.replace("\\\n", " "))
    assert words[:2] == ["curl", webhook["url"] + "?a=1"]
    assert "x-api-key: YOUR_X_API_KEY" in words
    assert words[-2:] == ["--data-raw", '{"it\'s": "quoted"}']
