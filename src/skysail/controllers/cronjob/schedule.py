"""Cron schedules: reading them, and finding the next time.

Five fields (minute, hour, day of month, month, day of week), or a word: `@hourly`, `@daily`, `@every 90m`. When both
kinds of day are restricted, either suffices. A time that a change to summer time skips does not occur; one that the
change back repeats occurs twice.

>>> from datetime import datetime, UTC
>>> Schedule.parse("*/15 9-17 * * mon-fri").next_after(datetime(2026, 1, 2, 17, 50, tzinfo=UTC)).isoformat()
'2026-01-05T09:00:00+00:00'

Source: github.com/robfig/cron/v3, as kube-controller-manager 1.36 uses it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NO_NAMES: dict[str, int] = {}
_FIELDS = (
    ("minute", 0, 59, _NO_NAMES),
    ("hour", 0, 23, _NO_NAMES),
    ("day of month", 1, 31, _NO_NAMES),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SEARCH_DAYS = 5 * 366


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is to happen.

    Attributes:
        minutes: Of the hour, ascending.
        hours: Of the day, ascending.
        days: Of the month.
        months: Of the year.
        weekdays: 0 is Sunday.
        any_day: Whether one of the two kinds of day is unrestricted; then both must match.
        every: A fixed distance instead of all that; None without.
    """

    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    every: timedelta | None = None

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Read a schedule.

        Raises:
            ValueError: It says something else.
        """
        text = text.strip()
        if text.startswith("@every "):
            return cls(every=_duration(text.removeprefix("@every ").strip()))
        if text.startswith("@"):
            if text not in _WORDS:
                raise ValueError(f"unrecognized descriptor: {text}")
            text = _WORDS[text]
        parts = text.split()
        if len(parts) != len(_FIELDS):
            raise ValueError(f"expected exactly 5 fields, found {len(parts)}: {text}")
        minute, hour, day, month, weekday = (_field(part, *spec) for part, spec in zip(parts, _FIELDS, strict=True))
        return cls(tuple(sorted(minute[0])), tuple(sorted(hour[0])), day[0], month[0], weekday[0], day[1] or weekday[1])

    def next_after(self, moment: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The first time after a moment, in UTC; None when there is none within five years.

        Args:
            moment: Timezone-aware.
            zone: Where the schedule's hours are told.
        """
        if self.every is not None:
            return moment.astimezone(UTC).replace(microsecond=0) + self.every
        first = moment.astimezone(zone).date()
        for offset in range(_SEARCH_DAYS):
            day = first + timedelta(days=offset)
            if self._includes(day):
                found = min((time for time in self._times(day, zone) if time > moment), default=None)
                if found is not None:
                    return found
        return None

    def _includes(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day and by_weekday if self.any_day else by_day or by_weekday

    def _times(self, day: date, zone: tzinfo) -> Iterator[datetime]:
        """Every time of one day, in UTC."""
        for hour in self.hours:
            for minute in self.minutes:
                wall = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - the zone is put in below
                for fold in (0, 1):
                    local = wall.replace(tzinfo=zone, fold=fold)
                    moment = local.astimezone(UTC)
                    exists = moment.astimezone(zone).replace(tzinfo=None) == wall
                    if exists and (fold == 0 or local.utcoffset() != local.replace(fold=0).utcoffset()):
                        yield moment


def _duration(text: str) -> timedelta:
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"failed to parse duration {text!r}")
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    return timedelta(seconds=max(1.0, float(int(seconds))))


def _field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """The values of one field, and whether it is a mere star."""
    values: set[int] = set()
    star = False
    for part in text.split(","):
        chosen, unrestricted = _range(part, name, low, high, names)
        values |= chosen
        star = star or unrestricted
    return frozenset(values), star


def _range(text: str, name: str, low: int, high: int, names: dict[str, int]) -> tuple[set[int], bool]:
    span, slash, step_text = text.partition("/")
    first_text, dash, last_text = span.partition("-")
    unrestricted = span in ("*", "?")
    step = _number(step_text, name, {}) if slash else 1
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")
    if unrestricted:
        first, last = low, high
    else:
        first = _number(first_text, name, names)
        last = _number(last_text, name, names) if dash else high if slash else first
    if first < low or last > high or first > last:
        raise ValueError(f"{name} {text!r} is not within {low}-{high}, or is upside down")
    return set(range(first, last + 1, step)), unrestricted and step == 1


def _number(text: str, name: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name}: {text!r} is no number")
    return int(text)
