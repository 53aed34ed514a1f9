"""The senders that are built in: what they are called, and what their presets say."""

from functools import cache

from postern import presets
from postern.core.signatures.handshake import needs_verify_token
from postern.usecases.signatures.views import (
    MistakenSecret,
    PastedSecret,
    Provider,
    SampleCall,
    SecretForm,
    Sender,
)


def names() -> list[str]:
    return presets.names()


def meant(name: str) -> str:
    return presets.meant(name)


@cache
def about(name: str) -> Provider:
    """What its preset says to whoever sets it up."""
    preset = presets.get(name)
    form = preset.secret_form
    return Provider(
        name=preset.name,
        title=preset.title,
        version=preset.version,
        aliases=list(preset.aliases),
        scheme=preset.scheme.to_document(),
        secret=PastedSecret(
            paste=preset.secret.paste,
            where=preset.secret.where,
            form=SecretForm(
                pattern=form.pattern,
                like=form.like,
                unlike=form.unlike,
                others=[
                    MistakenSecret(pattern=pattern, sentence=sentence) for pattern, sentence in form.others
                ],
            ),
        ),
        setup=list(preset.setup),
        needs_public_url=preset.signs_url,
        needs_verify_token=needs_verify_token(preset.scheme.handshake),
        sender=Sender(
            timeout_seconds=_seconds(preset.sender.timeout_seconds),
            retries=preset.sender.retries,
            reactions=preset.sender.reactions,
        ),
        sends_arrays=preset.sends_arrays,
        synchronous_timeout_seconds=_seconds(preset.synchronous_timeout_seconds),
        samples=[
            SampleCall(event=sample.event, title=sample.title, headers=list(sample.headers), body=sample.body)
            for sample in preset.samples
        ],
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
