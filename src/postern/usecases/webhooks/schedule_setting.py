"""A schedule as surfaces write it, and what becomes of the values of its headers, which are secrets."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from postern.core.address import METADATA, Allowlist, closed, read_address
from postern.core.names import sent_header_problem
from postern.core.problems import FieldError, Refused
from postern.core.schedules.schedule import InvalidSchedule, parse_schedule
from postern.core.webhooks import settings
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.shapes import WHOLE, FieldRefused, Shape, checked

MOST_HEADERS = 20
LONGEST_HEADER = 4096
LONGEST_URL = 2000

SECRET_PREFIX = "header:"


class ScheduleSetting(Shape):
    """Have the gateway fetch a URL by itself: ``every`` so many seconds (or 15m, 2h, 1d), or by a ``cron``
    expression."""

    url: str
    every: int | str | None = None
    cron: str | None = None
    time_zone: str = "UTC"
    headers: Annotated[dict[str, str | None], Field(max_length=MOST_HEADERS, repr=False)] = {}
    timeout_seconds: Annotated[float, Field(ge=1, le=60)] = 10
    only_when_changed: bool = False
    split_array: bool = False
    pause_after_failures: Annotated[int, Field(ge=1, le=1000), WHOLE] = 10
    enabled: bool = True

    @field_validator("url")
    @classmethod
    def _url(cls, url: str) -> str:
        return checked(url, url_problem(url) or _source_problem(url))

    @field_validator("headers", mode="before")
    @classmethod
    def _names_alone(cls, headers: Any) -> Any:
        """As they are shown: the names. Their values stay."""
        return (
            dict.fromkeys(headers)
            if isinstance(headers, list) and all(isinstance(name, str) for name in headers)
            else headers
        )

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: dict[str, str | None]) -> dict[str, str | None]:
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("a header is named twice")
        for name, value in headers.items():
            if problem := sent_header_problem(name):
                raise FieldRefused(name, problem)
            if value is not None and not (
                1 <= len(value) <= LONGEST_HEADER and value.isascii() and value.isprintable()
            ):
                raise FieldRefused(name, f"a value has 1 to {LONGEST_HEADER} printable ASCII characters")
        return headers

    @model_validator(mode="after")
    def _when(self) -> "ScheduleSetting":
        try:
            parse_schedule(self.every, self.cron, self.time_zone)
        except InvalidSchedule as error:
            raise FieldRefused(error.field, error.message) from None
        return self

    def secrets(self) -> dict[str, str]:
        return {
            SECRET_PREFIX + name.lower(): value for name, value in self.headers.items() if value is not None
        }


def url_problem(url: str) -> str | None:
    if (
        not url.startswith(("https://", "http://"))
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or len(url) > LONGEST_URL
    ):
        return "write the whole address, beginning with https://"
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "this is not a URL"
    return None if named else "the URL names no host"


def _source_problem(url: str) -> str | None:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        return "a URL carries no username or password; put them into a header"
    return None


def check_address(
    opened: Allowlist | None,
    schedule: settings.ScheduleSetting | None,
    before: settings.ScheduleSetting | None = None,
) -> None:
    """Refuses a new URL that names a private address which no fetch would reach. What a name leads to is
    judged at each fetch.
    ``opened`` None: a process that does not fetch cannot know."""
    if opened is None or schedule is None or (before is not None and schedule.url == before.url):
        return
    host = urlsplit(schedule.url).hostname or ""
    literal = "127.0.0.1" if host == "localhost" else host
    if read_address(literal) is not None and (reason := closed(literal, opened)):
        message = f"{host} is {reason}; nothing is fetched from there" + (
            "" if reason == METADATA else " unless POSTERN_OUTBOUND_ALLOWED opens it"
        )
        raise Refused("invalid_request", errors=[FieldError("schedule.url", message)])


def header_changes(
    schedule: settings.ScheduleSetting | None, sent: set[str], before: StoredWebhook | None = None
) -> dict[str, None]:
    """Which stored header values go. Refused where a header that is named has no value, or one given for
    another site."""
    wanted = {SECRET_PREFIX + name.lower(): name for name in (schedule.headers if schedule else [])}
    kept = {field for field in before.secret_fields if field.startswith(SECRET_PREFIX)} if before else set()
    readable = before.secrets.keys() if before else ()
    errors = []
    saved = before.settings.schedule if before else None
    # Whoever may change the URL must not thereby learn what was stored for the old one's site.
    moved = saved is not None and schedule is not None and _site(saved.url) != _site(schedule.url)
    for field, name in wanted.items():
        if field not in sent and (field not in readable or moved):
            errors.append(
                FieldError(
                    f"schedule.headers.{name}",
                    "send its value again: the URL is another site's" if moved else "is required",
                )
            )
    if errors:
        raise Refused("invalid_request", errors=errors)
    return dict.fromkeys(kept - wanted.keys())


def _site(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
