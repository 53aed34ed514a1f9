"""Vectors of senders whose calls name a certificate: signed by openssl, with the certificates that would be fetched."""

import json
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from signing import HERE, NOON, Headers, Message, bad, good, in_base64, iso, vector

YEAR = 31_536_000


def signed_by(key: str, content: bytes, digest: str) -> str:
    command = ["openssl", "dgst", f"-{digest}", "-sign", str(HERE / "keys" / f"{key}.pem")]
    return in_base64(subprocess.run(command, input=content, capture_output=True, check=True).stdout)


@dataclass(frozen=True)
class Sending:
    """One call, and what is unusual about it."""

    receiver: str
    time: str
    key: str
    address: str
    digest: str
    note: str = "genuine"


Put = Callable[[str], tuple[bytes, Headers]]
"""A signature to the body and headers that carry it."""


def sns(call: Sending) -> tuple[bytes, Put]:
    said = {
        "Message": json.dumps({"note": call.note}),
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "Subject": "Grüße",
        "Timestamp": call.time,
        "TopicArn": call.receiver,
        "Type": "Notification",
    }
    content = "".join(f"{name}\n{value}\n" for name, value in said.items()).encode()

    def put(signature: str) -> tuple[bytes, Headers]:
        more = {"SignatureVersion": "1", "Signature": signature, "SigningCertURL": call.address}
        return json.dumps(said | more).encode(), [("Content-Type", "text/plain; charset=UTF-8")]

    return content, put


def paypal(call: Sending) -> tuple[bytes, Put]:
    body = json.dumps({"id": "WH-1", "note": call.note}).encode()
    id = "69cd13f0-d67a-11e5-baa3-778b53f4ae55"
    content = f"{id}|{call.time}|{call.receiver}|{zlib.crc32(body)}".encode()

    def put(signature: str) -> tuple[bytes, Headers]:
        headers = [
            ("Content-Type", "application/json"),
            ("PAYPAL-TRANSMISSION-ID", id),
            ("PAYPAL-TRANSMISSION-TIME", call.time),
            ("PAYPAL-CERT-URL", call.address),
            ("PAYPAL-TRANSMISSION-SIG", signature),
        ]
        return body, headers

    return content, put


@dataclass(frozen=True)
class CertificateSender:
    write: Callable[[Sending], tuple[bytes, Put]]
    main: str
    second: str
    at: str
    """The addresses of its certificates, with their number left out."""
    file: str
    digests: tuple[str, str]
    """One that is taken, and another."""
    takes_both: bool

    def vectors(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        files = {1: f"{self.file}-1", 2: "other-2", 3: f"{self.file}-3"}
        fetched = {
            self.at.format(number): (HERE / "keys" / f"{file}.crt").read_text()
            for number, file in files.items()
        }

        def add(
            kind: str,
            name: str,
            code: str = "",
            matched: str = "main",
            *,
            by: str = "rsa-1",
            change: Callable[[bytes, Headers], tuple[bytes, Headers]] = lambda body, headers: (body, headers),
            signature: str | None = None,
            more: dict[str, Any] | None = None,
            **unusual: Any,
        ) -> None:
            usual = {"receiver": self.main, "time": iso(NOON), "key": by, "address": self.at.format(1)}
            call = Sending(**usual | {"digest": self.digests[0]} | unusual)
            content, put = self.write(call)
            made_signature = signed_by(call.key, content, call.digest) if signature is None else signature
            body, headers = change(*put(made_signature))
            expect = bad(code) if code else good(matched)
            known = {"more": {"fetched": fetched}}
            made.append(vector(kind, name, self.main, Message(body), headers, expect, **known | (more or {})))

        two, mismatch = {"second_secret": self.second}, "signature_mismatch"
        add("valid", "a genuine call")
        add("main_of_two", "the main one while a second is set", more=two)
        add("second_secret", "the second one", matched="second", receiver=self.second, more=two)
        add("second_secret_not_set", "the second one where none is set", mismatch, receiver=self.second)
        add("wrong_secret", "a genuine call for somebody else", mismatch, receiver=self.main[:-1] + "X")
        add("wrong_key", "signed with another key", mismatch, by="rsa-2")
        add("altered_body", "one letter of the body is another", mismatch, change=altered)
        add(
            "altered_time",
            "another time",
            mismatch,
            change=lambda *of: altered(*of, b"22:13:20Z", b"22:13:21Z"),
        )
        if self.write is sns:  # PayPal's calls do not say whom they are for
            names = self.second.encode(), self.main.encode()
            add(
                "renamed",
                "what is set here, in the place of another",
                mismatch,
                receiver=self.second,
                change=lambda *of: altered(*of, *names),
            )
            add(
                "altered_name",
                "another name in the body alone",
                mismatch,
                change=lambda *of: altered(*of, *names[::-1]),
            )
        add("stale", "received too late", "timestamp_expired", more={"at": NOON + 300_000})
        add("rotated", "a newer certificate", by="rsa-3", address=self.at.format(3))
        add(
            "other_certificate",
            "somebody else's certificate",
            mismatch,
            by="rsa-2",
            address=self.at.format(2),
        )
        add(
            "other_address",
            "a certificate at another address",
            mismatch,
            address="https://else.example/1.pem",
        )
        nearly = self.at.format(1).replace("https://", "https://else.example/?@", 1)
        add("odd_address", "an address that only looks like its own", mismatch, address=nearly)
        add(
            "not_fetched",
            "a certificate that is not at hand",
            "signing_keys_unavailable",
            address=self.at.format(9),
        )
        add(
            "no_certificate",
            "no certificate at its address",
            mismatch,
            more={"more": {"fetched": {self.at.format(1): "x"}}},
        )
        add("expired", "the certificate has ended", mismatch, time=iso(NOON + YEAR), more={"at": NOON + YEAR})
        code = "" if self.takes_both else mismatch
        add("other_digest", f"signed over {self.digests[1]}", code, digest=self.digests[1])
        add("missing_signature", "no signature", "signature_missing", signature="")
        add(
            "malformed_signature",
            "a signature in no encoding",
            "signature_malformed",
            signature="!not*base64",
        )
        return made


def altered(
    body: bytes, headers: Headers, before: bytes = b"genuine", after: bytes = b"genuime"
) -> tuple[bytes, Headers]:
    kept = [(name, value.replace(before.decode(), after.decode())) for name, value in headers]
    return body.replace(before, after), kept


ARN = "arn:aws:sns:eu-central-1:123456789012:"
CERTIFICATES = {
    "sns": CertificateSender(
        sns,
        f"{ARN}orders",
        f"{ARN}refunds",
        "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{}.pem",
        "sns",
        ("sha1", "sha256"),
        True,
    ),
    "paypal": CertificateSender(
        paypal,
        "1JE4291016473214C",
        "8PT597110X687430L",
        "https://api.paypal.com/v1/notifications/certs/CERT-{}",
        "paypal",
        ("sha256", "sha1"),
        False,
    ),
}
