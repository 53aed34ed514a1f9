"""From a stored configuration to the webhook that calls meet: everything parsed, keyed and hashed once."""

from typing import Any

from postern.core.address import Allowlist
from postern.core.calls.cors import Cors
from postern.core.calls.mapping import Mapping
from postern.core.calls.paths import parse_path
from postern.core.calls.redact import Mask
from postern.core.signatures.credential import Credential, NoCredential, TokenCredential
from postern.core.signatures.handshake import Handshake
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.stored import StoredSecret, StoredWebhook
from postern.core.webhooks.webhook import DuplicateKey, Webhook
from postern.usecases.webhooks.configuration import mapped_paths

DEFAULT_ANSWER_TIMEOUT = 25.0


def compile_webhook(stored: StoredWebhook) -> Webhook:
    document = stored.document
    credential = credential_of(document, stored.secrets)
    cors = document["cors"]
    rate = document["rateLimit"]
    return Webhook(
        id=stored.id,
        short_code=stored.short_code,
        name=stored.name,
        version=stored.version,
        enabled=stored.enabled,
        held=stored.held,
        recording_until=stored.armed_until or 0.0,
        credential=credential,
        mapping=Mapping(mapped_paths(document)),
        mask=Mask(credential),
        allowlist=Allowlist.parse(document["ipAllowlist"]) if document["ipAllowlist"] else None,
        handshake=_handshake(credential, stored.secrets),
        cors=Cors(tuple(cors["origins"])) if cors["enabled"] else None,
        duplicates=_duplicates(document["duplicateProtection"]),
        payload_limit=document["payloadLimitBytes"],
        calls_per_second=rate["callsPerSecond"],
        burst=rate["burst"],
        answer_timeout=answer_timeout(document),
        wraps_arrays=bool(document["resolved"].get("sendsArrays")),
        method=document["authentication"]["method"],
        secret_ids={field: secret.id for field, secret in stored.secrets.items()},
    )


def answer_timeout(document: dict[str, Any]) -> float | None:
    setting = document["synchronousResponse"]
    if not setting["enabled"]:
        return None
    return (
        setting["timeoutSeconds"]
        or document["resolved"].get("answerTimeoutSeconds")
        or DEFAULT_ANSWER_TIMEOUT
    )


def credential_of(document: dict[str, Any], secrets: dict[str, StoredSecret]) -> Credential:
    """Raises ``ValueError`` where a secret is not what the scheme needs."""
    authentication = document["authentication"]
    if authentication["method"] == "none":
        return NoCredential()
    second = secrets["second"].value if "second" in secrets else None
    if authentication["method"] == "hmac":
        return SignatureCredential(
            SignatureScheme.from_document(document["resolved"]["scheme"]),
            secrets["main"].value,
            second,
            public_url=authentication["publicUrl"],
            tolerance_seconds=authentication["toleranceSeconds"],
            require_timestamp_and_digest=authentication["requireTimestampAndDigest"],
        )
    return TokenCredential(
        authentication["placement"],
        secrets["main"].value,
        second,
        header_name=authentication["headerName"],
        username=authentication["username"] or "",
        parameter_name=authentication["parameterName"],
    )


def _handshake(credential: Credential, secrets: dict[str, StoredSecret]) -> Handshake | None:
    if not isinstance(credential, SignatureCredential) or credential.scheme.handshake == "none":
        return None
    verify_token = secrets.get("verifyToken")
    return Handshake(
        credential.scheme.handshake,
        verify_token=verify_token.value if verify_token else None,
        sign=credential.sign,
    )


def _duplicates(setting: dict[str, Any]) -> DuplicateKey | None:
    if not setting["enabled"]:
        return None
    key: str = setting["key"] or ""
    if key.lower().startswith("header:"):
        return DuplicateKey(setting["windowSeconds"], header=key[7:].lower().encode())
    return DuplicateKey(setting["windowSeconds"], path=parse_path(key.removeprefix("body:")) if key else None)
