"""A secret, or a file, that a command is given."""

import os
import sys
from pathlib import Path

import click

from postern.surfaces.cli.run import USAGE, end


def read_secret(source: str) -> str:
    """Secrets come from a file, an environment variable or standard input, never from an argument: other
    users see those."""
    kind, _, rest = source.partition(":")
    if source == "-":
        try:
            return unicode_of(sys.stdin.readline().rstrip("\n"), "standard input")
        except UnicodeDecodeError:
            end("standard input is not text in UTF-8", USAGE)
    if kind == "env" and rest:
        return (
            unicode_of(os.environ[rest], rest)
            if rest in os.environ
            else end(f"The environment variable {rest} is not set.", USAGE)
        )
    if kind == "file":
        try:
            return Path(rest).read_text().rstrip("\n")
        except OSError as error:
            end(f"{rest} cannot be read: {error.strerror}", USAGE)
        except UnicodeDecodeError:
            end(f"{rest} is not text in UTF-8", USAGE)
    return end(f"{source!r}: write env:NAME, file:PATH or - (standard input)", USAGE)


def read_or_ask(source: str | None, option: str, prompt: str, twice: bool = False) -> str:
    """What the option names, or what somebody types who sits there."""
    if source is not None:
        return read_secret(source)
    if not sys.stdin.isatty():
        end(f"{option}: write env:NAME, file:PATH or - (standard input)", USAGE)
    asked: str = click.prompt(prompt, hide_input=True, confirmation_prompt=twice)
    return asked


def unicode_of(text: str, where: str) -> str:
    """What comes from outside may have bytes in it that are no text, each as half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        end(f"{where} is not text in UTF-8", USAGE)
    return text


def read_file(source: str) -> bytes:
    """To the byte: reading text would write other ends of lines. ``-``: standard input."""
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        end(f"{source} cannot be read: {error.strerror}", USAGE)
