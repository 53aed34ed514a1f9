"""Known browsers: a signed cookie says that one name has signed in with this browser before. It gives no access.

Failed sign-ins of strangers under that name do not slow a known browser.
"""

import hmac
from hashlib import sha256
from secrets import token_urlsafe

from postern.usecases.runtime.gateway import Gateway

KNOWN_FOR = 180 * 24 * 3600.0

_LONGEST = 200


def browser_token(gateway: Gateway, name: str) -> str:
    """The cookie of a browser in which this name has just signed in."""
    body = f"kb_{token_urlsafe(12)}.{int(gateway.clock())}"
    return f"{body}.{_signed(gateway.site.browser_keys[0], name, body)}"


def known_browser(gateway: Gateway, name: str, token: str) -> str | None:
    """The browser's id, or None if it is not known for this name."""
    body, _, signature = token[:_LONGEST].rpartition(".")
    identifier, _, since = body.rpartition(".")
    if not since.isascii() or not since.isdigit() or gateway.clock() - int(since) > KNOWN_FOR:
        return None
    given = signature.encode("utf-8", "replace")
    known = any(
        hmac.compare_digest(_signed(key, name, body).encode(), given) for key in gateway.site.browser_keys
    )
    return identifier if known else None


def _signed(key: bytes, name: str, body: str) -> str:
    return hmac.new(key, f"{body}\0{name}".encode("utf-8", "surrogatepass"), sha256).hexdigest()
