"""A webhook as the path of a call sees it: compiled once when its configuration changes, read by every
call."""

from dataclasses import dataclass, field

from msgspec import Struct

from postern.core.address import Allowlist
from postern.core.calls.content import PAYLOAD_LIMIT, PLAIN, Mapping, TakenBodies
from postern.core.calls.cors import Cors
from postern.core.calls.paths import Path
from postern.core.deliveries.delivery import State
from postern.core.signatures.credential import Credential
from postern.core.signatures.handshake import Handshake
from postern.core.signatures.redact import Mask
from postern.core.webhooks.settings import AcceptedAnswer, AlarmSettings


class DuplicateKey(Struct, frozen=True):
    """Where the key of duplicate protection comes from: the webhook's own choice, else the scheme's id, else
    the body."""

    window_seconds: int
    header: bytes | None = None
    path: Path | None = None


@dataclass(slots=True)
class Webhook:
    id: str
    short_code: str
    name: str
    version: int
    enabled: bool
    credential: Credential
    mapping: Mapping
    mask: Mask
    allowlist: Allowlist | None = None
    cors: Cors | None = None
    handshake: Handshake | None = None
    duplicates: DuplicateKey | None = None
    payload_limit: int = PAYLOAD_LIMIT
    calls_per_second: float = 100.0
    burst: float = 200.0
    answer_timeout: float | None = None
    """Seconds that a caller waits for the workflow's answer; None where the webhook answers at once."""
    held: bool = False
    takes: TakenBodies = PLAIN
    accepted_answer: AcceptedAnswer | None = None
    recording_until: float = 0.0
    """Record Events is armed until then; 0.0 where it is not."""
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    changed_at: float = 0.0
    method: str = "none"
    provider: str = ""
    """Whose scheme signs its calls; empty where none does."""
    secret_ids: dict[str, str] = field(default_factory=dict)
    """The stored secret behind "main" and "second", so that matches are counted where Promote does not lose
    them."""
    allowed_methods: frozenset[str] = field(init=False)

    @property
    def first_state(self) -> State:
        """That of a delivery which is made now."""
        return "held" if self.held else "queued"

    def __post_init__(self) -> None:
        self.allowed_methods = frozenset({"POST"}) | (
            self.handshake.methods if self.handshake else frozenset()
        )
