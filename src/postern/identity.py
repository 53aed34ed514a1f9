"""Ids and generated secrets: their forms, in one place."""

import base64
import re
import secrets
import string
import time
from collections.abc import Callable

import uuid_utils

from postern.core.signatures.encoding import STAND_IN

_BASE62 = string.ascii_letters + string.digits


clock: Callable[[], float] = time.time
"""The one clock of this process. Times are in ids too: what is compared with an id has to follow the clock that made it."""
_OWN_TIME = 1_000
"""Milliseconds by which the library's time may be ahead, so that ids of one moment are in their order."""


def new_id(kind: str) -> str:
    """``inv_0193…``: time-ordered (UUIDv7), so that inserts append and a page of history is one index
    range."""
    made, now = uuid_utils.uuid7().hex, int(clock() * 1000)
    # The library's time never goes back: after a clock that was wrong it would stay wrong for as long.
    if not -_OWN_TIME < int(made[:12], 16) - now < _OWN_TIME:
        made = f"{now:012x}{made[12:]}"
    return f"{kind}_{made}"


def is_id(kind: str, text: str) -> bool:
    """Whether it has the form of an id of that kind."""
    return re.fullmatch(rf"{kind}_[0-9a-f]{{32}}", text) is not None


def packed(one_id: str) -> bytes:
    """An id without its kind, in 16 bytes."""
    return bytes.fromhex(one_id.rpartition("_")[2])


def unpacked(kind: str, in_bytes: bytes) -> str:
    return f"{kind}_{in_bytes.hex()}"


def first_id_at(kind: str, seconds: float) -> str:
    """The smallest id of that moment: a time filter is an id range."""
    return f"{kind}_{max(int(seconds * 1000), 0):012x}{'0' * 20}"


def time_of(one_id: str) -> float:
    """Returns when an id was made."""
    digits = one_id.rpartition("_")[2][:12]
    return int(digits, 16) / 1000


def new_short_code() -> str:
    """130 bits: nobody guesses a webhook's URL."""
    return "".join(secrets.choice(_BASE62) for _ in range(22))


def new_token() -> str:
    return "whk_" + secrets.token_urlsafe(32)


def new_signing_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def new_stand_in() -> str:
    """Makes the text that stands in place of a sender's secret which is not known here yet."""
    return STAND_IN + base64.b64encode(secrets.token_bytes(24)).decode()


def new_api_key() -> str:
    return "pk_" + secrets.token_urlsafe(32)


def new_session_secret() -> str:
    return "ps_" + secrets.token_urlsafe(32)


def new_invitation() -> str:
    return secrets.token_urlsafe(32)


def new_password() -> str:
    """Four groups that can be read aloud; 95 bits."""
    return "-".join(
        "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(5)) for _ in range(4)
    )
