"""The program on this machine, and sending it a call as it was sent to the gateway."""

import time
from base64 import b64decode
from typing import NamedTuple
from urllib.parse import urlsplit

from postern.core.calls.redact import MASK
from postern.surfaces.cli.gateway.trust import trusted
from postern.surfaces.cli.run import USAGE, end, err, plain
from postern.usecases.history.views import RecordedRequest

ASK_AGAIN = 1.0

# What belongs to the connection that the call came over, or is made anew for the one to the local program.
_OWN = {
    *(
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ),
    *("content-length", "expect"),
}


class LocalAnswer(NamedTuple):
    """``error`` where there was none."""

    status: int | None
    error: str
    milliseconds: float
    headers: list[tuple[str, str]] = []
    body: bytes = b""


def checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        end("--to: write the URL of a program, like http://localhost:3000/path", USAGE)
    return url


class Target:
    """The program on this machine."""

    def __init__(self, url: str, masked: str | None, timeout: float) -> None:
        import httpx2

        self._url = url
        self._masked = masked
        self._http = httpx2.Client(trust_env=False, verify=trusted(url), timeout=timeout)

    def send(self, call: RecordedRequest, retry: bool = False, is_replay: bool = False) -> LocalAnswer:
        if call.body_base64 is None or call.body_truncated:
            return LocalAnswer(None, "not sent: its body is not kept whole", 0.0)
        reported = False
        while True:
            answer = self._once(call, is_replay)
            if answer.status is not None or not retry:
                return answer
            if not reported:
                err.print(
                    f"{call.invocation_id}: {answer.error}. It is sent again until there is an answer.",
                    "yellow",
                )
                reported = True
            time.sleep(ASK_AGAIN)

    def _once(self, call: RecordedRequest, is_replay: bool) -> LocalAnswer:
        import httpx2

        url = self._url
        if query := self._open(call.query):
            url += ("&" if "?" in url else "?") + query
        headers = [
            (name.encode("latin-1"), self._open(value).encode("latin-1"))
            for name, value in call.headers
            if name.lower() not in _OWN and (value != MASK or self._masked is not None)
        ]
        headers.append((b"X-Postern-Invocation", call.invocation_id.encode()))
        if is_replay:
            headers.append((b"X-Postern-Replay", b"true"))
        began = time.perf_counter()
        try:
            response = self._http.send(
                httpx2.Request(call.method, url, headers=headers, content=b64decode(call.body_base64 or ""))
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            why = "no answer in time" if isinstance(error, httpx2.TimeoutException) else str(error)
            return LocalAnswer(None, plain(why), (time.perf_counter() - began) * 1000)
        took = (time.perf_counter() - began) * 1000
        heard = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw]
        return LocalAnswer(response.status_code, "", took, heard, response.content)

    def _open(self, text: str) -> str:
        """With the token where the credential was masked; in a query a parameter cannot be left out."""
        return text if self._masked is None else text.replace(MASK, self._masked)

    def close(self) -> None:
        self._http.close()
