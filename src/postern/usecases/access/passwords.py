"""Passwords: hashed with Argon2id, in a few threads of their own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from postern.core.problems import FieldError, Refused

T = TypeVar("T")

SHORTEST, LONGEST = 8, 256
MOST_WAITING = 32

_hasher = PasswordHasher(time_cost=2, memory_cost=32 * 1024, parallelism=1)
# Two at a time: each takes 32 MiB, and time on a core that callers need more.
_threads = ThreadPoolExecutor(2, thread_name_prefix="passwords")
_waiting = 0

# Compared with where there is no such user, so that a wrong name takes as long as a wrong password.
NOBODY = "$argon2id$v=19$m=32768,t=2,p=1$FJ0c+NlTyhR5NGgpCboqHA$yGch6U4OAn9n9Rx3oIctb8eo10nT6jD/Mc8Qf2Xf97M"


def check_password(password: str, field: str = "password") -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise Refused(
            "invalid_request", errors=[FieldError(field, f"has {SHORTEST} to {LONGEST} characters")]
        )


async def hashed(password: str) -> str:
    """The password as it is stored. In a thread: it takes as long as it is meant to."""
    return await _in_turn(_hasher.hash, password.encode("utf-8", "surrogatepass"))


async def matches(password_hash: str, password: str) -> bool:
    """Whether this is the password."""

    def verify(secret: bytes) -> bool:
        try:
            return _hasher.verify(password_hash, secret)
        except (VerificationError, InvalidHashError):
            return False

    return await _in_turn(verify, password.encode("utf-8", "surrogatepass"))


def outdated(password_hash: str) -> bool:
    return _hasher.check_needs_rehash(password_hash)


async def _in_turn(work: Callable[[bytes], T], secret: bytes) -> T:
    global _waiting
    if _waiting >= MOST_WAITING:
        raise Refused(
            "temporarily_unavailable", "Too many are signing in at once; try again in a few seconds."
        )
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, work, secret)
    finally:
        _waiting -= 1
