"""Callers of a real program: many at once, on sockets of their own, with exactly the headers they are told to
send."""

import asyncio
import json
import urllib.request
from collections import Counter
from typing import Any

from support.program import Program
from support.reply import HttpReply
from support.waiting import PATIENCE

Headers = list[tuple[str, str]]


def made(program: Program, **settings: Any) -> dict[str, Any]:
    """A new webhook."""
    body = {"name": "Orders", "authentication": {"method": "none"}, **settings}
    return dict(asked(program, "POST", "/api/v1/webhooks", body))


def asked(program: Program, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {program.admin_key}", "Content-Type": "application/json"}
    request = urllib.request.Request(program.url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return json.loads(response.read() or b"null")


def called(
    url: str, bodies: list[Any], headers: Headers | None = None, at_once: int = 200
) -> list[HttpReply]:
    """One call for each body, as many at once as told."""

    async def all_of_them() -> list[HttpReply]:
        places = asyncio.Semaphore(at_once)

        async def one(body: Any) -> HttpReply:
            async with places:
                return await _call(
                    url, body if isinstance(body, bytes) else json.dumps(body).encode(), headers or []
                )

        return await asyncio.gather(*map(one, bodies))

    return asyncio.run(all_of_them())


def flood(url: str, count: int, body: bytes, headers: Headers, connections: int = 64) -> Counter[int]:
    """Very many of one call, several at a time on connections that stay: what was heard, by status."""
    host, _, path = url.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    sent = [
        ("Host", host),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        *headers,
    ]
    head = "".join(f"{header}: {value}\r\n" for header, value in sent)
    request = f"POST /{path} HTTP/1.1\r\n{head}\r\n".encode() + body
    statuses: Counter[int] = Counter()
    left = count

    async def one() -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection(name, int(port))
        while left > 0:
            batch = min(left, 8)
            left -= batch
            writer.write(request * batch)
            for _ in range(batch):
                answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
                await reader.readexactly(
                    int(answer.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                )
                statuses[int(answer[9:12])] += 1
        writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(connections)))

    asyncio.run(all_of_them())
    return statuses


async def _call(url: str, body: bytes, headers: Headers) -> HttpReply:
    host, _, path = url.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    sent = [
        ("Host", host),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        *headers,
    ]
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        head = "".join(f"{header}: {value}\r\n" for header, value in sent)
        writer.write(f"POST /{path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()
    top, _, rest = answer.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    heard = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return HttpReply(int(first.split(" ", 2)[1]), heard, rest)
