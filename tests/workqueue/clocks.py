"""A clock that stands still until told otherwise."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def advance(self, seconds):
        self.seconds += seconds
