"""Variants of a set-up or a call: another form of the secret, another URL, a body that was changed on its way.

Each variant is a whole set-up and call to try, with words and, where a setting would help, the change of that
setting.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit, urlunsplit

import msgspec

from postern.core.calls.call import Call
from postern.core.documents import Patch
from postern.core.signatures.algorithms import DIGESTS
from postern.core.signatures.credential import Unproven
from postern.core.signatures.encoding import SECRET_ENCODINGS, signing_key
from postern.core.signatures.freshness import FORMAT_WORDS, TIMESTAMP_FORMATS
from postern.core.signatures.scheme import LONGEST_TOLERANCE, InvalidScheme, SignatureScheme
from postern.core.signatures.signature import Reading, SignatureCredential
from postern.core.signatures.signed_content import MOST_TOKENS, parse_template

_PREFIX = re.compile(rb"[A-Za-z]{2,12}_")
_LARGEST_REWRITTEN = 256 * 1024
_WRAPPING = b" \t\r\n\"'"


class Variation(msgspec.Struct, frozen=True):
    """A change that would make the call verify. ``patch`` is for the webhook's authentication, and None if the sender must change."""

    change: str
    explanation: str
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class SenderSetup:
    """Everything that decides about a signature besides the call."""

    scheme: SignatureScheme
    main: bytes = field(repr=False)
    second: bytes | None = field(default=None, repr=False)
    public_url: str | None = None
    tolerance_seconds: int | None = None
    require_timestamp_and_digest: bool = False

    def credential(self) -> SignatureCredential:
        return SignatureCredential(
            self.scheme,
            self.main,
            self.second,
            public_url=self.public_url,
            tolerance_seconds=self.tolerance_seconds,
            require_timestamp_and_digest=self.require_timestamp_and_digest,
        )

    def without_clock(self) -> "SenderSetup":
        return replace(self, tolerance_seconds=0)

    def rejection(self, call: Call) -> Unproven | None:
        try:
            verdict = self.credential().check(call)
        except ValueError as error:
            return Unproven("signature_mismatch", str(error))
        return verdict if isinstance(verdict, Unproven) else None

    def verifies(self, call: Call) -> bool:
        return self.rejection(call) is None


@dataclass(frozen=True, slots=True)
class Trial:
    setup: SenderSetup
    call: Call
    change: Variation


def custom_patch(scheme: SignatureScheme) -> Patch:
    """Returns the change of a webhook's authentication to this scheme."""
    return {"provider": "custom", "scheme": scheme.to_document()}


def changed_times(setup: SenderSetup, call: Call) -> Iterator[Trial]:
    """For a right signature with a wrong time: another form of writing it, a longer window, a signature of today."""
    for form in TIMESTAMP_FORMATS:
        scheme = msgspec.structs.replace(setup.scheme, timestamp_format=form)
        other = replace(setup, scheme=scheme)
        if form != setup.scheme.timestamp_format and other.verifies(call):
            change = Variation(
                f"Read the timestamp as {FORMAT_WORDS[form]}",
                f"Read as {FORMAT_WORDS[form]}, the timestamp is that of the call's receipt.",
                custom_patch(scheme),
            )
            yield Trial(other, call, change)
    reading = setup.without_clock().credential().read(call)
    if isinstance(reading, Reading) and reading.signed_at is not None:
        seconds = int(abs(call.received_at - reading.signed_at)) + 1
        if seconds > LONGEST_TOLERANCE:
            change = Variation(
                "Have the call signed anew",
                "The signature is right, and its time is over a month away from its receipt.",
            )
            yield Trial(setup, call, change)
            return
        change = Variation(
            f"Allow {seconds} seconds between signing and receipt",
            "The signature is right and only its time is off. Test a call that was recorded earlier at the time it was received.",
            {"toleranceSeconds": seconds},
        )
        yield Trial(replace(setup, tolerance_seconds=seconds), call, change)


def changed_secrets(setup: SenderSetup, call: Call) -> Iterator[Trial]:
    """Yields the same secret, made into the key's bytes in other ways."""
    for scheme, words in secret_forms(setup):
        explanation = f"The signature was made with the secret {words}."
        yield Trial(
            replace(setup, scheme=scheme),
            call,
            Variation(f"Use the secret {words}", explanation, custom_patch(scheme)),
        )
    trimmed = setup.main.strip(_WRAPPING), setup.second.strip(_WRAPPING) if setup.second is not None else None
    if trimmed != (setup.main, setup.second):
        change = Variation(
            "Paste the secret again, without blanks or quotes around it",
            "The secret that was pasted has blanks or quotes at its ends.",
        )
        yield Trial(replace(setup, main=trimmed[0], second=trimmed[1]), call, change)


def secret_forms(setup: SenderSetup) -> Iterator[tuple[SignatureScheme, str]]:
    """The ways to read the secret that make another key of it, each key once. A public key says itself what it is."""
    if setup.scheme.algorithm not in DIGESTS:
        return
    seen = {_keys(setup, setup.scheme)}
    prefix = _PREFIX.match(setup.main)
    prefixes = dict.fromkeys(["", prefix[0].decode() if prefix else "", setup.scheme.secret_prefix])
    for encoding in SECRET_ENCODINGS:
        for text in prefixes:
            scheme = msgspec.structs.replace(setup.scheme, secret_encoding=encoding, secret_prefix=text)
            keys = _keys(setup, scheme)
            if keys not in seen:
                seen.add(keys)
                yield scheme, secret_words(scheme)


