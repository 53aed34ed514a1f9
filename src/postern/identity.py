"""Ids and generated secrets: their forms, in one place."""

import base64
import re
import secrets
import string

import uuid_utils

from postern.core.signatures.encoding import STAND_IN

_BASE62 = string.ascii_letters + string.digits


def new_id(kind: str) -> str:
    """``inv_0193…``: time-ordered (UUIDv7), so that inserts append and a page of history is one index
    range."""
    return f"{kind}_{uuid_utils.uuid7().hex}"


def is_id(kind: str, text: str) -> bool:
    """Whether it has the form of an id of that kind."""
    return re.fullmatch(rf"{kind}_[0-9a-f]{{32}}", text) is not None


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


def new_password() -> str:
    """Four groups that can be read aloud; 95 bits."""
    return "-".join(
        "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(5)) for _ in range(4)
    )
