"""The answer of another server that the gateway has asked."""

import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from postern.core.calls.call import Headers, header_values


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of any status. Header names are in lower case."""

    status: int
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        values = header_values(self.headers, name.lower().encode())
        return values[0].decode("latin-1") if values else None

    def retry_after(self, now: float) -> float | None:
        """The seconds to wait that the answer asks for; it gives a number or a date."""
        text = (self.header("retry-after") or "").strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):  # Shopify writes 2.0
            return float(text)
        try:
            return max(parsedate_to_datetime(text).timestamp() - now, 0.0)
        except (ValueError, TypeError, OverflowError):
            return None
