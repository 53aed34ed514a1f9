"""The engine process's end of the socket."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import msgspec

from postern.engines.embedded import frames
from postern.engines.embedded.journal import MOST_LOOKS, others_first
from postern.workflows.language import StepFailed
from postern.workflows.replay import LeftOff

log = logging.getLogger("postern.engine")

LARGEST_ANSWER = 8 * 1024 * 1024
"""Characters of JSON. The gateway sends 1 MiB at most, and refuses a larger answer in its own words."""
FIRST_RETRY, LONGEST_RETRY = 0.1, 2.0


class GatewayGone(LeftOff):
    """The run goes on when a gateway is back."""


class Conversation:
    """One thread reads; frames are sent by many."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        """Held by whoever is sending."""
        self._gathered: list[bytes] = []
        self._ids = count(1)
        self._answers: dict[int, tuple[threading.Lock, list[frames.AnsweredFrame]]] = {}
        self._over = False

    def send(self, frame: frames.FromEngine) -> None:
        self.gather(frame)
        self.flush()

    def gather(self, frame: frames.FromEngine) -> None:
        """Keeps the frame until the next ``flush``, to be sent together with others."""
        encoded = frames.encode(frame)
        with self._lock:
            self._gathered.append(encoded)

    def flush(self) -> None:
        """Sends what is gathered. The thread that is sending takes along what others gather meanwhile, and they need
        not wait."""
        while self._gathered and self._turn.acquire(blocking=False):
            try:
                self._let_others_gather()
                self._send_gathered()
            finally:
                self._turn.release()

    def _let_others_gather(self) -> None:
        seen = looks = 0
        while seen < len(self._gathered) and looks < MOST_LOOKS:
            seen, looks = len(self._gathered), looks + 1
            others_first()

    def finish(self) -> None:
        """Waits for the thread that is sending, and sends the rest: the process ends after this."""
        with self._turn:
            self._send_gathered()

    def _send_gathered(self) -> None:
        with self._lock:
            gathered, self._gathered = self._gathered, []
        with suppress(OSError):  # the gateway is gone; the reading side notices
            self._channel.sendall(b"".join(gathered))

    def read(self) -> Iterator[frames.FromGateway]:
        """Yields frames until the gateway is gone. Replies to answers are handed to the threads that wait for
        them."""
        reader = self._channel.makefile("rb", 1 << 16)
        try:
            while head := reader.read(frames.LENGTH.size):
                body = reader.read(frames.LENGTH.unpack(head)[0])
                frame = frames.from_gateway(body)
                if isinstance(frame, frames.AnsweredFrame):
                    self._answered(frame)
                else:
                    yield frame
        except (OSError, ValueError, msgspec.MsgspecError):
            pass  # it broke off in the middle
        finally:
            self._over = True
            for id in list(self._answers):
                self._answered(frames.AnsweredFrame(id, again=True))

    def answer(self, key: str, deadline: float, document: str) -> bool:
        """Hand a workflow's answer over: JSON, with status, headers and body. True when it was the first; False when another was faster or nobody
        waits any longer."""
        if len(document) > LARGEST_ANSWER:
            raise StepFailed("respond failed: the answer is too large")
        wait = FIRST_RETRY
        while True:
            reply = self._hand_over(key, document)
            if reply.again and self._over:
                raise GatewayGone
            if reply.refused:
                raise StepFailed(f"respond failed: the gateway did not take the answer: {reply.refused}")
            if not reply.again:
                return reply.taken
            # Once more is pointless when nobody waits any longer.
            if time.time() + wait >= deadline:
                log.warning("the answer of %s could not be stored in time", key)
                return False
            time.sleep(wait)
            wait = min(wait * 2, LONGEST_RETRY)

    def _hand_over(self, key: str, document: str) -> frames.AnsweredFrame:
        id, done, replies = next(self._ids), threading.Lock(), list[frames.AnsweredFrame]()
        done.acquire()
        self._answers[id] = (done, replies)
        if self._over:  # nobody will come for it any more
            raise GatewayGone
        self.send(frames.AnswerFrame(id, key, document))
        done.acquire()
        return replies[0]

    def _answered(self, frame: frames.AnsweredFrame) -> None:
        waiting = self._answers.pop(frame.id, None)
        if waiting is not None:
            done, replies = waiting
            replies.append(frame)
            done.release()
