"""TLS settings for a client that speaks to a program on this machine, without TLS."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from support.waiting import PATIENCE

WITHOUT_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""It trusts nobody. A client of httpx2 that is given none reads all certificates that are trusted, which takes several times as
long as the request: ``httpx2.get(…, verify=WITHOUT_TLS)``."""


def post(url: str, **given: Any) -> httpx2.Response:
    return httpx2.post(url, **{"trust_env": False, "verify": WITHOUT_TLS, "timeout": PATIENCE, **given})


@contextmanager
def no_certificates_read() -> Iterator[None]:
    """Fails if any certificates are read."""
    with pytest.MonkeyPatch.context() as patched:
        for reads in ("load_default_certs", "load_verify_locations", "set_default_verify_paths"):
            patched.setattr(ssl.SSLContext, reads, None)
        yield
