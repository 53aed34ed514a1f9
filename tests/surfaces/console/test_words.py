"""How the console says numbers, and which calls are meant."""

from types import SimpleNamespace
from typing import Any

import pytest

from postern.surfaces.console import words
from postern.surfaces.console.words import ago, filter_in_words, milliseconds
from postern.usecases.answers import Time
from postern.usecases.deliveries.views import ReplayedCalls

NOTHING: dict[str, Any] = dict.fromkeys(ReplayedCalls.__struct_fields__) | {"bookmarked": False}


def said(**wanted: Any) -> str:
    return filter_in_words(ReplayedCalls(**NOTHING | wanted), {"wh_1": "Orders"}).striptags()


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({}, "Every call"),
        ({"webhook_id": "wh_1"}, "Every call to Orders"),
        ({"status": "rejected"}, "Rejected calls"),
        ({"code": "signature_mismatch"}, "Every call with the reason “Signature does not match”"),
        ({"since": Time(0.0)}, "Every call since 1 Jan 1970, 00:00:00 UTC"),
        ({"until": Time(60.0)}, "Every call before 1 Jan 1970, 00:01:00 UTC"),
        ({"search": "a"}, "Every call that holds “a”"),
        ({"search": "a", "status": "failed"}, "Failed calls that hold “a”"),
        ({"answer": "5xx"}, "Every call whose caller heard 5xx"),
        ({"answer": "gone"}, "Every call whose caller had left before the answer"),
        ({"value": "1001"}, "Every call with the value “1001”"),
        ({"address": "192.0.2.1"}, "Every call from 192.0.2.1"),
        ({"bookmarked": True}, "Every call that somebody has bookmarked"),
        ({"header": "x-topic"}, "Every call with the header “x-topic”"),
        ({"field": "fieldOne=1"}, "Every call with the value “fieldOne=1”"),
    ],
)
def test_a_filter_is_reported_in_words(wanted: dict[str, Any], sentence: str) -> None:
    assert said(**wanted) == sentence


def test_no_part_of_a_filter_is_left_out() -> None:
    given = {"status": "failed", "since": Time(0.0), "until": Time(60.0), "bookmarked": True}
    for name in NOTHING:
        assert said(**{name: given.get(name, "x")}) != said(), name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.04, "<0.1 ms"),
        (0.05, "0.1 ms"),
        (9.94, "9.9 ms"),
        (10.4, "10 ms"),
        (9_999.0, "9,999 ms"),
        (10_000.0, "10.0 s"),
    ],
)
def test_a_short_duration_is_not_said_to_be_nothing(value: float | None, text: str) -> None:
    assert milliseconds(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7 * 86_400 - 2, "in 7 days"),
        (6.5 * 86_400, "in 6 days"),
        (3_599, "in 1 hour"),
        (61, "in 1 minute"),
        (60, "in 1 minute"),
        (59, "in 59 s"),
        (-86_399, "23 hours ago"),
    ],
)
def test_what_is_to_come_is_said_to_the_minute(seconds: float, text: str) -> None:
    assert ago(1_000_000 + seconds, 1_000_000) == text


def test_a_moment_has_passed_once_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "time", SimpleNamespace(time=lambda: 100.0))
    assert [words.has_passed(moment) for moment in (99.9, 100.0, 100.1)] == [True, True, False]
