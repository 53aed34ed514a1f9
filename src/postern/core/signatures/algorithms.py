"""The algorithms with which senders sign, and what each proves: a shared secret, a public key, a token or a certificate."""

from typing import Literal, get_args

from msgspec import Struct

Algorithm = Literal[
    "hmac_sha1",
    "hmac_sha256",
    "hmac_sha512",
    "ed25519",
    "ecdsa_p256",
    "rsa_sha256",
    "rsa_sha512",
    "rsa_pss_sha256",
    "jwt_hs256",
    "jwt_rs256",
    "jwt_es256",
    "certificate_sha1",
    "certificate_sha256",
]
LONGEST_TOKEN = 8192
RSA_BITS = range(2048, 8193)
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
Digest = Literal["sha1", "sha256", "sha512"]


class AlgorithmKind(Struct, frozen=True):
    words: str
    signature_words: str
    sizes: range
    """The numbers of bytes that a signature may have."""
    digest: Digest | None = None
    """The digest of an HMAC; None for every other algorithm."""
    in_tokens: str = ""
    """The name that signed tokens have for it; empty for what makes no tokens."""
    by_certificate: bool = False


_RSA = ("an RSA signature", range(256, 1025))
_TOKEN = ("a signed token (JWT)", range(1, LONGEST_TOKEN + 1))
ALGORITHM_KINDS: dict[Algorithm, AlgorithmKind] = {
    "hmac_sha1": AlgorithmKind("HMAC-SHA1", "a SHA-1 digest", range(20, 21), "sha1"),
    "hmac_sha256": AlgorithmKind("HMAC-SHA256", "a SHA-256 digest", range(32, 33), "sha256"),
    "hmac_sha512": AlgorithmKind("HMAC-SHA512", "a SHA-512 digest", range(64, 65), "sha512"),
    "ed25519": AlgorithmKind("Ed25519", "an Ed25519 signature", range(64, 65)),
    "ecdsa_p256": AlgorithmKind("ECDSA (P-256, SHA-256)", "an ECDSA signature (DER)", range(8, 73)),
    "rsa_sha256": AlgorithmKind("RSA with SHA-256", *_RSA),
    "rsa_sha512": AlgorithmKind("RSA with SHA-512", *_RSA),
    "rsa_pss_sha256": AlgorithmKind("RSA-PSS with SHA-256", *_RSA),
    "jwt_hs256": AlgorithmKind("signed token (JWT, HS256)", *_TOKEN, in_tokens="HS256"),
    "jwt_rs256": AlgorithmKind("signed token (JWT, RS256)", *_TOKEN, in_tokens="RS256"),
    "jwt_es256": AlgorithmKind("signed token (JWT, ES256)", *_TOKEN, in_tokens="ES256"),
    "certificate_sha1": AlgorithmKind("RSA, certificate, SHA-1 or SHA-256", *_RSA, by_certificate=True),
    "certificate_sha256": AlgorithmKind("RSA, certificate, SHA-256", *_RSA, by_certificate=True),
}
DIGESTS: dict[Algorithm, Digest] = {
    name: kind.digest for name, kind in ALGORITHM_KINDS.items() if kind.digest
}
"""The digests of the HMAC algorithms."""


def is_shared(algorithm: Algorithm) -> bool:
    """Returns whether a secret is set, with which callers sign."""
    return algorithm in DIGESTS or algorithm == "jwt_hs256"


def is_token(algorithm: Algorithm) -> bool:
    return bool(ALGORITHM_KINDS[algorithm].in_tokens)


def is_certificate(algorithm: Algorithm) -> bool:
    return ALGORITHM_KINDS[algorithm].by_certificate


def is_pair(algorithm: Algorithm) -> bool:
    """Returns whether the sender's public key is set."""
    return not (algorithm in DIGESTS or is_token(algorithm) or is_certificate(algorithm))
