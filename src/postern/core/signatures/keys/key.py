"""The base of all keys with which signatures are checked."""

from msgspec import Struct, field

from postern.core.calls.call import Call

MOST_OF_PAIRS = 8
"""The most signatures that are checked with a public key, which takes about fifty times as long as with a secret."""


class SignatureValues(Struct):
    """The signature values of one call, and their items by key."""

    candidates: list[bytes] = field(default_factory=list)
    items: dict[bytes, list[bytes]] = field(default_factory=dict)
    repeated: set[bytes] = field(default_factory=set)


class Key:
    """By itself it stands for a key that is not known here yet: no signature was made with it. ``fetched`` is the
    sender's key set or certificate."""

    can_sign = False
    most = MOST_OF_PAIRS
    noun = "key"
    """The word for the value that was set for this webhook."""
    signature_noun = "signature"

    def values(self, found: list[bytes]) -> SignatureValues | str | None:
        """Returns the parts of a signature that has a form of its own, or why it has not got it. None: the scheme says its parts."""
        return None

    def keys_at(self, call: Call) -> str:
        """Returns the address at which the sender has what this call is checked with, or an empty text if none may be asked."""
        return ""

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        """Returns whether one of the signatures was made with this key, or its other half, over this content."""
        return False

    def trouble(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> str:
        """Returns why they prove nothing, if more can be said than that they do not match."""
        return ""

    def rejected(self, call: Call, signature: bytes, fetched: bytes) -> tuple[str, str] | None:
        """A code and words where a genuine signature is not for this receiver or this time."""
        return None

    def sign(self, content: bytes) -> bytes:
        """The signature that a genuine sender would have made, where ``can_sign``."""
        raise NotImplementedError
