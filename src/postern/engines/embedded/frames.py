"""What the gateway and the engine process say to each other: one JSON object a line, over a socket pair."""

import msgspec

from postern.core.deliveries.delivery import Run, Started, Trigger, Workflow

LARGEST = 64 * 1024 * 1024
IN_USE = 3  # the process's exit status when another one has the data directory


class Start(msgspec.Struct, tag="start"):
    id: int
    trigger: Trigger


class Ended(msgspec.Struct, tag="ended"):
    """Asks to be told when every run of the delivery has ended."""

    id: int
    key: str


class Runs(msgspec.Struct, tag="runs"):
    id: int
    limit: int
    key: str | None


class Forget(msgspec.Struct, tag="forget"):
    id: int
    keys: list[str]


class Stop(msgspec.Struct, tag="stop"):
    """Finish what is running for at most this many seconds, then end."""

    grace: float


class Ready(msgspec.Struct, tag="ready"):
    """Said once, when the engine can be asked, or when it cannot because of the workflow files."""

    workflows: list[Workflow] = []
    files: list[str] = []
    error: str = ""


class Done(msgspec.Struct, tag="done", omit_defaults=True):
    """The reply to the question of this id: the one field that belongs to it, or what failed."""

    id: int
    started: Started | None = None
    ended: str | None = None
    runs: list[Run] = []
    failed: str = ""


Question = Start | Ended | Runs | Forget | Stop
Reply = Ready | Done

_encoder = msgspec.json.Encoder()
_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_reply: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def line(frame: Question | Reply) -> bytes:
    return _encoder.encode(frame) + b"\n"


def read_question(text: bytes) -> Question:
    return _question.decode(text)


def read_reply(text: bytes) -> Reply:
    return _reply.decode(text)
