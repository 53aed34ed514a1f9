"""The program on this machine to which calls are sent, as they were sent to the gateway."""

import time
from base64 import b64decode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from postern.core.names import OF_THE_CONNECTION
from postern.core.signatures.redact import MASK
from postern.surfaces.cli.files import read_secret
from postern.surfaces.cli.gateway.trust import reason, trusted
from postern.surfaces.cli.run import end, err, plain
from postern.usecases.history.views.requests import RecordedRequest

if TYPE_CHECKING:
    import asyncio

    import httpx2

ASK_AGAIN = 1.0
LARGEST_ANSWER = 1024 * 1024
"""Bytes. No more is read, because an answer may have no end."""


class TargetAnswer(NamedTuple):
    """Holds an ``error`` if there was no answer."""

    status: int | None
    error: str
    milliseconds: float
    headers: list[tuple[str, str]] = []
    body: bytes = b""
    """Only the beginning of a body that is larger than an answer may be."""


def checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        end("--to: write the URL of a program, like http://localhost:3000/path")
    return url


def token_for_header(source: str) -> str:
    token = read_secret(source)
    try:
        token.encode("latin-1")
    except UnicodeEncodeError:
        end("--token: no header can carry this text")
    return token


class LocalTarget:
    """Sends calls to the program. Each call has a connection of its own, so that what a program sends after its
    answer is not taken for the answer to the next call."""

    def __init__(self, url: str, masked: str | None, timeout: float) -> None:
        self._url = url
        self._masked = masked
        self._trusted = trusted(url)
        self._timeout = timeout
        self._under_way: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = set()
        self._is_closed = False

    def send(self, call: RecordedRequest, retry: bool = False, is_replay: bool = False) -> TargetAnswer:
        if call.body_base64 is None or call.body_truncated:
            return TargetAnswer(None, "not sent: its body is not kept whole", 0.0)
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

    def _once(self, call: RecordedRequest, is_replay: bool) -> TargetAnswer:
        import asyncio

        import httpx2

        url = self._url
        if query := self._open(call.query):
            url += ("&" if "?" in url else "?") + query
        headers = [
            (name.encode("latin-1"), self._open(value).encode("latin-1"))
            for name, value in call.headers
            if name.lower() not in OF_THE_CONNECTION and (value != MASK or self._masked is not None)
        ]
        headers.append((b"X-Postern-Invocation", call.invocation_id.encode()))
        if is_replay:
            headers.append((b"X-Postern-Replay", b"true"))
        began = time.perf_counter()
        try:
            request = httpx2.Request(
                call.method, url, headers=headers, content=b64decode(call.body_base64 or "")
            )
            status, heard, body = asyncio.run(self._answer(request))
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            ValueError,
            TimeoutError,
            asyncio.CancelledError,
        ) as error:
            return TargetAnswer(None, plain(_in_words(error)), (time.perf_counter() - began) * 1000)
        return TargetAnswer(status, "", (time.perf_counter() - began) * 1000, heard, body)

    async def _answer(self, request: "httpx2.Request") -> tuple[int, list[tuple[str, str]], bytes]:
        import asyncio

        import httpx2

        task = asyncio.current_task()
        assert task is not None
        mine = asyncio.get_running_loop(), task
        self._under_way.add(mine)
        try:
            if self._is_closed:
                raise asyncio.CancelledError
            # One limit for the whole answer: a program that sends a byte now and then never exceeds one for each read.
            async with asyncio.timeout(self._timeout):
                async with httpx2.AsyncClient(trust_env=False, verify=self._trusted, timeout=None) as http:
                    response = await http.send(request, stream=True)
                    body = bytearray()
                    async for part in response.aiter_bytes():
                        body += part
                        if len(body) > LARGEST_ANSWER:
                            break
                    await response.aclose()
        finally:
            self._under_way.discard(mine)
        heard = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw]
        return response.status_code, heard, bytes(body)

    def _open(self, text: str) -> str:
        """Puts the token in the place of the masked credential; a query's parameter cannot be left out."""
        return text if self._masked is None else text.replace(MASK, self._masked)

    def close(self) -> None:
        """Ends the requests that are under way, without an answer."""
        self._is_closed = True
        for loop, task in list(self._under_way):
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(task.cancel)


def _in_words(error: BaseException) -> str:
    import asyncio

    import httpx2

    if isinstance(error, asyncio.CancelledError):
        return "it had not answered when the command ended"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, httpx2.RemoteProtocolError):
        return f"it hung up, or does not speak HTTP: {error}"
    if isinstance(error, httpx2.DecodingError):
        return f"its answer cannot be decompressed: {error}"
    return reason(error)
