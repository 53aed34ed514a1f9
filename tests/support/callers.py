"""Calls a real program: many at once, on sockets of their own, with exactly the headers they are told to send."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from support.reply import HttpReply
from support.wire import exchange, request, wire

JSON = ("Content-Type", "application/json")
CONNECTIONS = 25


def called(url: str, bodies: list[bytes], *headers: tuple[str, str], at_once: int = 200) -> list[HttpReply]:
    """One call for each body."""
    parts, given = urlsplit(url), [JSON, *headers]
    with ThreadPoolExecutor(at_once) as threads:
        return list(
            threads.map(lambda body: exchange(parts.port or 0, "POST", parts.path, given, body), bodies)
        )


def flood(url: str, count: int, body: bytes, *headers: tuple[str, str]) -> Counter[int]:
    """Very many of one call on connections that stay: what was heard, by status."""
    parts, together = urlsplit(url), 8
    sent = request("POST", parts.path, [JSON, *headers], body) * together

    def some(number: int) -> Counter[int]:
        heard: Counter[int] = Counter()
        with wire(parts.port or 0) as connection:
            for _ in range(number // together):
                connection.send(sent)
                for _ in range(together):
                    answer = connection.heard()
                    heard[answer.status] += 1
        return heard

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return sum(threads.map(some, [count // CONNECTIONS] * CONNECTIONS), Counter())
