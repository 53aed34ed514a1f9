"""Signatures by openssl, so that nothing of the project's own code is on this side of a vector."""

import base64
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

HERE = Path(__file__).parent
NOON = 1_700_000_000
"""Every call was signed at this second: Tue, 14 Nov 2023 22:13:20 GMT."""

Headers = list[tuple[str, str]]


Sign = Callable[[bytes, bytes], bytes]
"""Key and content to the signature."""


def hmac_by(digest: str) -> Sign:
    def sign(key: bytes, content: bytes) -> bytes:
        # openssl takes no empty key; HMAC fills keys up with zeros, so that one zero is the same key.
        key = key or b"\0"
        command = [
            "openssl",
            "dgst",
            f"-{digest}",
            "-mac",
            "HMAC",
            "-macopt",
            f"hexkey:{key.hex()}",
            "-binary",
        ]
        return subprocess.run(command, input=content, capture_output=True, check=True).stdout

    return sign


hmac_sha256 = hmac_by("sha256")


def pair(kind: str, *names: str) -> tuple[Sign, dict[str, bytes]]:
    """Signing with the private halves in ``keys/``, and by each public half, as it is pasted, its private one's file."""
    files = {name: HERE / "keys" / f"{name}.pem" for name in names}
    how = ["pkeyutl", "-sign", "-rawin", "-inkey"] if kind == "ed25519" else ["dgst", "-sha256", "-sign"]

    def sign(key: bytes, content: bytes) -> bytes:
        with NamedTemporaryFile() as file:  # Ed25519 does not read from a pipe
            file.write(content)
            file.flush()
            at = ["-in", file.name] if kind == "ed25519" else [file.name]
            return subprocess.run(
                ["openssl", *how, key.decode(), *at], capture_output=True, check=True
            ).stdout

    def public(file: Path, form: str) -> bytes:
        command = ["openssl", "pkey", "-in", str(file), "-pubout", "-outform", form]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def pasted(file: Path) -> str:
        match kind:
            case "ed25519":
                return public(file, "DER")[-32:].hex()
            case "ecdsa":
                return in_base64(public(file, "DER"))
            case _:
                return public(file, "PEM").decode()

    return sign, {pasted(file): str(file).encode() for file in files.values()}


def iso(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def http_date(second: int) -> str:
    return format_datetime(datetime.fromtimestamp(second, UTC), usegmt=True)


def in_hex(digest: bytes) -> str:
    return digest.hex()


def in_base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@dataclass(frozen=True)
class Message:
    """What a sender is about to sign. ``time`` is the text it writes, None where it writes none."""

    body: bytes
    time: str | None = None
    id: str = "msg_2Lh9KRb0pzN4LePd3XiA4v12Axj"
    method: str = "POST"
    path: str = "/webhook/4Zk0pXq9LmTtR2vB7wYc1D"
    query: str = ""
    url: str = ""

    def at(self, time: str | None) -> "Message":
        return replace(self, time=time)


@dataclass
class Confirmation:
    """A vendor's own verifier: what it is called and in which version, and what it says about a vector (None: it
    cannot be asked this)."""

    called: Callable[[], str]
    ask: Callable[[dict[str, Any]], bool | None]
    signs: bool = False
    """Does it also make signatures, so that openssl's were compared with its own?"""

    @property
    def name(self) -> str:
        return self.called()


def vector(
    kind: str,
    name: str,
    secret: str,
    message: Message,
    headers: Headers,
    expect: dict[str, Any],
    *,
    second_secret: str | None = None,
    public_url: str | None = None,
    at: float = NOON + 1.5,
    more: dict[str, Any] | None = None,
) -> dict[str, Any]:
    call = {
        "method": message.method,
        "base_url": "https://hooks.example",
        "path": message.path,
        "query": message.query,
        "headers": [list(header) for header in headers],
        "body_base64": base64.b64encode(message.body).decode(),
    }
    made = {
        "kind": kind,
        "name": name,
        "made_with": "openssl",
        "secret": secret,
        "second_secret": second_secret,
        "public_url": public_url,
        "at": at,
    }
    return made | (more or {}) | {"call": call, "expect": expect}


def good(matched: str = "main") -> dict[str, Any]:
    return {"verified": True, "matched": matched}


def bad(code: str) -> dict[str, Any]:
    return {"verified": False, "code": code}


def confirm(made: dict[str, Any], by: Confirmation | None, differences: dict[str, str]) -> None:
    """Ask the vendor's SDK about the vector. It must agree, or the difference must be known and have its
    reason."""
    if by is None:
        return
    accepted = by.ask(made)
    reason = differences.get(made["kind"])
    if accepted is None:
        made["made_with"] = f"openssl; {by.name} cannot be asked this"
    elif accepted == made["expect"]["verified"]:
        if reason:
            raise SystemExit(f"{made['name']}: {by.name} agrees, so this is no difference: {reason}")
        made["made_with"] = f"{by.name} and openssl" if by.signs else f"openssl, confirmed by {by.name}"
    elif reason:
        made["made_with"] = f"openssl; {by.name} {'accepts' if accepted else 'refuses'} it: {reason}"
    else:
        raise SystemExit(f"{made['name']}: {by.name} says {accepted}, the vector expects {made['expect']}")


@dataclass
class Sender:
    """How one vendor signs, in its own words. Only what differs from the most common scheme is said."""

    name: str
    secret: str
    second_secret: str
    header: str
    encode: Callable[[bytes], str]
    signed: Callable[[Message], bytes]
    value: Callable[[list[str], str | None], str] = lambda signatures, time: signatures[0]
    """Signatures and time to the header's value. Where a list is possible, every signature is in it."""
    key: Callable[[str], bytes] = lambda secret: secret.encode()
    body: Callable[[bytes, int], bytes] = lambda text, time: (
        b'{"id":"evt_1","event_id":"evt_1","note":"' + text + b'"}'
    )
    others: Callable[[Message], Headers] = lambda message: []
    time: Callable[[int], str] | None = None
    time_in_body: bool = False
    tolerance: int = 0
    is_list: bool = False
    foreign_items: str = ""
    """Items of other schemes that such a header may hold besides, with a trailing or leading separator."""
    foreign_alone: str = ""
    """A header value that holds no item of this scheme."""
    malformed: str = "zz" * 32
    time_header: str = ""
    id_header: str = ""
    public_url: str | None = None
    wrong_reading: Callable[[str], bytes] | None = None
    """The secret as a neighbouring scheme would read it."""
    sign: Sign = hmac_sha256
    wrong_key: bytes = b"somebody-elses-secret"
    is_pair: bool = False
    half_code: str = "signature_malformed"
    """What becomes of half a signature: where signatures have no fixed length it may be one."""
    content_type: str = "application/json"
    separator: str = ","
    """Between the items of a list."""
    by_place: bool = False
    """Its items have no keys: the time is the first."""
    other_header: str = ""
    """Where the signature may be instead."""
    tries_urls: bool = False
    inside: Callable[[bytes, str, str], bytes] | None = None
    """The body with the signature in it: what it says, when, and its signature."""
    sdk: Confirmation | None = None
    differences: dict[str, str] = field(default_factory=dict)
