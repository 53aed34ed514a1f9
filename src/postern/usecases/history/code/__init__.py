"""A recorded call as something to paste: into a shell for curl or HTTPie, or into Python."""

from collections.abc import Callable
from typing import Literal, get_args

from postern.core.history.invocation import Invocation
from postern.usecases.history.code.python import python
from postern.usecases.history.code.shell import curl, httpie

Language = Literal["curl", "httpie", "python"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

WRITERS: dict[Language, Callable[[str, Invocation], str]] = {"curl": curl, "httpie": httpie, "python": python}
