"""The messages between the gateway and the engine process, sent over a socket pair: MessagePack, each frame behind
its length."""

import struct
from collections.abc import Callable

import msgspec

from postern.core.deliveries.delivery import End, Run, Started, Workflow

LARGEST = 64 * 1024 * 1024
LENGTH = struct.Struct(">I")
BEAT_EVERY = 1.0
FILE_LOST = 4  # the process's exit status when its file was taken away
IN_USE = 3  # the process's exit status when another one has the data directory


class SetupFrame(msgspec.Struct, kw_only=True):
    """The engine process's settings, given as JSON on its command line."""

    file: str
    workflows: str
    keep_seconds: float
    at_once: int
    hangs_after: float
    """Seconds without a heartbeat after which it is ended and started again."""
    log: str
    reports_runs: bool = False
    """Each run's end is reported with ``RunOver``, and no line written about one that failed."""
    socket: int = -1
    after_crash: bool = False
    """The process before it was ended by what a workflow did, and not from outside."""


class BrokenFrame(msgspec.Struct):
    """A workflow file that cannot be loaded as it is now."""

    sentence: str
    error: str
    line: str


# --- from the gateway -------------------------------------------------------------------------------------------------


class Begin(msgspec.Struct, tag="begin"):
    """Sent first: what was loaded last of each workflow file, by its path, for one that cannot be loaded now."""

    last_good: dict[str, bytes]


class Start(msgspec.Struct, tag="start"):
    id: int
    key: str
    webhook_id: str
    variables: dict[str, str]
    payload: bytes
    deadline: float | None
    """The time until which a caller waits for the answer, if one does."""


class AskEnds(msgspec.Struct, tag="ends"):
    id: int
    keys: list[str]


class Runs(msgspec.Struct, tag="runs"):
    id: int
    limit: int
    key: str | None


class Forget(msgspec.Struct, tag="forget"):
    id: int
    keys: list[str]


class AnsweredFrame(msgspec.Struct, tag="answered"):
    """The reply to an ``AnswerFrame``: ``taken`` says whether it was the first, ``refused`` why it is not valid, and
    ``again`` that the gateway cannot store it now."""

    id: int
    taken: bool = False
    refused: str = ""
    again: bool = False


class Stop(msgspec.Struct, tag="stop"):
    """Finish what is running for at most this many seconds, then end."""

    grace: float


# --- from the engine process ------------------------------------------------------------------------------------------


class Ready(msgspec.Struct, tag="ready"):
    """Sent once, when the engine can be asked, or when it cannot because of the workflow files: then there are only broken
    ones."""

    workflows: list[Workflow] = []
    files: list[str] = []
    broken: list[BrokenFrame] = []
    missing: bool = False
    """Some workflows are, for their files cannot be loaded."""
    sources: dict[str, bytes] = {}


class Done(msgspec.Struct, tag="done", omit_defaults=True):
    """The reply to the question of this id: the one field that belongs to it, or what failed."""

    id: int
    started: Started | None = None
    ends: dict[str, End | None] = {}
    """By delivery: None while a run is not over. Deliveries without a run are missing."""
    runs: list[Run] = []
    failed: str = ""


class RunsEndedFrame(msgspec.Struct, tag="over"):
    """All runs of this delivery are over, and that is on disk."""

    key: str
    end: End


class RunOver(msgspec.Struct, tag="run"):
    """One run is over. ``error`` says what it failed with; ``place`` and ``line`` where in the user's files."""

    key: str
    workflow: str
    error: str = ""
    place: str = ""
    line: str = ""


class AnswerFrame(msgspec.Struct, tag="answer"):
    """A workflow answers the caller of this delivery. To be replied to with ``Answered``."""

    id: int
    key: str
    document: str
    """JSON: status, headers, body."""


class Trouble(msgspec.Struct, tag="trouble"):
    """The trouble with the engine's file; an empty text when it works again."""

    detail: str


class Beat(msgspec.Struct, tag="beat"):
    """Sent every second: the interpreter is not held by a workflow that never lets go."""


FromGateway = Begin | Start | AskEnds | Runs | Forget | AnsweredFrame | Stop
FromEngine = Ready | Done | RunsEndedFrame | RunOver | AnswerFrame | Trouble | Beat

_encoder = msgspec.msgpack.Encoder()
from_gateway: Callable[[bytes], FromGateway] = msgspec.msgpack.Decoder(FromGateway).decode
from_engine: Callable[[bytes], FromEngine] = msgspec.msgpack.Decoder(FromEngine).decode


def encode(frame: FromGateway | FromEngine) -> bytes:
    body = _encoder.encode(frame)
    return LENGTH.pack(len(body)) + body
