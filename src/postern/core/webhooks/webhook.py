"""A webhook as calls meet it: compiled once when its configuration changes, read by every call."""

from dataclasses import dataclass, field
from hashlib import sha256

from msgspec import Struct

from postern.core.address import Allowlist
from postern.core.calls.content import PAYLOAD_LIMIT, PLAIN, Mapping, Payload, TakenBodies
from postern.core.calls.cors import Cors
from postern.core.calls.paths import Path, walk_members
from postern.core.deliveries.delivery import DeliveryState, StartAgain
from postern.core.signatures.credential import Credential, VerifiedCall
from postern.core.signatures.handshake import Handshake
from postern.core.signatures.redact import Mask
from postern.core.webhooks.conditions import Conditions
from postern.core.webhooks.settings import AcceptedAnswer, AlarmSettings
from postern.core.webhooks.target import OwnTarget
from postern.core.webhooks.turns import TurnRules


class DuplicateKey(Struct, frozen=True):
    """The key of duplicate protection: what the webhook's owner chose, else the sender's delivery id, else the body."""

    window_seconds: int
    header: bytes | None = None
    path: Path | None = None

    def key_of(self, verified: VerifiedCall, payload: Payload, is_element: bool) -> tuple[bytes, str]:
        """The key, and where it was found. ``is_element``: the call is one element of an array."""
        body = verified.call.body
        if self.header is not None and (own := verified.call.first_header(self.header)):
            name = self.header.decode("latin-1")
            if is_element:  # all elements of one array have the same headers
                return _digest(b"header", own, body), f"the header {name} and the element"
            return _digest(b"header", own), f"the header {name}"
        if self.path is not None:
            value = walk_members(payload.members, self.path)
            if value is not None:
                return _digest(b"path", value), "the configured path in the body"
        if self.header is None and self.path is None and verified.delivery_id:
            if verified.delivery_id_signed:
                return _digest(b"id", verified.delivery_id), "the sender's delivery id"
            # An id that is not signed is not enough: anybody who saw one genuine call could send it again under
            # another id, or take the id of a later call.
            key = _digest(b"id", verified.delivery_id, sha256(body).digest())
            return key, "the sender's delivery id and the body"
        return _digest(b"body", body), "the body"


def _digest(*parts: bytes) -> bytes:
    return sha256(b"\0".join(parts)).digest()


@dataclass(slots=True)
class Webhook:
    id: str
    addresses: list[str]
    """The ends of the URLs at which calls find it."""
    name: str
    version: int
    enabled: bool
    credential: Credential
    mapping: Mapping
    mask: Mask
    allowlist: Allowlist | None = None
    cors: Cors | None = None
    handshake: Handshake | None = None
    conditions: Conditions | None = None
    duplicates: DuplicateKey | None = None
    payload_limit: int = PAYLOAD_LIMIT
    calls_per_second: float = 100.0
    burst: float = 200.0
    answer_timeout: float | None = None
    """Seconds that a caller waits for the workflow's answer; None if the webhook answers at once."""
    held: bool = False
    target: OwnTarget | None = None
    lane: str = ""
    """The lane of a delivery that is made now."""
    takes: TakenBodies = PLAIN
    accepted_answer: AcceptedAnswer | None = None
    turns: TurnRules | None = None
    recording_until: float = 0.0
    """Until then Record Events is armed; 0.0 if it is not."""
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    changed_at: float = 0.0
    method: str = "none"
    provider: str = ""
    """The sender whose scheme signs the calls; empty if none does."""
    secret_ids: dict[str, str] = field(default_factory=dict)
    """The ids of the stored secrets "main" and "second". Matches are counted by id, because Promote renames a secret."""
    allowed_methods: frozenset[str] = field(init=False)

    @property
    def first_state(self) -> DeliveryState:
        """The state of a delivery that is made now."""
        return "held" if self.held else "queued"

    def asked_turn(self, turn: str | None) -> str | None:
        """The turn of a delivery that a person has asked for. They want this call, and no newer one instead."""
        return turn if self.turns is not None and self.turns.quiet is None else None

    def started_again(self, invocation_id: str, payload: Payload, fields: dict[str, str]) -> StartAgain:
        turn = None if self.turns is None else self.asked_turn(self.turns.of(payload, fields)[0])
        return StartAgain(invocation_id, fields, self.first_state, self.lane, turn)

    def __post_init__(self) -> None:
        self.allowed_methods = frozenset({"POST"}) | (
            self.handshake.methods if self.handshake else frozenset()
        )
