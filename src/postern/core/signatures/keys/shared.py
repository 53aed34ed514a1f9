"""A secret that both sides share."""

import hmac

from postern.core.signatures.algorithms import Digest
from postern.core.signatures.keys.key import Key

MOST_CANDIDATES = 128
"""DocuSign sends one header for each of up to 100 keys; nobody honest sends more."""


class SharedKey(Key):
    can_sign = True
    most = MOST_CANDIDATES
    noun = "secret"

    def __init__(self, key: bytes, digest: Digest) -> None:
        # Keyed once and copied for each call: that costs less than a new HMAC, or the library's `digest`.
        self._keyed = hmac.new(key, digestmod=digest)

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        keyed, matched = self._keyed.copy(), False
        keyed.update(content)
        made = keyed.digest()
        # No early way out: every candidate is compared, so that the time taken tells nothing.
        for signature in signatures:
            matched |= hmac.compare_digest(signature, made)
        return matched

    def sign(self, content: bytes) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(content)
        return keyed.digest()
