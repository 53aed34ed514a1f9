from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.schedules import (
    InvalidSchedule,
    Next,
    Schedule,
    after_run,
    changed,
    conditions,
    explain,
    hours,
    jitter_of,
    next_run,
    parse_schedule,
    seen,
)

MINUTELY = parse_schedule(every=60)


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("every", "seconds"),
    [
        (60, 60),
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1d", 86400),
        (" 2 H ", 7200),
        ("366d", 366 * 86400),
    ],
)
def test_every_is_read(every: str | int, seconds: int) -> None:
    assert parse_schedule(every=every).every == seconds


EVERY = [59, 0, -60, "1s", "367d", "", "soon", "1w", "1.5h", "9" * 40, "٩٠", True, "15mm"]
CRONS = ["", "* * * *", "* * * * * *", "60 * * * *", "0 0 31 2 *", "0 0 */31 2 1#5", "a b c d e"]
CRONS += ["* * * * " + "1," * 500, "* * * * ٣", "1-/2 * * * *"]
ZONES = ["Europe/Atlantis", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 500, "a\0b"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        *(({"every": every}, "every") for every in EVERY),
        *(({"cron": cron}, "cron") for cron in CRONS),
        *(({"cron": "0 9 * * *", "time_zone": zone}, "timeZone") for zone in ZONES),
    ],
)
def test_what_is_wrong_is_named_by_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse_schedule(**given)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("0 0 31 2 *", "this date never comes"),
        ("0 0 31 4,6 *", "this date never comes"),
        ("0 0 32 2 *", "bad day-of-month; write five fields: minute hour day month weekday"),
        ("0 0 31 13 *", "bad month; write five fields: minute hour day month weekday"),
    ],
)
def test_a_date_that_never_comes_is_told_from_one_that_cannot_be_read(cron: str, message: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse_schedule(cron=cron)
    assert str(caught.value) == message


@given(st.integers(0, 8_000_000) | st.integers())
def test_hours_are_read_as_the_seconds_that_they_are_written_for(seconds: int) -> None:
    written = hours(seconds)
    if 0 <= seconds <= 8_000_000:
        assert round(Decimal(written) * 3600) == seconds
        assert len(written.partition(".")[2]) <= 4


@pytest.mark.parametrize(("seconds", "text"), [(4, "0.001"), (60, "0.0167"), (5400, "1.5"), (36000, "10")])
def test_hours_are_written_as_short_as_they_can_be(seconds: int, text: str) -> None:
    assert hours(seconds) == text


def test_either_every_or_cron_is_given() -> None:
    for both, said in (({}, "cron$"), ({"every": 60, "cron": "* * * * *"}, "null removes the other one")):
        with pytest.raises(InvalidSchedule, match=said):
            parse_schedule(**both)  # type: ignore[arg-type]


@given(st.text())
def test_whatever_is_typed_is_read_or_refused(text: str) -> None:
    for field in ("every", "cron"):
        try:
            parse_schedule(**{field: text})  # type: ignore[arg-type]
        except InvalidSchedule as error:
            assert str(error)


def test_every_counts_from_when_it_was_saved() -> None:
    schedule = parse_schedule(every="15m", anchor=1000.0)
    assert [next_run(schedule, after) for after in (1000.0, 1899.9, 1900.0)] == [1900.0, 1900.0, 2800.0]


def test_cron_runs_at_the_time_of_day_in_its_zone() -> None:
    schedule = parse_schedule(cron="0 9 * * MON-FRI", time_zone="Europe/Berlin")
    for friday, monday in (("2026-11-20", "2026-11-23"), ("2026-03-27", "2026-03-30")):
        after, expected = [at(f"{day}T09:00", "Europe/Berlin") for day in (friday, monday)]
        assert next_run(schedule, after) == expected


@pytest.mark.parametrize(
    ("cron", "zone", "after", "runs"),
    [
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T01:15", "01:30+01 03:00+02 03:30+02"),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T02:15", "02:30+02 02:00+01 02:30+01 03:00+01"),
        ("0 * * * *", "Europe/Berlin", "2026-10-25T01:30", "02:00+02 02:00+01 03:00+01"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "03:00+02 02:30+02"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "02:30+02 02:30+01"),
        ("15 1-3 * * *", "Europe/Berlin", "2026-10-25T01:30", "02:15+02 03:15+01"),
        # Midnight itself is left out there.
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", "01:00-02 00:00-02"),
        ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00", "23:30-02 23:30-03"),
        # By half an hour.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", "02:30+11 02:15+11"),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", "01:45+11 01:45+10:30"),
        ("*/15 * * * *", "Australia/Lord_Howe", "2026-04-05T01:40", "01:45+11 01:30+10:30 01:45+10:30"),
    ],
)
def test_a_time_that_is_left_out_runs_afterwards_and_one_that_comes_twice_runs_once(
    cron: str, zone: str, after: str, runs: str
) -> None:
    schedule = parse_schedule(cron=cron, time_zone=zone)
    run, found = at(after, zone), []
    for _ in runs.split():
        run = next_run(schedule, run)
        there = datetime.fromtimestamp(run, ZoneInfo(zone))
        found.append(f"{there:%H:%M}{there.isoformat()[19:].removesuffix(':00')}")
    assert found == runs.split()


