"""Cron schedules: which are understood, and when they come round."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.controllers.cronjob.schedule import Schedule

BERLIN = ZoneInfo("Europe/Berlin")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        ("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01:00"),
        ("* * * * *", "2026-01-01T00:00:30", "2026-01-01T00:01:00"),
        ("*/20 * * * *", "2026-01-01T00:41:00", "2026-01-01T01:00:00"),
        ("5,10-12 3 * * *", "2026-01-01T03:10:00", "2026-01-01T03:11:00"),
        ("10-50/20 * * * *", "2026-01-01T00:31:00", "2026-01-01T00:50:00"),
        ("7/20 * * * *", "2026-01-01T00:28:00", "2026-01-01T00:47:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 * jan-mar,dec mon", "2026-04-01T00:00:00", "2026-12-07T00:00:00"),
        ("0 0 ? * SUN", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("0 12 13 * fri", "2026-01-01T00:00:00", "2026-01-02T12:00:00"),  # either day suffices
        ("0 12 13 * *", "2026-01-01T00:00:00", "2026-01-13T12:00:00"),
        ("@hourly", "2026-01-01T00:00:00", "2026-01-01T01:00:00"),
        ("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("@yearly", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("@every 1h30m", "2026-01-01T00:00:00", "2026-01-01T01:30:00"),
        ("@every 10ms", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
    ],
)
def test_a_schedule_comes_round_when_it_says(schedule: str, after: str, following: str) -> None:
    assert Schedule.parse(schedule).next_after(moment(after)) == moment(following)


def test_a_day_that_never_comes_is_not_waited_for() -> None:
    assert Schedule.parse("0 0 31 2 *").next_after(moment("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "1- * * * *",
        "@often",
        "@every",
        "@every soon",
        "@every 5",
        "٣ * * * *",
    ],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Schedule.parse(text)


def test_a_time_that_summer_time_skips_does_not_occur() -> None:
    found = Schedule.parse("30 2 * * *").next_after(moment("2026-03-28T12:00:00"), BERLIN)
    assert found == moment("2026-03-30T00:30:00")


def test_a_time_that_winter_time_repeats_occurs_twice() -> None:
    schedule = Schedule.parse("30 2 * * *")
    first = schedule.next_after(moment("2026-10-24T12:00:00"), BERLIN)
    assert first == moment("2026-10-25T00:30:00")
    assert schedule.next_after(first, BERLIN) == moment("2026-10-25T01:30:00")


fields = st.one_of(st.just("*"), st.integers(1, 5).map(str), st.integers(1, 6).map(lambda step: f"*/{step}"))


@given(fields, fields, fields, st.integers(0, 400 * 24 * 60))
def test_the_next_time_is_the_first_that_matches(minute: str, hour: str, weekday: str, offset: int) -> None:
    schedule = Schedule.parse(f"{minute} {hour} * * {weekday}")
    start = moment("2026-01-01T00:00:00") + timedelta(minutes=offset)
    found = schedule.next_after(start)

    def matches(time: datetime) -> bool:
        return (
            time.minute in schedule.minutes
            and time.hour in schedule.hours
            and time.isoweekday() % 7 in schedule.weekdays
        )

    each = start + timedelta(minutes=1)
    while not matches(each):
        each += timedelta(minutes=1)
    assert found == each
