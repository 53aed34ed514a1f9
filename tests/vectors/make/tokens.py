"""Vectors of senders that send signed tokens (JWT): signed by openssl, with the key set that would be fetched."""

import json
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from signing import HERE, NOON, Message, bad, good, hmac_sha256, pair, vector

BODY = b'{"id":"evt_1","note":"plain"}'
Claims = dict[str, Any]


def text_of(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def token(header: Claims, claims: Claims, sign: Callable[[bytes], bytes]) -> str:
    signed = ".".join(text_of(json.dumps(one).encode()) for one in (header, claims))
    return f"{signed}.{text_of(sign(signed.encode()))}"


@dataclass
class TokenSender:
    header: str
    secret: str
    second: str
    alg: str
    claims: Claims
    signs: dict[str, Callable[[bytes], bytes]]
    """By whom: *main*, *second* where that is another key, and *other*."""
    other_claims: Claims
    """Those of another account, which are genuine there."""
    public_url: str | None = None
    key_id: str | None = None
    second_claims: Claims = field(default_factory=dict)
    fetched: dict[str, str] = field(default_factory=dict)

    def vectors(self) -> list[Claims]:
        made: list[Claims] = []

        def add(
            kind: str,
            name: str,
            code: str,
            sent: list[str],
            matched: str = "main",
            body: bytes = BODY,
            **more: Any,
        ) -> None:
            headers = [("Content-Type", "application/json"), *((self.header, one) for one in sent)]
            expect = bad(code) if code else good(matched)
            extra = {"fetched": self.fetched} if self.fetched else {}
            message = Message(body)
            made.append(
                vector(
                    kind,
                    name,
                    self.secret,
                    message,
                    headers,
                    expect,
                    public_url=self.public_url,
                    more=extra,
                    **more,
                )
            )

        def of(by: str = "main", claims: Claims | None = None, **header: Any) -> list[str]:
            head = {"alg": self.alg, "typ": "JWT", **({"kid": self.key_id} if self.key_id else {}), **header}
            before = "Bearer " if self.header == "Authorization" else ""
            return [before + token(head, self.claims | (claims or {}), self.signs[by])]

        two = {"second_secret": self.second}
        second = of("second", self.second_claims)
        (right,) = of()
        add("valid", "a genuine call", "", [right])
        add("main_of_two", "the main secret while a second is set", "", [right], **two)
        add("second_secret", "the second secret", "", second, "second", **two)
        add("second_secret_not_set", "the second secret where none is set", "signature_mismatch", second)
        add("wrong_secret", "signed by somebody else", "signature_mismatch", of("other"))
        add(
            "other_account",
            "a genuine token of another account",
            "signature_mismatch",
            of(claims=self.other_claims),
        )
        add(
            "other_issuer", "another issuer", "signature_mismatch", of(claims={"iss": "https://else.example"})
        )
        add(
            "unsigned",
            "alg none, and no signature",
            "signature_mismatch",
            [token({"alg": "none"}, self.claims, lambda _: b"")],
        )
        add(
            "stale",
            "received after it has ended",
            "timestamp_expired",
            of(claims={"exp": NOON}),
            at=NOON + 120,
        )
        add("missing_signature", "no token", "signature_missing", [])
        add("malformed_signature", "no token, but a text", "signature_malformed", ["Bearer abc"])
        add("repeated", "two tokens", "signature_malformed", [right, right])
        signed, _, signature = right.rpartition(".")
        other = f"{signed}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
        add("altered_signature", "one letter of the signature is another", "signature_mismatch", [other])
        if "sha256" in self.claims:
            add(
                "altered_body",
                "one letter of the body is another",
                "signature_mismatch",
                [right],
                body=BODY.replace(b"plain", b"plaim"),
            )
        return made


def key_set(*names: str) -> str:
    keys = []
    for name in names:
        command = ["openssl", "rsa", "-in", str(HERE / "keys" / f"{name}.pem"), "-noout", "-modulus"]
        shown = subprocess.run(command, capture_output=True, check=True).stdout.decode().strip()
        modulus = bytes.fromhex(shown.partition("=")[2])
        keys.append(
            {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": name, "n": text_of(modulus), "e": "AQAB"}
        )
    return json.dumps({"keys": keys})


def by_rsa(name: str) -> Callable[[bytes], bytes]:
    sign, _ = pair("rsa", name)
    return lambda content: sign(str(HERE / "keys" / f"{name}.pem").encode(), content)


def by_secret(secret: str) -> Callable[[bytes], bytes]:
    return lambda content: hmac_sha256(secret.encode(), content)


URL = "https://shop.example/hooks/pubsub"
ACCOUNT = {"email": "push@example.iam.gserviceaccount.com", "email_verified": True}
TOKENS = {
    "netlify": TokenSender(
        "X-Webhook-Signature",
        "netlify-jws-secret",
        "netlify-next",
        "HS256",
        {"iss": "netlify", "sha256": sha256(BODY).hexdigest()},
        {
            one: by_secret(text)
            for one, text in (("main", "netlify-jws-secret"), ("second", "netlify-next"), ("other", "x"))
        },
        {"sha256": sha256(b"{}").hexdigest()},
    ),
    "pubsub": TokenSender(
        "Authorization",
        ACCOUNT["email"],
        "next@example.iam.gserviceaccount.com",
        "RS256",
        {
            "iss": "https://accounts.google.com",
            "aud": URL,
            "exp": NOON + 3600,
            "iat": NOON,
            "azp": "1",
            "sub": "1",
            **ACCOUNT,
        },
        {"main": by_rsa("rsa-1"), "second": by_rsa("rsa-1"), "other": by_rsa("rsa-2")},
        {"email": "push@else.iam.gserviceaccount.com"},
        URL,
        "rsa-1",
        {"email": "next@example.iam.gserviceaccount.com"},
        {"https://www.googleapis.com/oauth2/v3/certs": key_set("rsa-1", "rsa-3")},
    ),
}
