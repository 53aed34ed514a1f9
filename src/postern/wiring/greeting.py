"""The lines that a gateway prints when it serves."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

ADMIN = "admin"
SHOWN_ONCE = "It is shown only once. Change it in the console."


@dataclass(slots=True)
class Greeting:
    address: str
    workflows: str
    password: str = field(repr=False)
    """The admin's password, if this start has made the admin."""
    curl: str = field(repr=False)
    out_of_reach: str
    as_event: bool
    """Print one line of JSON, because the log is JSON. Otherwise it is text for people, whatever the log is:
    the first start says the password nowhere else."""

    shown: bool = False

    def show(self) -> None:
        self.shown = True
        print(self._event() if self.as_event else self._text(), flush=True)

    @contextmanager
    def whatever_comes(self) -> Iterator[None]:
        """Shows at least the password if the start fails before it serves: it is stored and not made a second
        time."""
        try:
            yield
        finally:
            if self.password and not self.shown:
                self.shown = True
                event = f"Postern has made the user {ADMIN}"
                secret = {"admin_password": self.password, "about_the_password": SHOWN_ONCE}
                print(
                    _line(event, secret) if self.as_event else "\n".join(self._password_in_words()),
                    flush=True,
                )

    def _password_in_words(self) -> list[str]:
        return [f"Sign in to the console as {ADMIN} with the password {self.password}", SHOWN_ONCE]

    def _event(self) -> str:
        about = {
            "console": f"{self.address}/",
            "api": f"{self.address}/docs",
            "health": f"{self.address}/readyz",
            "workflows": self.workflows,
            "admin_password": self.password,
            "about_the_password": SHOWN_ONCE if self.password else "",
            "try_it": self.curl,
            "warning": self.out_of_reach,
        }
        said = {name: value for name, value in about.items() if value}
        return _line(f"Postern is serving on {self.address}", said)

    def _text(self) -> str:
        lines = [
            f"Postern is serving on {self.address}",
            f"  Console   {self.address}/",
            f"  API       {self.address}/docs",
            f"  Health    {self.address}/readyz",
        ]
        if self.workflows:
            lines.append(f"  Workflows {self.workflows}")
        if self.password:
            lines += ["", *self._password_in_words()]
        if self.curl:
            lines += ["", "Try it:", "", self.curl]
        if self.out_of_reach:
            lines += ["", self.out_of_reach]
        return "\n".join([*lines, ""])


def _line(event: str, said: dict[str, str]) -> str:
    at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": event, **said, "level": "info", "timestamp": at})
