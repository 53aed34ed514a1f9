"""Before what all pay for once, a commit or a message, whoever is ready to add to it goes first."""

import os
from collections.abc import Callable

MOST_LOOKS = 4
"""So many times what others have brought is looked at. One of them may hold the interpreter for long."""

others_first: Callable[[], None] = getattr(os, "sched_yield", lambda: None)
"""Let go of the interpreter and the core. Waits for nobody: it comes back at once where no other thread is ready."""
