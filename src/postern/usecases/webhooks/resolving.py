"""Writes a preset into a webhook when that is saved: a newer one counts only when the owner has accepted the difference."""

from postern import presets
from postern.core.problems import invalid
from postern.core.signatures.scheme import SignatureScheme
from postern.core.webhooks import settings
from postern.core.webhooks.settings import Resolved
from postern.usecases.webhooks.requests import SignatureAuthentication
from postern.usecases.webhooks.views import PresetUpdate, SchemeChange


def resolved(authentication: SignatureAuthentication, saved: Resolved | None = None) -> Resolved:
    """``saved``: what is stored, if the sender stays the same."""
    how: settings.SignatureAuthentication = authentication.setting()
    given = how.scheme
    if how.provider == "custom":
        return Resolved(scheme=SignatureScheme.from_document(given or {}))
    present = presets.get(how.provider)
    if saved is not None and authentication.preset_version in (None, saved.preset_version):
        kept = saved
    elif authentication.preset_version not in (None, present.version):
        raise invalid("authentication.presetVersion", f"the present version is {present.version}")
    else:
        kept = Resolved(
            scheme=present.scheme,
            preset_version=present.version,
            answer_timeout_seconds=present.synchronous_timeout_seconds,
            sends_arrays=present.sends_arrays,
        )
    if given is not None and given != scheme_of(kept).to_document():
        raise invalid("authentication.scheme", "belongs to the provider custom; a preset brings its own")
    return kept


def scheme_of(resolved: Resolved) -> SignatureScheme:
    if resolved.scheme is None:
        raise ValueError("the stored settings lack the signature scheme")
    return resolved.scheme


def preset_update(provider: str, saved: Resolved) -> PresetUpdate | None:
    """The changes that the present version of the preset would make. None if that version is saved, or the scheme is custom."""
    if provider == "custom":
        return None
    present = presets.get(provider)
    if present.version == saved.preset_version:
        return None
    # Fields that a newer version of the program has added have their defaults in a saved scheme.
    now = present.scheme.to_document()
    changes = [
        SchemeChange(field=name, saved=value, present=now[name])
        for name, value in scheme_of(saved).to_document().items()
        if now[name] != value
    ]
    if saved.sends_arrays != present.sends_arrays:
        was, is_now = saved.sends_arrays, present.sends_arrays
        changes.append(SchemeChange(field="sendsArrays", saved=was, present=is_now))
    return PresetUpdate(version=present.version, changes=changes)
