"""What the use cases need from the world. Stores and engines fit these shapes without importing them."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from postern.core.access.accounts import ApiKey, Session, User
from postern.core.access.audit import AuditEntry
from postern.core.access.idempotency import SeenRequest
from postern.core.answer import WorkflowResponse
from postern.core.calls.call import Headers
from postern.core.deliveries.delivery import EngineHealth, Run, Started, State, Trigger, Workflow
from postern.core.deliveries.replay import Replay
from postern.core.history.invocation import (
    Delivery,
    Entry,
    HistoryFilter,
    HistoryPage,
    Invocation,
    Receipt,
    StoreUnavailable,
)
from postern.core.signatures.diagnosis.diagnose import Known
from postern.core.webhooks.stored import StoredWebhook, Tally
from postern.usecases.store_ports import RetentionStore, SampleStore, ScheduleStore, VolumeStore


class Engine(Protocol):
    """The workflow engine. It runs the automations; the gateway only starts them.

    ``start`` is idempotent on the trigger's key. It raises ``EngineUnavailable`` (the delivery backs off and
    comes back) or ``EngineRejected`` (the delivery has failed; it can be replayed). ``health`` never raises,
    and neither does ``close``.
    """

    name: str

    async def open(self) -> None:
        """Get ready to be asked. Returns at once: an engine that is not there yet is *unavailable*, not a
        failed start."""
        ...

    async def start(self, trigger: Trigger) -> Started: ...

    async def ended(self, key: str) -> Literal["completed", "failed"] | WorkflowResponse:
        """Wait until every run of this delivery has ended, or until the engine itself brings the answer.

        Asked only for a synchronous call, while its caller waits.
        """
        ...

    async def health(self) -> EngineHealth: ...

    async def workflows(self) -> list[Workflow] | None:
        """The workflows the engine knows, or None where an engine cannot tell."""
        ...

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        """The newest runs (of one delivery), or None where an engine cannot tell."""
        ...

    async def forget(self, keys: list[str]) -> None:
        """Delete the engine's own copies of these deliveries' payloads, as retention does with ours."""
        ...

    async def close(self) -> None: ...


class WebhookStore(Protocol):
    """Secrets travel beside the document, by field; None removes one, and what is not named stays."""

    async def create(
        self, webhook: StoredWebhook, changes: dict[str, bytes | None], note: AuditEntry
    ) -> None: ...

    async def update(
        self,
        webhook: StoredWebhook,
        seen_version: int,
        changes: dict[str, bytes | None],
        note: AuditEntry,
        promote: bool = False,
    ) -> bool: ...

    async def delete(self, webhook_id: str, now: float, note: AuditEntry) -> bool: ...

    async def get(self, webhook_id: str) -> StoredWebhook | None: ...

    async def page(
        self, limit: int, before: str | None = None, search: str | None = None
    ) -> list[StoredWebhook]: ...

    async def changed_since(self, epoch: int) -> tuple[int, list[StoredWebhook]]: ...

    async def capture(self, webhook_id: str, secret: bytes, now: float) -> None:
        """Keep what a sender announced as its secret, for the owner to accept or not."""
        ...

    async def tallies(self, webhook_ids: list[str]) -> dict[str, dict[str, Tally]]: ...

    async def reseal(self, limit: int = 500) -> tuple[int, int]: ...


class DeliveryStore(Protocol):
    """Every method that writes returns when it is on disk, or raises ``StoreUnavailable`` and has changed
    nothing."""

    async def claim(self, now: float, lease: float, limit: int) -> list[Delivery]: ...

    async def admit(
        self,
        invocation: Invocation,
        fields: dict[str, str],
        now: float,
        state: State,
        duplicate_key: bytes | None,
        duplicate_until: float,
        note: AuditEntry,
    ) -> Delivery | str | None:
        """Start a call that was rejected once. A text names the invocation that came in its place; None: it
        has a delivery."""
        ...

    async def release(self, now: float, lease: float) -> int: ...

    async def unhold(self, webhook_id: str, state: State, now: float, limit: int) -> int: ...

    async def held(self, webhook_ids: list[str]) -> dict[str, int]: ...

    async def due_sizes(self, now: float, limit: int) -> list[int]: ...

    async def started(self, delivery: Delivery, started: Started, now: float) -> None: ...

    async def again(self, delivery: Delivery, next_at: float, detail: str, now: float) -> None: ...

    async def failed(self, delivery: Delivery, detail: str, now: float) -> None: ...

    async def replay(
        self,
        invocation_id: str,
        fields: dict[str, str],
        now: float,
        state: State,
        sample: bytes | None = None,
        note: AuditEntry | None = None,
    ) -> Delivery:
        """The note is completed with the delivery's key."""
        ...

    async def respond(self, key: str, response: WorkflowResponse, now: float, elsewhere: bool = True) -> bool:
        """``elsewhere``: the caller may be waiting in another process, which is woken."""
        ...

    async def close_slot(self, key: str, answer_code: str) -> bool: ...

    async def get(self, key: str) -> Delivery | None: ...

    async def backlog(self, now: float) -> tuple[int, float]: ...

    async def in_trouble(self, webhook_ids: list[str], since: float) -> dict[str, int]: ...


class HistoryStore(Protocol):
    async def page(self, wanted: HistoryFilter, limit: int, before: str | None = None) -> HistoryPage: ...

    async def get(self, invocation_id: str) -> tuple[Invocation, list[Delivery]] | None: ...

    async def some(self, invocation_ids: list[str]) -> list[tuple[Invocation, list[Delivery]]]:
        """As on a page of history: without bodies, each with its deliveries."""
        ...

    async def many(self, invocation_ids: list[str]) -> dict[str, Invocation]: ...

    async def same_body(self, invocation: Invocation) -> str | None:
        """A later accepted call of the same webhook with the same body: the sender's own retry."""
        ...


