"""The files and secrets that a command reads, and files that it writes whole or not at all."""

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import click

from postern.surfaces.cli.run import end


def read_secret(source: str, place: str = "A secret is not typed") -> str:
    """Reads a secret from a file, an environment variable or standard input. It is never an argument, which
    other users see, and is not repeated if it was one."""
    kind, _, rest = source.partition(":")
    if source == "-":
        with in_words("standard input"):
            return unicode_of(sys.stdin.readline().rstrip("\n"), "standard input")
    if kind == "env" and rest:
        return (
            unicode_of(os.environ[rest], rest)
            if rest in os.environ
            else end(f"The environment variable {rest} is not set.")
        )
    if kind == "file":
        with in_words(rest):
            return Path(rest).read_text().rstrip("\n")
    return end(f"{place}: write env:NAME, file:PATH or - (standard input)")


def read_or_ask(source: str | None, option: str, prompt: str, twice: bool = False) -> str:
    """Reads the secret that the option names, or asks for it on a terminal."""
    if source is not None:
        return read_secret(source)
    if not sys.stdin.isatty():
        end(f"{option}: write env:NAME, file:PATH or - (standard input)")
    secret: str = click.prompt(prompt, hide_input=True, confirmation_prompt=twice)
    return secret


def unicode_of(text: str, where: str) -> str:
    """Ends the command if the text holds bytes that are not UTF-8; Python reads each as half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        end(f"{where} is not text in UTF-8")
    return text


def read_file(source: str) -> bytes:
    """Returns the bytes of a file, or of standard input for ``-``."""
    with in_words(source):
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


def read_text(file: Path) -> str:
    """Returns the text with its own line ends."""
    with in_words(file):
        return file.read_bytes().decode()


@contextmanager
def in_words(place: object, done: str = "read") -> Iterator[None]:
    """Ends the command with a sentence if a file cannot be read or written."""
    try:
        yield
    except OSError as error:
        end(f"{error.filename or place} cannot be {done}: {error.strerror}")
    except UnicodeDecodeError:
        end(f"{place} is not text in UTF-8")


@contextmanager
def written(to: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Opens the file that --output names. A device or a pipe is written directly."""
    with in_words(to, "written"):
        if to.exists() and not to.is_file():
            with to.open("wb") as stream:  # fails for a folder, and the error says so
                yield stream
            return
        with written_whole(to, mode) as stream:
            yield stream


@contextmanager
def written_whole(to: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Gives the file its name when it is whole; an older file stays until then, and a link is followed. Its access
    rights are those of the older file."""
    place = Path(os.path.realpath(to))
    # A name of its own: `x.part` may be a file of the user's.
    unfinished = place.with_name(f".postern-{secrets.token_hex(8)}.part")
    try:
        made = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(made, "wb") as stream:
            with suppress(FileNotFoundError):
                os.fchmod(made, stat.S_IMODE(place.stat().st_mode) & mode)
            yield stream
        unfinished.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(to)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
