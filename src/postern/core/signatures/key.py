"""The base of all keys with which signatures are checked."""


class Key:
    """By itself it stands for a key that is not known here yet: no signature was made with it."""

    can_sign = False

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        """Returns whether one of the signatures was made with this key, or its other half, over this content. ``fetched`` is the
        sender's key set or certificate."""
        return False

    def trouble(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> str:
        """Returns why they prove nothing, if more can be said than that they do not match."""
        return ""

    def sign(self, content: bytes) -> bytes:
        """The signature that a genuine sender would have made, where ``can_sign``."""
        raise NotImplementedError
