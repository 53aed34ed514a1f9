"""Load without ``wrk``: ``python -m bench.client JSON``. One request at a time on each of many
connections."""

import asyncio
import json
import sys
import time
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import uvloop


async def call_for(asked: dict[str, Any]) -> dict[str, float]:
    url = urlsplit(asked["url"])
    body = asked["body"].encode()
    target = url.path + (f"?{url.query}" if url.query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {url.netloc}",
        *(f"{name}: {value}" for name, value in asked["headers"].items()),
    ]
    request = "\r\n".join([*lines, f"Content-Length: {len(body)}", asked["delivery"]]).encode()
    numbers = count(1)
    times: list[float] = []
    failed = 0
    began = time.perf_counter()
    until = began + asked["seconds"]

    async def one() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while (sent := time.perf_counter()) < until:
            writer.write(b"%b-%d\r\n\r\n%b" % (request, next(numbers), body))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            times.append(time.perf_counter() - sent)
            failed += not head.startswith(b"HTTP/1.1 2")
        writer.close()

    await asyncio.gather(*(one() for _ in range(asked["connections"])))
    times.sort()
    return {
        "calls": len(times),
        "seconds": time.perf_counter() - began,
        "failed": failed,
        "p50": times[len(times) // 2] * 1000,
        "p99": times[len(times) * 99 // 100] * 1000,
    }


if __name__ == "__main__":
    print("RESULT " + json.dumps(uvloop.run(call_for(json.loads(sys.argv[1])))))
