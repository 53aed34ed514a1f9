"""What the secrets of one sender look like: whoever pastes another thing hears so before the first call is rejected.

A form is advice and refuses nothing: a sender may change what its secrets look like, and nobody is kept waiting for a
newer preset.
"""

import re

from msgspec import Struct


class SecretForm(Struct, frozen=True):
    """The patterns are written so that Python and JavaScript read them alike: the console asks them in the browser, and
    a secret that is being typed goes nowhere."""

    pattern: str
    """What the whole of a secret matches; empty where its form says nothing, as of one that the user has chosen."""
    like: str
    unlike: str
    others: tuple[tuple[str, str], ...] = ()
    """What is pasted in its place: a pattern, and the sentence for it."""

    def problem(self, secret: str) -> str | None:
        """Why this does not look like one, or None. The sentence never holds any of it."""
        for pattern, sentence in self.others:
            if re.fullmatch(pattern, secret):
                return sentence
        if self.pattern and not re.fullmatch(self.pattern, secret):
            return self.unlike
        return None
