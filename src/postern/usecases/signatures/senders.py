"""The senders that are built in: what they are called, and what their presets say."""

from functools import cache

from postern import presets
from postern.presets import SampleCall
from postern.usecases.answers import shown
from postern.usecases.signatures.views import PastedSecret, Provider, Sender


def names() -> list[str]:
    return presets.names()


def nearest(name: str) -> list[str]:
    return presets.nearest(name)


@cache
def about(name: str) -> Provider:
    """Returns the sender's preset as it is shown to whoever sets the sender up."""
    preset = presets.get(name)
    return shown(
        Provider,
        preset,
        scheme=preset.scheme.to_document(),
        secret=shown(PastedSecret, preset.secret, called=preset.secret_name, form=preset.secret_form),
        needs_public_url=preset.signs_url,
        needs_verify_token=bool(preset.secret.beside),
        sender=shown(Sender, preset.sender),
    )


def samples_of(name: str) -> list[SampleCall]:
    """The usual events of a built-in sender; none of another one."""
    return list(about(name).samples) if name in presets.names() else []


def page_of(name: str) -> str:
    """Returns the sender's page for webhooks, or an empty text if it has no address that is the same for everybody."""
    return presets.get(name).page if name in presets.names() else ""
