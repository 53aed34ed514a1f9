"""Where a listener was, kept from one run of the command to the next."""

import msgspec

from postern.surfaces.cli.files import written_whole
from postern.surfaces.cli.gateway import profiles
from postern.surfaces.cli.gateway.api import PLACE
from postern.surfaces.cli.run import USAGE, end


class ListenedTo(msgspec.Struct):
    """How far the calls of a gateway were shown."""

    newest: float = 0.0
    shown: dict[str, float] = {}
    """By id, when it was received: those that come in together may be recorded in another order."""


class _Stored(msgspec.Struct):
    gateway: str
    place: ListenedTo


class KeptPlace:
    """One name, one file. It is written as calls are shown, and replaced whole."""

    def __init__(self, name: str, gateway: str) -> None:
        if not PLACE.fullmatch(name):
            end("--keep: a name has up to 80 letters, digits, dots, dashes and underscores", USAGE)
        self._gateway = gateway
        self._file = profiles.file().parent / "listening" / f"{name}.json"
        self.place = self._read(name)

    def _read(self, name: str) -> ListenedTo | None:
        try:
            stored = msgspec.json.decode(self._file.read_bytes(), type=_Stored)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            end(f"{self._file} cannot be read as a place that --keep has written. Delete it.", USAGE)
        if stored.gateway != self._gateway:
            end(f"--keep: {name} is a place at {stored.gateway}, and commands go to {self._gateway}", USAGE)
        return stored.place

    def write(self, place: ListenedTo) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(self._file) as opened:
                opened.write(msgspec.json.encode(_Stored(self._gateway, place)))
        except OSError as error:
            end(f"{self._file} cannot be written: {error.strerror}", USAGE)