@given(
    st.integers(0, 200_000),
    st.sampled_from(["30 2 * * *", "*/15 * * * *", "0 * * * *", "15 1-3 * * *"]),
    st.sampled_from(["", "sch_1"]),
)
def test_the_next_run_is_always_later(seconds: int, cron: str, key: str) -> None:
    """Around the night of 25 October 2026, when an hour comes twice."""
    after = at("2026-10-24T12:00", "Europe/Berlin") + seconds
    following = next_run(parse_schedule(cron=cron, time_zone="Europe/Berlin"), after, key)
    assert after < following <= after + 26 * 3600


def test_nicknames_are_known() -> None:
    for names, cron in (
        ("@hourly", "0 * * * *"),
        ("@daily @midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly @annually", "0 0 1 1 *"),
    ):
        assert {parse_schedule(cron=name).cron for name in names.split()} == {cron}


def test_jitter_is_fixed_per_schedule_bounded_and_spread() -> None:
    hourly = parse_schedule(cron="@hourly")
    delays = [jitter_of(hourly, f"sch_{n}") for n in range(100)]
    assert delays == [jitter_of(hourly, f"sch_{n}") for n in range(100)]
    assert 0 <= min(delays) < 5 and 25 < max(delays) <= 30
    assert max(jitter_of(MINUTELY, f"sch_{n}") for n in range(100)) <= 6


@pytest.mark.parametrize("schedule", [MINUTELY, parse_schedule(cron="* * * * *")])
def test_jitter_neither_skips_nor_doubles_a_run(schedule: Schedule) -> None:
    times = [0.0]
    for _ in range(50):
        times.append(next_run(schedule, times[-1], "sch_1"))
    assert {round(b - a, 3) for a, b in pairwise(times[1:])} == {60}


def test_a_run_that_is_due_but_delayed_by_jitter_is_not_lost() -> None:
    jitter = jitter_of(MINUTELY, "sch_1")
    assert next_run(MINUTELY, 600.0, "sch_1") == 600.0 + jitter


def failed(schedule: Schedule, **given: Any) -> Next:
    return after_run(schedule, "", 0.0, succeeded=False, pause_after=20, **{"failures": 0, **given})


def test_one_failure_changes_nothing_more_leave_out_runs_and_success_forgets_them() -> None:
    waits = [failed(MINUTELY, failures=n).at for n in range(9)]
    assert waits == [60, 180, 300, 540, 1020, 1980, 3660, 3660, 3660]
    assert failed(parse_schedule(every="1d"), failures=15).at == 86400, "a daily one is not held back"
    assert after_run(MINUTELY, "", 0.0, succeeded=True, pause_after=20, failures=7).failures == 0
    assert not failed(MINUTELY, failures=18).paused
    verdict = failed(MINUTELY, failures=19)
    assert (verdict.paused, verdict.failures) == (True, 20)


def test_the_source_may_ask_for_a_pause() -> None:
    assert failed(MINUTELY, asked_for=600).at == 660
    assert failed(MINUTELY, asked_for=1e12).at == 86460


def test_the_same_etag_is_no_news_even_if_bytes_differ() -> None:
    assert not changed(seen('W/"1"', None, b'{"at":1}'), seen('W/"1"', None, b'{"at":2}'))


def test_the_source_is_asked_whether_anything_changed() -> None:
    assert conditions(None) == {}
    assert conditions(seen('"1"', "Mon", b"")) == {"If-None-Match": '"1"', "If-Modified-Since": "Mon"}
    assert conditions(seen(None, None, b"")) == {}


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (parse_schedule(every=60), "every minute"),
        (parse_schedule(every="15m"), "every 15 minutes"),
        (parse_schedule(every=90), "every 90 seconds"),
        (parse_schedule(every="36h"), "every 36 hours"),
        (parse_schedule(every="1d"), "every day"),
        (
            parse_schedule(cron="0 9 * * MON-FRI", time_zone="Europe/Berlin"),
            "at 09:00 on Monday through Friday (Europe/Berlin)",
        ),
    ],
)
def test_a_schedule_is_described_in_words(schedule: Schedule, words: str) -> None:
    assert explain(schedule) == words
