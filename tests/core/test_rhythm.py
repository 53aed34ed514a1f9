"""Rhythms: the minute by which the next call should have come, and those that are proposed from when calls came."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from postern.core.rhythm import propose, rhythm_of
from postern.core.webhooks.settings import RhythmSetting
from support.year import FIRST, HOLIDAYS, KINDS, calls_of, live

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() // 60)


@pytest.mark.parametrize(
    ("cron", "last", "due"),
    [
        ("*/10 8-17 * * 1-5", "2026-03-02 09:03", "2026-03-02 09:50"),
        ("*/10 8-17 * * 1-5", "2026-03-02 09:10", "2026-03-02 10:00"),  # its own minute is over
        ("*/10 8-17 * * 1-5", "2026-02-27 17:50", "2026-03-02 08:40"),  # the weekend
        ("*/10 8-17 * * 1-5", "2026-12-24 17:55", "2026-12-28 08:40"),  # two quiet days, and the weekend
        ("*/10 8-17 * * *", "2026-12-24 17:55", "2026-12-25 08:40"),  # one that keeps to no days of the week
        ("0 3 * * *", "2026-03-28 03:10", "2026-03-29 03:40"),  # the clocks go on in between
    ],
)
def test_a_call_should_come_within_the_grace_after_the_next_time(cron: str, last: str, due: str) -> None:
    assert rhythm_of(cron, 40, BERLIN, HOLIDAYS).deadline(at(last)) == at(due)


def test_it_rings_once_for_each_silence() -> None:
    calls = [at(f"2026-03-02 {time}") for time in ("08:00", "08:20", "09:00", "12:00", "12:01")]
    rings = rhythm_of("*/10 * * * *", 30, BERLIN).rings(calls, at("2026-03-02 12:30"))
    assert rings == [at("2026-03-02 09:40")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "busy shop"])
def test_a_year_goes_by_with_one_false_alarm_in_a_quarter_at_most(kind: str) -> None:
    """With the rhythms that are proposed. `python tests/support/year.py` tells of more seeds; this one is not among them."""
    lived = live(kind, 7, HOLIDAYS, outages=10)
    if kind == "rare":
        assert lived is None  # too thin to say anything
        return
    assert lived is not None and max(lived.false) <= 1, lived
    # A silence is told within two gaps after a call should have come. At most senders that is soon after the first lost call.
    assert all(one.is_in_time(one.after_expected) for one in lived.outages), lived
    within = sorted(one.is_in_time(one.after_first) for one in lived.outages)
    assert within[len(within) // 2], lived


def test_what_is_proposed_can_be_set_and_says_what_it_is() -> None:
    calls = calls_of("weekday shop", 4)
    found = propose(calls, FIRST, BERLIN, HOLIDAYS)
    assert found is not None and found.in_words.startswith("Monday to Friday, 8 to 17 h, at most "), found
    setting = RhythmSetting(cron=found.cron, grace_minutes=found.grace, time_zone=found.time_zone)
    assert rhythm_of(setting.cron, setting.grace_minutes, setting.time_zone).rings(calls, FIRST) != []


def test_nothing_is_proposed_from_a_few_calls_or_days() -> None:
    calls = calls_of("every minute", 1)
    assert propose(calls[:19], calls[18] + 1, "UTC") is None
    a_week = [call for call in calls if FIRST - 7 * 1440 <= call < FIRST]
    assert propose(a_week, FIRST, "UTC") is None
