"""The gateways to which somebody has logged in, in a file that nobody else may read."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from postern.private_files import make_folder
from postern.surfaces.cli.files import in_words, written_whole
from postern.surfaces.cli.run import end, err

LOCAL = "local"
"""The profile that is always there: the local database."""
DEFAULT = "default"


class Login(NamedTuple):
    url: str
    key: str
    profile: str
    """The profile's name. It is empty for a login from the environment."""


class Profile(msgspec.Struct):
    url: str
    key: str

    def __repr__(self) -> str:
        return f"Profile({self.url})"


class Credentials(msgspec.Struct):
    current: str = LOCAL
    profiles: dict[str, Profile] = {}


def file() -> Path:
    given = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(given) if os.path.isabs(given) else Path("~/.config").expanduser()
    return folder / "postern" / "credentials.json"


def read() -> Credentials:
    path = file()
    try:
        text = path.read_bytes()
        others_may = path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except FileNotFoundError:
        return Credentials()
    except OSError as error:
        end(f"{path} cannot be read: {error.strerror}")
    if others_may:
        err.print(f"{path} holds API keys and others may open it: chmod 600 {path}")
    try:
        return msgspec.json.decode(text, type=Credentials)
    except msgspec.DecodeError:
        end(f"{path} is not what `postern login` writes. Delete it, and log in again.")


def write(credentials: Credentials) -> None:
    """Writes the file whole or not at all, so that an interruption does not lose the other profiles."""
    path = file()
    with in_words(path, "written"):
        make_folder(path.parent)
        with written_whole(path, 0o600) as opened:
            opened.write(msgspec.json.format(msgspec.json.encode(credentials), indent=2) + b"\n")


def chosen(profile: str | None, environment: Mapping[str, str] = os.environ) -> Login | None:
    """Returns the login of --profile, else POSTERN_URL, else POSTERN_PROFILE, else the last `postern login`."""
    if profile is None and (url := environment.get("POSTERN_URL", "")):
        return Login(address(url, "POSTERN_URL"), _key(environment), "")
    name = profile or environment.get("POSTERN_PROFILE") or None
    if name == LOCAL:
        return None
    known = read()
    name = name or known.current
    if name == LOCAL:
        return None
    if name not in known.profiles:
        names = ", ".join([*known.profiles, LOCAL])
        end(f"There is no profile {name}; there is {names}. `postern login URL --profile {name}` makes it.")
    entry = known.profiles[name]
    return Login(entry.url, entry.key, name)


def address(url: str, what: str) -> str:
    """Checks the address of a gateway, and returns it without a slash at its end."""
    text = url.strip().rstrip("/")
    text = text if "://" in text else f"https://{text}"
    scheme, _, rest = text.partition("://")
    usable = scheme in ("http", "https") and rest.isascii() and rest.isprintable()
    if not usable or not rest or any(char in rest for char in ' @?#"\\'):
        end(f"{what}: write the gateway's address, like https://hooks.example.com")
    return text


def _key(environment: Mapping[str, str]) -> str:
    key, path = environment.get("POSTERN_API_KEY", ""), environment.get("POSTERN_API_KEY_FILE", "")
    if path and not key:
        try:
            key = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError):
            end("POSTERN_API_KEY_FILE cannot be read")
    return checked_key(key, "POSTERN_URL is set: set POSTERN_API_KEY (or POSTERN_API_KEY_FILE) as well")


def checked_key(key: str, otherwise: str) -> str:
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        end(otherwise)
    return key
