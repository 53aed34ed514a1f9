"""A preset is written into the webhook when it is saved: a newer preset never changes how a live webhook
authenticates until its owner has seen the difference and accepted it."""

from typing import Any

from postern import presets
from postern.core.problems import FieldError, Refused
from postern.core.signatures import scheme as schemes
from postern.core.signatures.scheme import SignatureScheme


def resolved(authentication: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a call is judged by, besides the settings. ``before`` is the saved document where the sender stays
    the same."""
    if authentication["method"] != "hmac":
        return {}
    given, authentication["scheme"] = authentication.get("scheme"), None
    wanted_version = authentication.pop("presetVersion", None)
    if authentication["provider"] == "custom":
        if given is None:
            raise Refused(
                "invalid_request",
                errors=[FieldError("authentication.scheme", "is required for a custom scheme")],
            )
        errors = [
            FieldError(f"authentication.scheme.{one.field}", one.message) for one in schemes.problems(given)
        ]
        if errors:
            raise Refused("invalid_request", errors=errors)
        authentication["scheme"] = given
        return {"scheme": SignatureScheme.from_document(given).to_document()}
    if errors := provider_errors(authentication["provider"]):
        raise Refused("invalid_request", errors=errors)
    present = presets.resolve(authentication["provider"])
    version = present.pop("presetVersion")
    present.pop("preset")
    saved = before["resolved"] if before is not None else None
    if saved is not None and wanted_version in (None, saved.get("presetVersion")):
        kept: dict[str, Any] = saved
    elif wanted_version not in (None, version):
        raise Refused(
            "invalid_request",
            errors=[FieldError("authentication.presetVersion", f"the present version is {version}")],
        )
    else:
        sender = presets.about(authentication["provider"])
        kept = {
            "scheme": present,
            "presetVersion": version,
            "answerTimeoutSeconds": sender["synchronousTimeoutSeconds"],
            "sendsArrays": sender["sendsArrays"],
        }
    if given is not None and given != kept["scheme"]:
        raise Refused(
            "invalid_request",
            errors=[
                FieldError("authentication.scheme", "belongs to the provider custom; a preset brings its own")
            ],
        )
    return kept


def provider_errors(provider: str) -> list[FieldError]:
    known = [*presets.names(), "custom"]
    return (
        []
        if provider in known
        else [FieldError("authentication.provider", f"choose one of: {', '.join(known)}")]
    )


def preset_update(document: dict[str, Any]) -> dict[str, Any] | None:
    """What taking over the present version of the preset would change; None where it is the saved one, or
    custom."""
    provider = document["authentication"]["provider"]
    if provider == "custom":
        return None
    present = presets.resolve(provider)
    if present["presetVersion"] == document["resolved"]["presetVersion"]:
        return None
    # Read and written again: what a newer version added has its default then, and is no change where it still
    # has it.
    saved = SignatureScheme.from_document(document["resolved"]["scheme"]).to_document()
    changes = [
        {"field": name, "saved": value, "present": present[name]}
        for name, value in saved.items()
        if present[name] != value
    ]
    return {"version": present["presetVersion"], "changes": changes}


def body_is_signed(document: dict[str, Any]) -> bool:
    scheme = SignatureScheme.from_document(document["resolved"]["scheme"])
    return scheme.signs_body or document["authentication"]["requireTimestampAndDigest"]
