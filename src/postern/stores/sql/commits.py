"""How the last commits went. Written by the writer's thread, read by whoever asks whether calls can be stored."""

import math
import time

import structlog

LOG_EVERY = 10.0
"""A full disk refuses dozens of commits a second, and the log may be on that disk."""

log = structlog.get_logger("postern.writer")


class Commits:
    def __init__(self) -> None:
        self.since: float | None = None
        """When the commit that is under way began."""
        self.succeeded_at = -math.inf
        self.trouble: str | None = None
        """Why the last one was refused; None where it was not."""
        self.call_trouble: str | None = None
        """The same for the last one that had calls in it."""
        self.call_failed_at = -math.inf
        self._refused = 0
        self._logged_at = -math.inf

    def begin(self) -> None:
        self.since = time.monotonic()

    def end(self) -> None:
        self.since = None

    def succeeded(self, calls: int) -> None:
        self.succeeded_at = time.monotonic()
        if calls:
            self.call_trouble = None
        if self.trouble is not None:
            log.info("the store takes commits again", refused=self._refused)
        self.trouble, self._refused, self._logged_at = None, 0, -math.inf

    def refused(self, error: str, calls: int) -> None:
        now = time.monotonic()
        self.trouble = error
        self._refused += 1
        if calls:
            self.call_trouble, self.call_failed_at = error, now
        if now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            log.error("the store refused a commit", error=error, calls=calls, refused=self._refused)