class Fetched(Protocol):
    """What a source answered."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def body(self) -> bytes: ...

    def header(self, name: str) -> str | None: ...

    def retry_after(self, now: float) -> float | None: ...


class FetchTrouble(Exception):
    """No answer was received. The detail is for the user who configured the URL."""

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status


class Fetch(Protocol):
    """Get a URL that a user typed: only from where the gateway may connect, bounded in time and size. Raises
    ``FetchTrouble``."""

    async def __call__(
        self, url: str, *, headers: Mapping[str, str], timeout: float, max_bytes: int
    ) -> Fetched: ...


class AccessStore(Protocol):
    async def add_key(self, key: ApiKey, secret: str, note: AuditEntry | None = None) -> None: ...

    async def key(self, secret: str) -> ApiKey | None: ...

    async def keys(self) -> list[ApiKey]: ...

    async def delete_key(self, key_id: str, note: AuditEntry | None = None) -> bool: ...

    async def used(self, key_id: str, now: float) -> None: ...


class PeopleStore(Protocol):
    """Users and their sessions. What takes an audit entry writes it in the same transaction."""

    async def add(self, user: User, note: AuditEntry | None) -> bool:
        """False when the name is taken."""
        ...

    async def users(self) -> list[User]: ...

    async def user(self, user_id: str) -> User | None: ...

    async def named(self, name: str) -> User | None: ...

    async def change(self, user: User, note: AuditEntry, end_sessions_but: str | None = None) -> bool:
        """False when no admin would be left. A session id (or "" for none of them) is the only one that
        survives."""
        ...

    async def delete(self, user_id: str, note: AuditEntry) -> bool:
        """With its sessions. False when no admin would be left."""
        ...

    async def rehash(self, user_id: str, password_hash: str) -> None: ...

    async def sign_in(
        self, session: Session, secret: str, gone_before: float, note: AuditEntry | None
    ) -> None: ...

    async def session(self, secret: str) -> tuple[Session, User] | None: ...

    async def sessions(self, user_id: str | None = None) -> list[tuple[Session, User]]: ...

    async def seen(self, session_id: str, now: float) -> None: ...

    async def end(self, session_id: str, note: AuditEntry | None) -> bool: ...


class AuditStore(Protocol):
    async def write(self, note: AuditEntry) -> None: ...

    async def page(
        self, limit: int, before: str | None = None, subject: str | None = None
    ) -> list[AuditEntry]: ...


class IdempotencyStore(Protocol):
    async def begin(
        self, actor: str, key: str, request: bytes, now: float, until: float
    ) -> SeenRequest | None: ...

    async def finish(self, actor: str, key: str, answer: bytes, until: float) -> None: ...

    async def forget(self, actor: str, key: str) -> None: ...

    async def reseal(self) -> int: ...


class ReplayStore(Protocol):
    """Replays of many. Whoever holds the lease goes on with one, and each step is all or nothing."""

    async def count(self, wanted: HistoryFilter, most: int) -> int: ...

    async def add(self, replay: Replay, note: AuditEntry) -> None: ...

    async def get(self, replay_id: str) -> Replay | None: ...

    async def page(self, limit: int, before: str | None = None) -> list[Replay]: ...

    async def begin(self, replay_id: str, now: float, note: AuditEntry) -> bool: ...

    async def end(
        self, replay_id: str, state: str, now: float, note: AuditEntry | None = None, error: str = ""
    ) -> bool: ...

    async def claim(self, now: float, lease: float) -> Replay | None: ...

    async def next_of(self, replay: Replay, limit: int) -> tuple[list[str], str | None]:
        """The next invocations, and up to where that was a look at everything; None there when it was the
        last of them."""
        ...

    async def step(
        self,
        replay: Replay,
        starts: list[tuple[str, dict[str, str], State]],
        skipped: int,
        position: str,
        now: float,
        lease: float,
    ) -> bool:
        """Queue these deliveries and move on, in one commit. False: somebody else did, or it was cancelled;
        then nothing was done."""
        ...


class Store(Protocol):
    @property
    def webhooks(self) -> WebhookStore: ...

    @property
    def deliveries(self) -> DeliveryStore: ...

    @property
    def history(self) -> HistoryStore: ...

    @property
    def samples(self) -> SampleStore: ...

    @property
    def retention(self) -> RetentionStore: ...

    @property
    def schedules(self) -> ScheduleStore: ...

    @property
    def access(self) -> AccessStore: ...

    @property
    def people(self) -> PeopleStore: ...

    @property
    def audit(self) -> AuditStore: ...

    @property
    def idempotency(self) -> IdempotencyStore: ...

    @property
    def replays(self) -> ReplayStore: ...

    @property
    def volumes(self) -> VolumeStore: ...

    @property
    def waiting(self) -> int:
        """How many writes are not on disk yet."""
        ...

    def record(self, entry: Entry, told: Callable[[Receipt | StoreUnavailable], None]) -> None:
        """Tells, in the event loop, when the entry is on disk, or that it is not, and then nothing of it
        is."""

    async def listen(self, hear: Callable[[str], None]) -> None:
        """Tell ``hear`` what other processes say, as long as this one serves: `waking.py` knows the words."""
        ...

    async def trouble(self) -> str | None:
        """Why calls cannot be stored now, or None."""
        ...


class PresetShelf(Protocol):
    """The built-in signature schemes, as documents."""

    def names(self) -> list[str]: ...

    def resolve(self, name: str) -> dict[str, Any]: ...

    def about(self, name: str) -> Mapping[str, Any]: ...

    def load(self) -> Mapping[str, Known]: ...
