"""The senders Postern knows and the generic scheme: one TOML file each, and the loader. What their calls look like
lies in a file of the same name in ``samples/`` and is read when somebody asks for it.

A preset is data. When a webhook is saved, the preset's scheme is written into it, so that a newer preset never changes how an existing webhook judges its calls.
"""

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from postern.core.documents import Document
from postern.core.signatures.keys import is_pair
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.secret_form import MistakenSecret, SecretForm

GENERIC = "generic"


class Secret(Struct, frozen=True):
    """What the user pastes as the secret, and where that is to be found at the sender. ``pattern`` and ``looks`` say what
    each of them looks like, ``mistaken`` what is pasted in its place."""

    paste: str
    where: str
    called: str = ""
    """Empty where it is a public key or a signing secret."""
    beside: str = ""
    """What the sender's handshake needs besides it, as a label; empty where it needs nothing."""
    beside_help: str = ""
    pattern: str = ""
    looks: str = ""
    mistaken: dict[str, str] = field(default_factory=dict)


class Sender(Struct, frozen=True):
    """How this sender behaves when it calls. ``timeout_seconds`` is None where it does not say."""

    retries: str
    retry_hours: int = 0
    """For how long it may send a call again; 0 where it does not say, or sends none again."""
    then: str = ""
    """What it does with the webhook where all tries have failed, as what follows its name."""
    source: str = ""
    """Where its documents say both."""
    reactions: str = ""
    timeout_seconds: float | None = None


SendAgainKind = Literal["github", "gitlab", "paddle", "resend", "stripe"]
"""There is a function for each in ``usecases/sending_again/senders.py``."""


class SendAgain(Struct, frozen=True):
    """How this sender is asked to send again what it did not deliver."""

    source: str
    """Where its documents say so."""
    kind: SendAgainKind | None = None
    """None where it cannot be asked by a program."""
    api: str = ""
    account: str = ""
    """How the account is written, for people."""
    token: str = ""
    """Which token, and the least that it has to be allowed."""
    by_hand: str | None = None
    """What to do where it has no button for programs."""


class SampleCall(Struct, frozen=True):
    """A call as a sender makes it. Words in braces stand for what differs each time, like {uuid} and {timestamp}."""

    event: str
    title: str
    headers: tuple[tuple[str, str], ...]
    body: str


class Preset(Struct, frozen=True):
    name: str
    title: str
    version: int
    aliases: tuple[str, ...]
    """Other names people search for: senders that use this one's scheme, products, older names."""
    scheme: SignatureScheme
    secret: Secret
    sender: Sender
    event: tuple[str, ...]
    """Where a call says what has happened, as ``header:Name`` or ``body:path``; the first that is there counts."""
    setup: tuple[str, ...]
    page: str = ""
    """Where at the sender webhooks are made, where that is one address for everybody."""
    sends_arrays: bool = False
    """Its bodies are arrays of events, which are read as the object ``{"items": […]}``."""
    send_again: SendAgain | None = None
    synchronous_timeout_seconds: float | None = None
    """How long a caller may be kept waiting for the workflow's answer before this sender hangs up."""

    @property
    def signs_url(self) -> bool:
        """The user has to say under which URL the sender knows the webhook, where that is not the one
        shown."""
        return "{url}" in self.scheme.signed_content

    @property
    def has_public_key(self) -> bool:
        """What is pasted is the sender's public key, which is no secret."""
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


class UnknownPreset(LookupError):
    """There is no preset of this name."""


def _read(file: Path) -> Document:
    import tomllib  # commands know the types of this module, and read no preset

    return tomllib.loads(file.read_text("utf-8"))


@cache
def load() -> dict[str, Preset]:
    """Every preset by name, in the order of their titles, the generic scheme last."""
    files = Path(__file__).parent.glob("*.toml")
    presets = [_preset(file.stem, _read(file)) for file in files]
    presets.sort(key=lambda preset: (preset.name == GENERIC, preset.title.lower()))
    return {preset.name: preset for preset in presets}


def get(name: str) -> Preset:
    try:
        return load()[name]
    except KeyError:
        raise UnknownPreset(f"there is no preset {name!r}") from None


def names() -> list[str]:
    return list(load())


def problem_of(name: str, secret: str) -> str | None:
    """Why what was pasted does not look like a secret of this sender, where that can be said."""
    return load()[name].secret_form.problem(secret) if name in load() else None


def meant(name: str) -> str:
    """Which sender was meant by a name that is none, as a question; nothing where none is called like that."""
    called = {
        word.lower(): one.name for one in load().values() for word in (one.name, one.title, *one.aliases)
    }
    near = get_close_matches(name.lower()[:80], called, 1, 0.75)
    return f"did you mean {called[near[0]]}? " if near else ""


def _preset(file_name: str, document: Document) -> Preset:
    """A file's preset. A mistake in one is ours, not the user's, so it fails at once and says in which
    file."""
    try:
        if document["name"] != file_name:
            raise ValueError(f"the name in the file is {document['name']!r}")
        return Preset(
            name=document.pop("name"),
            title=document.pop("title"),
            version=document.pop("version"),
            aliases=tuple(document.pop("aliases")),
            scheme=SignatureScheme.from_document(document.pop("scheme")),
            secret=Secret(**document.pop("secret")),
            sender=Sender(**document.pop("sender")),
            send_again=SendAgain(**again) if (again := document.pop("send_again", None)) else None,
            event=tuple(document.pop("event")),
            setup=tuple(document.pop("setup")),
            **document,
        )
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
