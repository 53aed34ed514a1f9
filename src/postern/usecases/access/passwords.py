"""Passwords, hashed with Argon2id in a thread. The queue begins with those that are likely to be right."""

from collections.abc import Callable
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from postern.core.address import networks_of
from postern.core.problems import invalid
from postern.usecases.runtime.one_at_a_time import OneAtATime

T = TypeVar("T")

SHORTEST, LONGEST = 8, 256

_hasher = PasswordHasher(time_cost=2, memory_cost=32 * 1024, parallelism=1)

# Compared with if there is no such user, so that a wrong name takes as long as a wrong password.
NOBODY = "$argon2id$v=19$m=32768,t=2,p=1$FJ0c+NlTyhR5NGgpCboqHA$yGch6U4OAn9n9Rx3oIctb8eo10nT6jD/Mc8Qf2Xf97M"


# One at a time: each takes 32 MiB, and time on a core that callers need.
line = OneAtATime("passwords", 100, "Too many are signing in at once; try again in a few seconds.")


def check_password(password: str, field: str = "password") -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise invalid(field, f"has {SHORTEST} to {LONGEST} characters")


async def hashed(password: str) -> str:
    """The password's hash. Made in a thread, because it takes long on purpose."""
    return await _in_turn(_hasher.hash, password, -1.0)


async def matches(password_hash: str, password: str, rank: float = -1.0, address: str = "") -> bool:
    """Whether this is the password. ``rank``: the lowest comes first; below zero for somebody who has proven something already.
    Networks share the places in the queue."""

    def verify(secret: bytes) -> bool:
        try:
            return _hasher.verify(password_hash, secret)
        except (VerificationError, InvalidHashError):
            return False

    return await _in_turn(verify, password, rank, networks_of(address))


def outdated(password_hash: str) -> bool:
    return _hasher.check_needs_rehash(password_hash)


async def _in_turn(
    work: Callable[[bytes], T], password: str, rank: float, networks: tuple[str, ...] = ()
) -> T:
    return await line.run(lambda: work(password.encode("utf-8", "surrogatepass")), rank, networks)
