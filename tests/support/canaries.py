"""Secrets that are planted to be searched for, in every form in which they could come out."""

import base64
import html
import json
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus


def canary(what: str) -> str:
    """Recognisable when found, and made of characters that look different once they are encoded."""
    return f"{what}+/=&'%{secrets.token_urlsafe(16)}"


def forms(secret: str) -> dict[str, bytes]:
    raw = secret.encode()
    found = {
        "raw": raw,
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "url": quote(secret, safe="").encode(),
        "url, lower case": quote(secret, safe="").lower().encode(),
        "form": quote_plus(secret).encode(),
        "path": quote(secret).encode(),
        "html": html.escape(secret).encode(),
        "html, decimal": html.escape(secret).replace("&#x27;", "&#39;").encode(),
        "json": json.dumps(secret)[1:-1].encode(),
    }
    for place in range(3):  # base64 looks different by where the secret begins among its groups of three
        for kind, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            whole = encode(b"\0" * place + raw)
            start = -(-place * 8 // 6) if place else 0
            found[f"{kind} at {place}"] = whole[start : (place + len(raw)) * 8 // 6]
    return found


def leaks(places: Iterable[tuple[str, bytes]], planted: dict[str, str]) -> list[str]:
    """Returns where which secret was found, and in which form."""
    wanted = [(name, form, text) for name, secret in planted.items() for form, text in forms(secret).items()]
    found = set()
    for place, content in places:
        for name, form, text in wanted:
            if text in content:
                found.add(f"{place}: {name}, {form}")
    return sorted(found)


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file as it lies on the disk, write-ahead logs too."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()
