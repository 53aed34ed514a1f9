"""Errors that keep a gateway from starting, and the sentences with which a command ends then."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from postern.core.history.invocation import StoreUnavailable
from postern.observe.logs import log
from postern.settings import SettingError
from postern.stores.secrets.vault import VaultError
from postern.stores.sql.schema import SchemaMismatch
from postern.surfaces.cli.run import FAILED, UNAVAILABLE, USAGE, end


class CannotStart(Exception):
    """The sentence for the user, and the exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def ends_in_a_sentence(log_style: str = "") -> Iterator[None]:
    """Ends the program with a sentence and not a traceback; with a JSON log, in a line of it."""
    said: Callable[[str, int], NoReturn] = end
    if log_style == "json":
        said = _end_in_the_log
    try:
        yield
    except CannotStart as error:
        said(str(error), error.exit_code)
    except (SchemaMismatch, VaultError) as error:
        said(str(error), UNAVAILABLE)
    except StoreUnavailable as error:
        said(f"The database cannot be used: {error}", UNAVAILABLE)
    except SettingError as error:
        said(str(error), USAGE)
    except OSError as error:
        if not error.filename:
            raise
        said(f"{error.filename} cannot be used: {error.strerror}", USAGE)


@contextmanager
def ends_at_ctrl_c() -> Iterator[None]:
    """Lets Ctrl-C interrupt a user's own code. asyncio takes the first Ctrl-C for itself and waits for its
    loop, which an endless loop never reaches."""
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, signal.SIG_DFL, None):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_in_the_log(message: str, exit_code: int) -> NoReturn:
    log.error("the gateway cannot start", because=message)
    sys.exit(exit_code)
