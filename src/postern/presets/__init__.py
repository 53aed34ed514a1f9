"""The senders Postern knows and the generic scheme: one TOML file each, and the loader. Their sample calls
lie in a file of the same name in ``samples/``, which is read when somebody asks for it.

A preset is data. When a webhook is saved, the preset's scheme is written into it, so that a newer preset never changes how an existing webhook judges its calls.
"""

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert, field, to_builtins

from postern.core.documents import Document
from postern.core.signatures.algorithms import is_pair
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.secret_form import MistakenSecret, SecretForm

GENERIC = "generic"


class Secret(Struct, frozen=True, forbid_unknown_fields=True):
    """The secret that the user pastes. ``pattern`` and ``looks`` describe it; ``mistaken`` lists what people paste instead."""

    paste: str
    where: str
    called: str = ""
    """The name of the secret; empty if it is a public key or a signing secret."""
    beside: str = ""
    """The label of a second text that the sender's handshake needs; empty if it needs none."""
    beside_help: str = ""
    pattern: str = ""
    looks: str = ""
    mistaken: dict[str, str] = field(default_factory=dict)


class Sender(Struct, frozen=True, forbid_unknown_fields=True):
    """The sender's behaviour when it calls. ``timeout_seconds`` is None if no document was found that says it."""

    retries: str
    """``Not known.`` if no document was found."""
    retry_hours: int = 0
    """The time during which it may send a call again; 0 if its documents say nothing, or it is less than an hour."""
    then: str = ""
    """The sender's act on the webhook when all tries have failed. The text follows the sender's name."""
    source: str = ""
    """The documents that say how long it waits, how often it sends again and what it does then."""
    reactions: str = ""
    timeout_seconds: float | None = None


SendAgainKind = Literal["github", "gitlab", "paddle", "resend", "stripe"]
"""There is a function for each in ``usecases/sending_again/senders.py``."""


class SendAgain(Struct, frozen=True, forbid_unknown_fields=True):
    """The way to have this sender send again what it did not deliver."""

    source: str
    """The document that says so."""
    kind: SendAgainKind | None = None
    """None if it cannot be asked by a program."""
    api: str = ""
    account: str = ""
    """The form of the account's name, for people."""
    token: str = ""
    """The kind of token, and the least permission that it needs."""
    by_hand: str | None = None
    """The steps for people, if it cannot be asked by a program."""


class SampleCall(Struct, frozen=True):
    """A call as a sender makes it. Words in braces stand for what differs each time, like {uuid} and {timestamp}."""

    event: str
    title: str
    headers: tuple[tuple[str, str], ...]
    body: str


class Preset(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    version: int
    aliases: tuple[str, ...]
    """Other names people search for: senders that use this one's scheme, products, older names."""
    scheme: SignatureScheme
    secret: Secret
    sender: Sender
    event: tuple[str, ...]
    """The places of the event's name, as ``header:Name`` or ``body:path``. The first one that the call has counts."""
    setup: tuple[str, ...]
    actor: tuple[str, ...] = ()
    """The paths in the body that say who has caused the event: with them people leave out what their own account did."""
    page: str = ""
    """The sender's page for webhooks, if it has one address for everybody."""
    sends_arrays: bool = False
    """The bodies are arrays of events, which are read as the object ``{"items": […]}``."""
    send_again: SendAgain | None = None
    synchronous_timeout_seconds: float | None = None
    """The seconds for which this sender is kept waiting for the workflow's answer."""

    @property
    def signs_url(self) -> bool:
        """The user has to say under which URL the sender knows the webhook, if that is not the one shown."""
        return "{url}" in self.scheme.signed_content

    @property
    def has_public_key(self) -> bool:
        """Returns whether the sender's public key is pasted, which is no secret."""
        return is_pair(self.scheme.algorithm)

    @property
    def secret_name(self) -> str:
        return self.secret.called or ("public key" if self.has_public_key else "signing secret")

    @property
    def secret_form(self) -> SecretForm:
        secret, kind = self.secret, self.secret_name
        return SecretForm(
            secret.pattern,
            f"It looks like a {kind} of {self.title}.",
            f"It does not look like a {kind} of {self.title}"
            + (f": they {secret.looks}." if secret.looks else "."),
            tuple(
                MistakenSecret(pattern, f"This looks like {what}, which is not the {kind}.")
                for pattern, what in secret.mistaken.items()
            ),
        )

    @property
    def samples(self) -> tuple[SampleCall, ...]:
        return _samples(self.name)

    @property
    def identifying_headers(self) -> frozenset[bytes]:
        """Lower-case names of the headers in this sender's calls, by which one of them may be recognised."""
        return frozenset(name.lower().encode() for sample in self.samples for name, _ in sample.headers)


def _read(file: Path) -> Document:
    import tomllib  # commands know the types of this module, and read no preset

    return tomllib.loads(file.read_text("utf-8"))


@cache
def load() -> dict[str, Preset]:
    """Returns every preset by name, in the order of their titles, the generic scheme last."""
    files = Path(__file__).parent.glob("*.toml")
    presets = [_preset(file.stem, _read(file)) for file in files]
    presets.sort(key=lambda preset: (preset.name == GENERIC, preset.title.lower()))
    return {preset.name: preset for preset in presets}


def get(name: str) -> Preset:
    return load()[name]


def names() -> list[str]:
    return list(load())


def event_places(provider: str) -> tuple[str, ...]:
    """The places of the event's name in calls of this sender, or in anybody's (``Preset.event``)."""
    return (load().get(provider) or load()[GENERIC]).event


def problem_of(name: str, secret: str) -> str | None:
    """Returns why the pasted text does not look like a secret of this sender, or None."""
    return load()[name].secret_form.problem(secret) if name in load() else None


def nearest(name: str) -> list[str]:
    """Returns the senders with the most similar names, at most three."""
    called = {
        word.lower(): preset.name
        for preset in load().values()
        for word in (preset.name, preset.title, *preset.aliases)
    }
    near = get_close_matches(name.lower()[:80], called, 3, 0.75)
    return list(dict.fromkeys(called[word] for word in near))


def _preset(file_name: str, document: Document) -> Preset:
    """A file's preset. A mistake in one is ours, so it fails at once and says in which file."""
    try:
        if document["name"] != file_name:
            raise ValueError(f"the name in the file is {document['name']!r}")
        scheme = SignatureScheme.from_document(document["scheme"])
        return convert(document | {"scheme": to_builtins(scheme)}, Preset)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"preset {file_name}.toml: {error}") from error


@cache
def _samples(name: str) -> tuple[SampleCall, ...]:
    try:
        document = _read(Path(__file__).parent / "samples" / f"{name}.toml")
        headers = document.pop("headers")
        return tuple(
            SampleCall(headers=tuple((headers | sample.pop("headers", {})).items()), **sample)
            for sample in document.pop("samples")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"samples/{name}.toml: {error}") from error
