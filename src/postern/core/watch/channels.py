"""Channels, which are told of incidents: their addresses, and what each has been told."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, get_args
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

from postern.core.moment import Time
from postern.core.signatures.outgoing import signing_key

ChannelKind = Literal["webhook", "mailto", "slack", "teams", "discord", "ntfy", "telegram"]
AN_ADDRESS = (
    "slack+https://…, teams+https://…, discord+https://…, ntfy+https://…, "
    "telegram+https://…/sendMessage#CHAT, webhook+https://…#whsec_…, or mailto:…"
)
ADDRESSES = f"addresses with a space between, each {AN_ADDRESS}"
SERVER = "smtp://user:password@host:587?from=postern@example.com, or smtps://…; from is optional if the user is an address"
SHORTEST_HIDDEN = 6
"""Characters. A shorter part of an address, like api in a path, is no secret, and many sentences contain it."""

_is_mailbox = re.compile(r"[!-+\--;=?A-~]+@[A-Za-z0-9.-]+").fullmatch


class ChannelState(Struct, frozen=True):
    """The messages of one incident that a channel has got."""

    channel: str
    opened_at: float = 0.0
    closed_at: float = 0.0
    tries: int = 0
    """Failed tries of the message that is due."""
    next_at: float = 0.0
    """When that message is tried again; without a failed try, when the channel is reminded."""
    error: str = ""
    reasons: tuple[str, ...] = ()
    """The reasons that it has heard of (``reasons_to_tell``)."""


class AddedChannel(Struct, frozen=True):
    """A channel that somebody added. It hears of one webhook, of one folder and those inside it, or of everything."""

    id: str
    name: str
    kind: ChannelKind
    webhook_id: str | None
    folder: str | None
    created_at: Time
    created_by: str


@dataclass(frozen=True, slots=True)
class Channel:
    kind: ChannelKind
    host: str
    url: str = field(repr=False)
    """For mail: the recipients. Empty where the address cannot be read."""
    after: str = field(default="", repr=False)
    """After the # of an address: the signing secret, the chat, or the token."""

    place: str = ""
    """Which address of POSTERN_TELL it is, where its kind and host are those of another one, too."""
    added: AddedChannel | None = None
    """None: POSTERN_TELL has it."""

    @property
    def name(self) -> str:
        """The given name, or the kind, host and place. The rest of the address is a secret."""
        if self.added is not None and self.added.name:
            return self.added.name
        return f"{'mail to' if self.kind == 'mailto' else f'{self.kind} at'} {self.host}{self.place}"

    @property
    def key(self) -> str:
        if self.added is not None:
            return self.added.id
        return sha256(f"{self.kind} {self.url}#{self.after}".encode()).hexdigest()[:12]

    def without_secrets(self, text: str) -> str:
        """The text, unless it quotes a part of the address, as some servers do with a request that they do not understand."""
        words = [self.after, *re.split("[/?&=]", self.url.partition(self.host)[2])]
        hidden = any(len(word) >= SHORTEST_HIDDEN and word in text for word in words)
        return "its answer cannot be read" if hidden else text


@dataclass(frozen=True, slots=True)
class MailServer:
    host: str
    port: int
    tls: bool
    sender: str
    username: str = field(repr=False)
    password: str = field(repr=False)


def read_channels(text: str) -> tuple[Channel, ...]:
    """Raises ``ValueError``, which says what addresses look like and quotes none of these."""
    try:
        written = list(map(read_channel, text.split()))
    except ValueError:
        raise ValueError(ADDRESSES) from None
    times = Counter(channel.name for channel in dict.fromkeys(written))
    return tuple(
        replace(
            channel,
            place=f" (address {written.index(channel) + 1} of POSTERN_TELL)"
            if times[channel.name] > 1
            else "",
        )
        for channel in dict.fromkeys(written)
    )


def read_channel(text: str) -> Channel:
    """Raises ``ValueError``."""
    kind, _, rest = text.partition("+")
    if text.startswith("mailto:"):
        recipients = text.removeprefix("mailto:").split(",")
        if not all(map(_is_mailbox, recipients)):
            raise ValueError
        hosts = dict.fromkeys(recipient.rpartition("@")[2] for recipient in recipients)
        return Channel("mailto", ", ".join(hosts), ", ".join(recipients))
    url, _, after = rest.partition("#")
    parts = urlsplit(url)
    usable = (
        parts.scheme in ("https", "http") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    )
    is_text = rest.isascii() and rest.isprintable()
    if kind not in {*get_args(ChannelKind)} - {"mailto"} or not (usable and is_text):
        raise ValueError
    if kind == "telegram" and not after:
        raise ValueError
    if kind == "webhook":
        signing_key(after)
    return Channel(kind, parts.netloc, url, after)  # type: ignore[arg-type]


def read_mail_server(text: str) -> MailServer:
    parts = urlsplit(text)
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    sender = parse_qs(parts.query).get("from", [username])[0]
    usable = parts.scheme in ("smtp", "smtps") and parts.hostname and parts.port != 0 and text.isascii()
    if not usable or not _is_mailbox(sender) or not (username + password).isascii():
        raise ValueError(SERVER)
    tls = parts.scheme == "smtps"
    port = parts.port or (465 if tls else 587)
    return MailServer(str(parts.hostname), port, tls, sender, username, password)
