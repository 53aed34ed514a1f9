"""The senders that are built in: what they are called, and what their presets say."""

from functools import cache

from postern import presets
from postern.presets import SampleCall
from postern.usecases.answers import shown
from postern.usecases.signatures.views import PastedSecret, Provider, Sender


def names() -> list[str]:
    return presets.names()


def meant(name: str) -> str:
    return presets.meant(name)


@cache
def about(name: str) -> Provider:
    """What its preset says to whoever sets it up."""
    preset = presets.get(name)
    return shown(
        Provider,
        preset,
        scheme=preset.scheme.to_document(),
        secret=shown(PastedSecret, preset.secret, called=preset.secret_name, form=preset.secret_form),
        needs_public_url=preset.signs_url,
        needs_verify_token=bool(preset.secret.beside),
        sender=shown(Sender, preset.sender, timeout_seconds=_seconds(preset.sender.timeout_seconds)),
        synchronous_timeout_seconds=_seconds(preset.synchronous_timeout_seconds),
    )


def samples_of(name: str) -> list[SampleCall]:
    """The usual events of a built-in sender; none of another one."""
    return list(about(name).samples) if name in presets.names() else []


def page_of(name: str) -> str:
    """Where at the sender webhooks are made; empty where that is not one address for everybody."""
    return presets.get(name).page if name in presets.names() else ""


def _seconds(number: float | None) -> float | None:
    """A file may have it as a whole number; the answer always has it as 10.0."""
    return None if number is None else float(number)
