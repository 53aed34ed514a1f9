"""Signatures that are checked with a certificate which the call names by its address: the gateway fetches it, and this judges
with it.

A caller who may name any address may sign at will, so a scheme lists the addresses that are its sender's own. Checked besides: the
names in the certificate, its time, and its key. Its chain is not: the certificate came over TLS from its sender's own host, and
some senders (Amazon SNS) publish it without the intermediate ones.
"""

import re
from base64 import b64decode
from binascii import Error
from functools import lru_cache
from typing import Any

import msgspec

from postern.core.calls.call import Call
from postern.core.calls.paths import parse_path
from postern.core.signatures.algorithms import RSA_BITS
from postern.core.signatures.keys.key import Key
from postern.core.signatures.scheme import LONGEST_ADDRESS, SignatureScheme
from postern.core.signatures.select import finder, in_body, parse_ref

_FIRST = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]{1,20000})-----END CERTIFICATE-----")


class Certificate(msgspec.Struct):
    key: Any
    names: tuple[str, ...]
    begins: float
    ends: float


@lru_cache(maxsize=64)
def read_certificate(text: bytes) -> Certificate | None:
    """Returns the first certificate of a PEM text, or None if there is none with an RSA key of 2048 to 8192 bits."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.x509 import (
        DNSName,
        ExtensionNotFound,
        SubjectAlternativeName,
        load_der_x509_certificate,
    )
    from cryptography.x509.oid import NameOID

    match = _FIRST.search(text)
    try:
        certificate = load_der_x509_certificate(b64decode(match[1])) if match else None
        key = certificate.public_key() if certificate else None
        if certificate is None or not isinstance(key, RSAPublicKey) or key.key_size not in RSA_BITS:
            return None
        names = [
            str(attribute.value)
            for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        ]
        try:
            others = certificate.extensions.get_extension_for_class(SubjectAlternativeName)
            names += others.value.get_values_for_type(DNSName)
        except ExtensionNotFound:
            pass
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except (Error, ValueError, TypeError):  # `cryptography` raises ValueError for each kind of damage
        return None
    return Certificate(key, tuple(names), begins.timestamp(), ends.timestamp())


def _pattern_of(text: str) -> re.Pattern[str]:
    """Reads an address or a name. A * stands for letters, digits, - and _: no dot and no slash, so no other host."""
    return re.compile(re.escape(text).replace(r"\*", "[A-Za-z0-9_-]+"))


class CertificateKey(Key):
    """Checks with a certificate. ``secret``: the sender's own name for this receiver, which nobody else can have it sign; it is
    a part of what is signed."""

    def __init__(self, scheme: SignatureScheme, secret: bytes) -> None:
        if not secret.strip(b"\0 \t\r\n"):
            raise ValueError("this is empty; what the sender calls this receiver by is needed")
        self._scheme = scheme
        self._secret = secret
        self._address = [finder(parse_ref(text)) for text in scheme.certificate_from]
        self._addresses = [_pattern_of(text) for text in scheme.certificate_addresses]
        self._names = [_pattern_of(name) for name in scheme.certificate_names]
        self._field = parse_path(scheme.secret_claim) if scheme.secret_claim != "aud" else None

    def keys_at(self, call: Call) -> str:
        said = [value.decode("latin-1") for find in self._address for value in find(call)]
        is_one = len(said) == 1 and len(said[0]) <= LONGEST_ADDRESS
        is_allowed = is_one and any(pattern.fullmatch(said[0]) for pattern in self._addresses)
        return said[0] if is_allowed else ""

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        return not self.trouble(content, signatures, fetched)

    def trouble(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> str:
        """Returns why the certificate does not prove these bytes, or an empty text if it does."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA1, SHA256

        certificate = read_certificate(fetched)
        if certificate is None:
            return "what is at the address that the call names is no certificate with an RSA key"
        if not any(known.fullmatch(name) for known in self._names for name in certificate.names):
            names = ", ".join(certificate.names)[:200]
            return f"the certificate that the call names is not its sender's, but that of {names or 'nobody'}"
        # The signature itself says which digest it is of, so none can be taken for the other.
        digests = (SHA256(), SHA1()) if self._scheme.algorithm == "certificate_sha1" else (SHA256(),)
        for signature in signatures:
            for digest in digests:
                try:
                    certificate.key.verify(signature, content, PKCS1v15(), digest)
                except InvalidSignature:
                    continue
                return ""
        return "it was not made with the key of the certificate that the call names over these bytes"

    def rejected(self, call: Call, signature: bytes, fetched: bytes) -> tuple[str, str] | None:
        """The certificate's time; and the body's own field must be what was signed in its place."""
        certificate = read_certificate(fetched)
        if certificate is not None and not certificate.begins <= call.received_at <= certificate.ends:
            return (
                "signature_mismatch",
                "the certificate that the call names was not valid when the call arrived",
            )
        if self._field is None or in_body(call, self._field) == [self._secret]:
            return None
        return "signature_mismatch", f"{self._scheme.secret_claim} in the body is not what is set here"
