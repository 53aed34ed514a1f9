"""The form of one sender's secrets: whoever pastes another thing is told so before the first call is rejected.

A form is advice and refuses nothing: a sender may change what its secrets look like, and nobody is kept waiting for a
newer preset. The patterns are written so that Python and JavaScript read them alike: the console asks them in the
browser, and a secret that is being typed goes nowhere.
"""

import re

from msgspec import Struct


class MistakenSecret(Struct, frozen=True):
    """Something that people paste instead of the secret: its pattern, and the sentence about it."""

    pattern: str
    sentence: str


class SecretForm(Struct, frozen=True):
    """The form of a sender's secrets. It is advice: nothing is refused by it."""

    pattern: str
    """The pattern of a whole secret. It is empty if secrets have no known form, as those that users choose."""
    like: str
    unlike: str
    others: tuple[MistakenSecret, ...] = ()

    def problem(self, secret: str) -> str | None:
        """Returns a sentence if this does not look like a secret of the sender. The sentence never holds any of it."""
        for other in self.others:
            if re.fullmatch(other.pattern, secret):
                return other.sentence
        if self.pattern and not re.fullmatch(self.pattern, secret):
            return self.unlike
        return None
