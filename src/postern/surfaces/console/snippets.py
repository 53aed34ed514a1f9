"""Ready calls to paste: curl, Python, JavaScript, and the bare header lines."""

import json
from shlex import quote
from urllib.parse import quote as percent

from postern.core.webhooks.making import carried
from postern.usecases.history.code import Repeated, curl, python
from postern.usecases.webhooks.views import Webhook, WithToken

EXAMPLE_BODY = {"orderNumber": "1001"}


def target(webhook: Webhook, token: str) -> tuple[str, dict[str, str]]:
    """The URL and the headers with which a caller proves itself."""
    how, url = webhook.authentication, webhook.url
    headers = {"Content-Type": "application/json"}
    if isinstance(how, WithToken):
        header, parameter = carried(how, token)
        if header is not None:
            headers |= [header]
        if parameter is not None:
            url += f"?{percent(parameter[0])}={percent(parameter[1], safe='')}"
    return url, headers


def snippets(webhook: Webhook, token: str) -> list[tuple[str, str, str]]:
    """The key, the title and the text to paste, for each way to call."""
    how = webhook.authentication
    url, headers = target(webhook, token)
    text = json.dumps(EXAMPLE_BODY)
    call = Repeated("POST", url, [(name, value.encode()) for name, value in headers.items()], text.encode())
    by_curl = curl(call)
    if isinstance(how, WithToken) and how.placement == "basic":
        # A placeholder in base64 could not be replaced.
        named = Repeated(
            "POST", url, [header for header in call.headers if header[0] != "Authorization"], call.body
        )
        by_curl = curl(named, f"-u {quote(f'{how.username}:{token}')}")
    lines = [f"POST {url}", *(f"{name}: {value}" for name, value in headers.items())]
    return [
        ("curl", "curl", by_curl),
        ("python", "Python", python(call)),
        ("javascript", "JavaScript", fetch(url, headers, text)),
        ("headers", "Header lines", "\n".join(lines)),
    ]


def fetch(url: str, headers: dict[str, str], body: str) -> str:
    listed = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in headers.items())
    return (
        f"const answer = await fetch({json.dumps(url)}, {{\n"
        f'  method: "POST",\n  headers: {{\n{listed}\n  }},\n  body: JSON.stringify({body})\n}});\nconsole.log(await answer.json());'
    )