def secret_words(scheme: SignatureScheme) -> str:
    how = {
        "utf8": "as the plain text it is",
        "utf8_nfkd": "with its accents taken apart (NFKD)",
        "sha1": "by its SHA-1 digest",
    }.get(scheme.secret_encoding, f"decoded from {scheme.secret_encoding}")
    return f"{how}, after taking {scheme.secret_prefix} off its front" if scheme.secret_prefix else how


def _keys(setup: SenderSetup, scheme: SignatureScheme) -> tuple[bytes | None, ...]:
    """The key that the scheme makes of each secret; None where it can make none."""
    keys: list[bytes | None] = []
    for secret in (setup.main, setup.second):
        try:
            keys.append(signing_key(secret, scheme.secret_encoding, scheme.secret_prefix) if secret else None)
        except ValueError:
            keys.append(None)
    return tuple(keys)


def changed_urls(setup: SenderSetup, call: Call) -> Iterator[Trial]:
    """Yields the same call under the other URLs by which its sender may know the webhook."""
    if "{url}" not in setup.scheme.signed_content and "{path}" not in setup.scheme.signed_content:
        return
    for url in _urls(setup, call):
        explanation = f"The sender signs the URL it was given, and that was {url}."
        yield Trial(
            replace(setup, public_url=url),
            call,
            Variation(f"Set the public URL to {url}", explanation, {"publicUrl": url}),
        )
    if call.query:
        change = Variation(
            "Leave the query string out of the URL at the sender",
            "The sender signed the URL without its query string.",
        )
        yield Trial(setup, call.but(query=b""), change)


def _urls(setup: SenderSetup, call: Call) -> list[str]:
    known = [url for url in (setup.public_url, call.base_url + call.path.decode("latin-1")) if url]
    hosts = [
        value.decode("latin-1")
        for name in (b"x-forwarded-host", b"host", b"x-original-host")
        for value in call.header(name)[:2]
    ]
    urls: dict[str, None] = {}
    for url in known:
        try:
            parts = urlsplit(url)
        except ValueError:
            continue
        for scheme in ("https", "http"):
            for host in dict.fromkeys(
                [parts.netloc, *hosts, parts.netloc.rpartition(":")[0] or parts.netloc]
            ):
                for path in (parts.path.rstrip("/"), parts.path.rstrip("/") + "/"):
                    urls.setdefault(urlunsplit((scheme, host, path, parts.query, "")))
    return [url for url in urls if url != setup.public_url][:24]


def changed_calls(setup: SenderSetup, call: Call) -> Iterator[Trial]:
    """The body as it may have been before something wrote it anew on its way, which no setting here could mend."""
    for body, words in _bodies(call.body):
        if body != call.body:
            explanation = f"The signature is that of the body {words}: it was changed on its way, or the sender signs another text than it sends."
            yield Trial(
                setup,
                call.but(body=body),
                Variation("Send the body byte for byte as it was signed", explanation),
            )


def changed_joins(setup: SenderSetup, call: Call) -> Iterator[Trial]:
    """The values of signed headers, put together in other ways than sorted and one a line."""
    globs = [
        token.ref
        for token in parse_template(setup.scheme.signed_content)
        if token.kind == "headers" and token.ref is not None
    ]
    if len(globs) != 1 or not globs[0].is_glob:
        return
    sent = [name.decode("latin-1") for name, _ in call.headers if name.startswith(globs[0].name.encode())]
    if not 1 < len(sent) <= MOST_TOKENS:
        return
    for names, order in ((sorted(sent), "sorted by name"), (sent, "in the order they were sent")):
        for joiner, words in (
            ("", "nothing"),
            ("\n", "a line feed"),
            (",", "a comma"),
            (".", "a dot"),
            ("&", "an ampersand"),
            ("|", "a bar"),
            (" ", "a blank"),
        ):
            template = joiner.join(f"{{header:{name}}}" for name in names)
            try:
                scheme = SignatureScheme.from_document(
                    {**setup.scheme.to_document(), "signedContent": template}
                )
            except InvalidScheme:
                continue
            change = Variation(
                "Sort the headers by lower-case name and join their values with a line feed",
                f"The sender joined the values {order} with {words}.",
            )
            yield Trial(replace(setup, scheme=scheme), call, change)


def _bodies(body: bytes) -> Iterator[tuple[bytes, str]]:
    yield body.rstrip(b"\r\n"), "without the line break at its end"
    yield body + b"\n", "with a line feed at its end"
    yield body + b"\r\n", "with a line break (CR LF) at its end"
    yield body.strip(), "without blanks around it"
    yield body.replace(b"\r\n", b"\n"), "with line feeds (LF) for line breaks"
    yield body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), "with CR LF for line breaks"
    yield body.removeprefix(b"\xef\xbb\xbf"), "without the byte order mark"
    yield b"", "left out altogether"
    if len(body) > _LARGEST_REWRITTEN:
        return
    try:
        document = json.loads(body)
        for text, words in (
            (json.dumps(document, separators=(",", ":"), ensure_ascii=False), "written compactly"),
            (json.dumps(document, separators=(",", ":")), "written compactly, in ASCII"),
            (json.dumps(document, ensure_ascii=False), "written with a blank after commas and colons"),
            (json.dumps(document), "written with a blank after commas and colons, in ASCII"),
            (json.dumps(document, indent=2, ensure_ascii=False), "written over several lines, indented by 2"),
            (json.dumps(document, indent=4, ensure_ascii=False), "written over several lines, indented by 4"),
            (
                json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False),
                "written compactly, keys sorted",
            ),
            (
                json.dumps(document, separators=(",", ":"), ensure_ascii=False).replace("/", "\\/"),
                "written compactly, slashes escaped",
            ),
        ):
            yield text.encode(), words
    except (ValueError, RecursionError):
        return
