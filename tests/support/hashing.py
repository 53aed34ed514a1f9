"""Passwords hashed in no time: hundreds of tests sign somebody in, and one of them is about how well a password is kept."""

from argon2 import PasswordHasher

from postern.usecases.access import accounts, passwords

REAL = passwords._hasher
"""The program's own hasher, which tests that are marked ``executable`` meet."""
REAL_NOBODY = passwords.NOBODY


def hash_in_no_time() -> None:
    """Makes hashes cheap in this process: in the tests themselves, and in the programs that are forked for them."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    passwords._hasher = hasher
    passwords.NOBODY = accounts.NOBODY = hasher.hash("nobody's")
