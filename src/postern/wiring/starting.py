"""What keeps a gateway from starting, as a value, and how the command that started it ends then."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from postern.core.history.invocation import StoreUnavailable
from postern.settings import SettingError, Settings
from postern.stores.secrets.vault import VaultError
from postern.stores.sql.schema import SchemaMismatch
from postern.surfaces.cli.run import FAILED, UNAVAILABLE, USAGE, end


class CannotStart(Exception):
    """One sentence for whoever started it, and the exit code that goes with it."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def settings_or_end(also: Mapping[str, str] = MappingProxyType({})) -> Settings:
    try:
        return Settings({**os.environ, **also})
    except SettingError as error:
        end(str(error), USAGE)


@contextmanager
def ends_in_a_sentence() -> Iterator[None]:
    """What stops the program at its start is said in a sentence, not in a traceback."""
    try:
        yield
    except CannotStart as error:
        end(str(error), error.exit_code)
    except (SchemaMismatch, VaultError) as error:
        end(str(error), UNAVAILABLE)
    except StoreUnavailable as error:
        end(f"The database cannot be used: {error}", UNAVAILABLE)
    except SettingError as error:
        end(str(error), USAGE)
    except OSError as error:
        if not error.filename:
            raise
        end(f"{error.filename} cannot be used: {error.strerror}", USAGE)
