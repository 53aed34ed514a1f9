"""The bounds of settings, besides their types. They hold where somebody writes a setting: stored settings were written
under the bounds of their time, and are read whatever the bounds are now."""

import re
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from postern.core.address import Allowlist
from postern.core.calls.cors import origin_problem
from postern.core.calls.paths import path_problem
from postern.core.problems import FieldsRefused
from postern.core.schedules import parse_schedule
from postern.core.visible import on_one_line
from postern.core.watch.rhythm import row_of
from postern.core.webhooks.grouping import MOST_TAGS, distinct, tag_problem

LONGEST_URL = 2000
LONGEST_OWN_PATH = 100
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]\\]+)(:[0-9]*)?")
_PATH_PART = re.compile(r"[A-Za-z0-9_.-]+")
is_short_code = re.compile(r"[0-9A-Za-z]{22}").fullmatch
SLOWEST_RATE = 0.00001
"""Calls a second. At much smaller rates the waits are too long to be counted, and nothing would be limited."""

ProblemOf = Callable[[str], str | None]
"""Says what is wrong with a text, or returns None."""


class Bounds(Struct, frozen=True, kw_only=True):
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    check: Callable[[Any], Any] | None = None
    """Gives the value as it is stored, or raises ``ValueError``."""


def without(problem: ProblemOf) -> Callable[[str], str]:
    def check(value: str) -> str:
        if message := problem(value):
            raise ValueError(message)
        return value

    return check


def each_without(problem: ProblemOf) -> Callable[[list[str]], list[str]]:
    def check(values: list[str]) -> list[str]:
        wrong = {str(place): message for place, value in enumerate(values) if (message := problem(value))}
        if wrong:
            raise FieldsRefused(wrong)
        return values

    return check


def name_problem(name: str) -> str | None:
    return None if on_one_line(name) else "a name is printable text on one line"


def own_path_problem(path: str) -> str | None:
    parts = path.split("/")
    if (
        not 3 <= len(path) <= LONGEST_OWN_PATH
        or not all(map(_PATH_PART.fullmatch, parts))
        or {".", ".."} & {*parts}
    ):
        return f"write 3 to {LONGEST_OWN_PATH} letters, digits, - _ . and / between them, like shop/orders"
    if is_short_code(path):
        return "22 letters and digits could be another webhook's short code: put a - or / between them"
    return None


def has_path(name: str) -> str:
    """The reason why a webhook cannot have a path."""
    return f"{name} has this path (a webhook in the bin keeps its own)"


def account_problem(account: str) -> str | None:
    """The account becomes part of a path at the sender's API."""
    parts = account.split("/")
    is_path = not account or all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", part) for part in parts)
    return None if is_path else "write it like repos/OWNER/NAME, with letters, digits, . _ - and /"


def mapped_path(path: str) -> str | None:
    if path.lower().startswith("header:"):
        raise ValueError("a field is taken out of the body; no header is mapped")
    return without(path_problem)(path) if path else None


def place_of_key(key: str) -> tuple[Literal["header", "body"], str]:
    """Reads the key of duplicate protection: ``header:Name``, or a path in the body, with or without ``body:``."""
    if key.lower().startswith("header:"):
        return "header", key[len("header:") :]
    return "body", key.removeprefix("body:")


def duplicate_key(key: str) -> str | None:
    if not key:
        return None
    kind, name = place_of_key(key)
    if kind == "body":
        without(path_problem)(name)
    elif not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name) or not name.strip("-_"):
        raise ValueError("write header: and a header's name, like header:X-Event-Id")
    return key


def tags(written: list[str]) -> list[str]:
    distinct_tags = distinct(each_without(tag_problem)(written))
    if len(distinct_tags) > MOST_TAGS:
        raise ValueError(f"a webhook has at most {MOST_TAGS} tags")
    return distinct_tags


origins = each_without(origin_problem)


def rhythm_rows(written: list[str]) -> list[str]:
    rows: list[str] = []
    wrong: dict[str, str] = {}
    for place, text in enumerate(written):
        try:
            rows.append(str(row_of(text)))
        except ValueError as error:
            wrong[str(place)] = str(error)
    if wrong:
        raise FieldsRefused(wrong)
    if not rows:
        raise ValueError("write at least one row, like Mon-Fri 8-18: 90")
    return rows


def ranges(written: list[str]) -> list[str]:
    Allowlist.parse(written)
    # Kept as it was written: a program may compare the answer with what it sent.
    return [entry.strip() for entry in written]


def countable(rate: float) -> float:
    if rate < SLOWEST_RATE:
        raise ValueError(f"write {SLOWEST_RATE:.5f} (about one call a day) or more")
    return rate


def time_zone(name: str) -> str:
    return parse_schedule(cron="@daily", time_zone=name).time_zone


def url_problem(url: str) -> str | None:
    if not re.fullmatch(r"https?://[!-~]*", url) or len(url) > LONGEST_URL:
        return "write the whole address, beginning with https://"
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "this is not a URL"
    if not named:
        return "the URL names no host"
    return None if _AUTHORITY.fullmatch(parts.netloc) else "this is not a URL"


def source_problem(url: str) -> str | None:
    """Says what is wrong with a URL that the gateway fetches from."""
    if (problem := url_problem(url)) is None and "@" in urlsplit(url).netloc:
        return "a URL carries no username or password; put them into a header"
    return problem


def public_url_problem(url: str) -> str | None:
    if url_problem(url):
        return "write the whole URL that the sender was given, beginning with https://"
    return None
