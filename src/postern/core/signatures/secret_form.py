"""What the secrets of one sender look like: whoever pastes another thing hears so before the first call is rejected.

A form is advice and refuses nothing: a sender may change what its secrets look like, and nobody is kept waiting for a
newer preset. The patterns are written so that Python and JavaScript read them alike: the console asks them in the
browser, and a secret that is being typed goes nowhere.
"""

import re

from msgspec import Struct


class MistakenSecret(Struct, frozen=True):
    """What is pasted in the place of a secret: what it matches, and what to say of it."""

    pattern: str
    sentence: str


class SecretForm(Struct, frozen=True):
    """What each secret of a sender looks like. Advice: nothing is refused by it."""

    pattern: str
    """What the whole of a secret matches; empty where its form says nothing, as of one that the user has chosen."""
    like: str
    unlike: str
    others: tuple[MistakenSecret, ...] = ()

    def problem(self, secret: str) -> str | None:
        """Why this does not look like one, or None. The sentence never holds any of it."""
        for other in self.others:
            if re.fullmatch(other.pattern, secret):
                return other.sentence
        if self.pattern and not re.fullmatch(self.pattern, secret):
            return self.unlike
        return None
