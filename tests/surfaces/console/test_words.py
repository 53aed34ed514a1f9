"""How the console says numbers and times, and reads a text that must stay as it is."""

from types import SimpleNamespace

import pytest

from postern.surfaces.console import words
from postern.surfaces.console.labels import changes_of
from postern.surfaces.console.views.webhooks.settings import request_of
from postern.surfaces.console.visit import Form
from postern.surfaces.console.words import ago, milliseconds


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
        (3_599, "in 1 hour"),
        (60, "in 1 minute"),
        (59, "in 59 seconds"),
        (-86_399, "23 hours ago"),
    ],
)
def test_what_is_to_come_is_said_to_the_minute(seconds: float, text: str) -> None:
    assert ago(1_000_000 + seconds, 1_000_000) == text


def test_a_moment_has_passed_once_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "time", SimpleNamespace(time=lambda: 100.0))
    assert [words.has_passed(moment) for moment in (99.9, 100.0, 100.1)] == [True, True, False]


def test_the_body_of_an_answer_keeps_its_blanks() -> None:
    form = Form({"acceptedAnswer.status": "202", "acceptedAnswer.body": " taken\r\n\r\n"})
    assert request_of(form) == {"acceptedAnswer": {"status": 202, "body": " taken\n\n"}}


def test_a_field_without_an_error_has_none_under_it() -> None:
    assert words.error_under({"headers": None}, "headers") is None
    assert words.error_under(
        {"cors.origins.0": "no site", "cors.origins.1": "none either"}, "cors.origins"
    ) == ("no site; none either")


def test_a_note_of_the_audit_log_is_told_setting_by_setting() -> None:
    told = changes_of(
        {
            "filter": {"status": "failed", "writtenBy": None, "bookmarked": False},
            "duplicateProtection.windowSeconds": {"before": 86_400, "after": 5_400},
            "payloadLimitBytes": {"before": 1_048_576, "after": 2_048},
            "authentication.method": {"before": "none", "after": "hmac"},
            "conditions": {"before": [], "after": [{"of": "total", "is": "greater", "values": ["100"]}]},
            "target": {
                "before": {"url": "", "forward": "original"},
                "after": {"url": "https://erp.example", "forward": "original", "headers": []},
            },
            "secret.main": "set",
        }
    )
    assert list(told) == [
        ("Filter: status", None, "failed"),
        ("Window", "24 hours", "1.5 hours"),
        ("Largest payload", "1024 KiB", "2 KiB"),
        ("Method", "None", "HMAC SHA-256"),
        ("What starts", "nothing", "total is greater than 100"),
        ("Where it goes: URL", "nothing", "https://erp.example"),
        ("Secret: main", None, "set"),
    ]
