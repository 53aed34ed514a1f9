"""The gateway's addresses, and the keys of tokens that it gives away."""

import hmac
from dataclasses import dataclass, field
from secrets import token_bytes

from postern.core.address import reach_of
from postern.core.deliveries.delivery import EndSlot, ResponseSlot

GO_PUBLIC = (
    "A sender on the internet needs a public one: start a tunnel (cloudflared, ngrok, tailscale funnel, …) "
    "and set POSTERN_BASE_URL to its address."
)


@dataclass
class Site:
    base_url: str
    callback_url: str
    """Workflows send their answers here: the base address, or a loopback address for the embedded engine."""
    response_keys: list[bytes] = field(repr=False)
    """The first key makes response tokens. The others made those of workflows that were started before it was changed."""
    admin_key_digest: bytes | None = field(default=None, repr=False)
    """SHA-256 of POSTERN_ADMIN_KEY, if one is given."""
    browser_keys: list[bytes] = field(default_factory=lambda: [token_bytes(32)], repr=False)
    """The first key signs the cookies of known browsers. The others are older ones."""
    client_header: str = "X-Forwarded-For"
    """The header in which trusted proxies name the client."""

    def response_token(self, key: str) -> str:
        """Made of the delivery's key, so that none is stored, and a start that is tried again has the same one."""
        return _token(self.response_keys[0], key)

    def is_response_token(self, token: str, key: str) -> bool:
        given = token.encode("utf-8", "replace")
        return any(hmac.compare_digest(_token(secret, key).encode(), given) for secret in self.response_keys)

    def response_slot(self, invocation_id: str, key: str, deadline: float) -> ResponseSlot:
        return ResponseSlot(
            f"{self.callback_url}/api/v1/invocations/{invocation_id}/response",
            self.response_token(key),
            deadline,
        )

    def end_slot(self, invocation_id: str, key: str) -> EndSlot:
        """Its token is that of the answer: whoever may say the one may say the other."""
        url = f"{self.callback_url}/api/v1/invocations/{invocation_id}/end"
        return EndSlot(url, self.response_token(key))

    def webhook_url(self, address: str) -> str:
        return f"{self.base_url}/webhook/{address}"


def out_of_reach(base_url: str) -> str:
    """A sentence to show beside a webhook's URL if no sender on the internet can reach it, else an empty text."""
    who = reach_of(base_url)
    return f"Only {who} can reach this address. {GO_PUBLIC}" if who else ""


def _token(response_key: bytes, key: str) -> str:
    return "rt_" + hmac.digest(response_key, key.encode(), "sha256").hex()
