"""The signature tester: paste a request, or pick a recorded one, and see what the check says and why."""

import shlex
from typing import Any

from starlette.responses import Response

from postern.core.documents import Document
from postern.core.problems import Refused
from postern.surfaces.console import senders
from postern.surfaces.console.views import picker
from postern.surfaces.console.visit import Form, Visit, problem_of
from postern.usecases.history import history
from postern.usecases.history.filters import filter_of, moment
from postern.usecases.shapes import validated
from postern.usecases.signatures import signatures
from postern.usecases.signatures.signatures import SignatureTest
from postern.usecases.signatures.views import SignatureResult
from postern.usecases.webhooks import picking


async def ask(visit: Visit) -> Response:
    return await _page(visit, Form(visit.query), None)


async def check(visit: Visit) -> Response:
    form = await visit.form()
    try:
        if form.get("with") == "webhook":
            form["webhook"] = await visit.ask(picking.meant, form.text("webhook"))
        result = await visit.ask(signatures.test, validated(SignatureTest, _request(form)))
    except Refused as refused:
        return await _page(visit, form, None, refused.problem.status, problem=problem_of(refused))
    return await _page(visit, form, result)


async def _page(
    visit: Visit, form: Form, result: SignatureResult | None, status: int = 200, **context: Any
) -> Response:
    picked = await picker.picked(visit, form.text("webhook"), signed=True)
    recent = await visit.ask(history.listing, filter_of(webhook_id=picked.id), 30)
    shown = list({item.webhook_id for item in recent.items})
    return visit.page(
        "tester.html",
        status,
        form=form,
        found=result,
        picked=picked,
        names=await visit.ask(picking.names, shown, deleted=True),
        recent=[item for item in recent.items if item.body_size],
        senders=[(one.name, one.title) for one in (*senders.offered(), senders.about("generic"))],
        **context,
    )


def _request(form: Form) -> Document:
    request: Document = {}
    if form.get("with") == "webhook":
        request["webhookId"] = form.text("webhook")
    else:
        request["authentication"] = {
            "method": "hmac",
            "provider": form.text("provider"),
            "secret": form.get("secret", ""),
        }
        provider = form.text("provider")
        if form.text("fetched") and provider in senders.names():
            request["fetched"] = {senders.about(provider).scheme["keysFrom"]: form.get("fetched")}
    if form.get("what") == "recorded":
        request["invocationId"] = form.text("invocation")
    else:
        request["call"] = read_request(form.get("request", ""), form.text("url"))
    if form.text("at"):
        request["at"] = moment(form.text("at"), "at")
    return request


def read_request(text: str, url: str = "") -> Document:
    """A pasted request as the API takes it: a curl command, or the raw lines with an empty one before the body."""
    text = text.replace("\r\n", "\n")
    if text.lstrip().startswith("curl "):
        return _read_curl(text)
    head, _, body = text.lstrip("\n").partition("\n\n")
    lines = head.split("\n")
    first = lines[0].split(" ")
    method = "POST"
    if len(first) > 1 and first[0].isalpha() and first[0].isupper():
        method, target, lines = first[0], first[1], lines[1:]
        url = url or target
    headers = [
        (name.strip(), value.strip())
        for name, colon, value in (line.partition(":") for line in lines)
        if colon
    ]
    host = next((value for name, value in headers if name.lower() == "host"), "")
    if url.startswith("/") and host:
        url = f"https://{host}{url}"
    return {"method": method, "url": url, "headers": headers, "body": body}


def _read_curl(text: str) -> Document:
    try:
        words = shlex.split(text.replace("\\\n", " "))[1:]
    except ValueError:
        raise Refused("invalid_request", "The curl command has a quote that does not end.") from None
    made: Document = {"method": "POST", "url": "", "headers": [], "body": ""}
    rest = iter(words)
    for word in rest:
        if word in ("-H", "--header"):
            name, _, value = next(rest, "").partition(":")
            made["headers"].append((name.strip(), value.strip()))
        elif word in ("-d", "--data", "--data-raw", "--data-binary"):
            made["body"] = next(rest, "")
        elif word in ("-X", "--request"):
            made["method"] = next(rest, "POST")
        elif word == "--url" or not word.startswith("-"):
            made["url"] = next(rest, "") if word == "--url" else word
    return made
