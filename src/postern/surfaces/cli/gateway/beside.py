"""The gateway that serves the same data on this machine. It answers the API over a socket in the data folder, without a key:
whoever may open that may open the database, too. A command that is answered there loads no database itself."""

import os
import socket
import struct
from contextlib import closing
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import msgspec

from postern import __version__
from postern.settings import SETTINGS, Settings
from postern.surfaces.cli.gateway.source import Away, HttpAnswer, HttpQuestion

NAME = "commands.sock"

ANSWER_WITHIN = 120.0
"""Seconds. A schedule's source may take its time."""

NOT_THIS_ONE = 421
"""The status where the gateway has another version, or other settings than the command was given."""

HEADER = "X-Postern-Command"


class AskingCommand(msgspec.Struct):
    """The value of the header, in JSON."""

    settings: dict[str, str]
    """The digests of those that the command was given."""
    version: str = __version__


def digests(settings: Settings) -> dict[str, str]:
    """A digest of each setting's value, by the setting's name. A command and the gateway that it asks are compared by them, and
    no secret goes from one to the other."""
    return {
        setting.name: sha256(_as_text(vars(settings)[setting.name]).encode()).hexdigest()
        for setting in SETTINGS
    }


def _as_text(value: object) -> str:
    return str(value.resolve()) if isinstance(value, Path) else repr(value)


class GatewaySocket:
    def __init__(self, data_dir: Path, settings: dict[str, str], *, is_named: bool = True) -> None:
        """``is_named``: somebody has said which folder it is. Otherwise it is the one that lies here, whoever made it."""
        self._place = data_dir / NAME
        self._is_named = is_named
        self._header = {HEADER: msgspec.json.encode(AskingCommand(settings)).decode()}

    def ask(self, question: HttpQuestion, within: float | None = None) -> HttpAnswer | None:
        """Returns None if the gateway that is meant does not run: then the command opens the database itself."""
        line = HTTPConnection("localhost", timeout=within or ANSWER_WITHIN)
        line.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with closing(line):
            line.sock.settimeout(line.timeout)
            try:
                line.sock.connect(str(self._place))
            except OSError:  # no socket, one that a killed gateway has left, or somebody else's
                return None
            trusted = {None, 0, os.geteuid()} | (
                {self._place.parent.stat().st_uid} if self._is_named else set()
            )
            if _user_at_the_end_of(line.sock) not in trusted:
                raise Away(f"{self._place} is served by another user; nothing was sent there.")
            # From here on the gateway may have done it, even if no answer arrives.
            try:
                line.request(question.method, question.target, question.body, question.headers | self._header)
                heard = line.getresponse()
                answer = HttpAnswer(heard.status, heard.read())
            except TimeoutError:
                raise Away("The gateway that serves this data does not answer.") from None
            except (OSError, HTTPException):
                may_be = "" if question.method == "GET" else "; it may have done what was asked"
                raise Away(
                    f"The gateway that serves this data ended before it had answered{may_be}."
                ) from None
        return None if answer.status == NOT_THIS_ONE else answer


def _user_at_the_end_of(line: socket.socket) -> int | None:
    """Returns None if the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    _, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(user)
