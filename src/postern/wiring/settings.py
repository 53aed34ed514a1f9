"""The settings of this process."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from postern.settings import SETTINGS, SettingError, Settings
from postern.surfaces.cli.run import USAGE, end


def settings_or_end(also: Mapping[str, str] = MappingProxyType({})) -> Settings:
    try:
        return Settings({**os.environ, **also})
    except SettingError as error:
        end(str(error), USAGE)
    except FileNotFoundError:  # a relative path has no beginning
        end("The folder in which this was typed has been deleted; go to another one", USAGE)


def digests(settings: Settings) -> dict[str, str]:
    """Of each setting's value, by its name: a command and the gateway that it asks are compared by them, and no secret
    goes from one to the other."""
    return {one.name: sha256(_as_text(vars(settings)[one.name]).encode()).hexdigest() for one in SETTINGS}


def _as_text(value: object) -> str:
    return str(value.resolve()) if isinstance(value, Path) else repr(value)
