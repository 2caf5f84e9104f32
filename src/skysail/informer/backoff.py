"""How long a loop that failed waits before it goes on: doubling, jittered, forgiving after a quiet time.

Source: k8s.io/apimachinery/pkg/util/wait `Backoff.DelayWithReset`, v1.36.
"""

from dataclasses import dataclass
from typing import Protocol


class Rng(Protocol):
    """The part of `random.Random` that is needed here."""

    def random(self) -> float:
        """A number from 0.0 up to, but not including, 1.0."""
        ...


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """The shape of a backoff.

    Attributes:
        initial_seconds: The first wait.
        max_seconds: No wait is longer, before jitter.
        factor: Each wait is this much longer than the one before.
        jitter: A wait is stretched by a random part of up to this fraction of it.
        reset_seconds: After that long without a wait the next one is the first again.
    """

    initial_seconds: float = 0.8
    max_seconds: float = 30.0
    factor: float = 2.0
    jitter: float = 1.0
    reset_seconds: float = 120.0


class Backoff:
    """The waits of one loop.

    Args:
        settings: The shape.
        rng: Gives the jitter.
    """

    def __init__(self, settings: BackoffSettings, rng: Rng) -> None:
        self.settings = settings
        self._rng = rng
        self._next = settings.initial_seconds
        self._last: float | None = None

    def next_seconds(self, now: float) -> float:
        """How long to wait now.

        Args:
            now: Monotonic seconds; the backoff starts over when the last call was long ago.
        """
        if self._last is not None and now - self._last > self.settings.reset_seconds:
            self._next = self.settings.initial_seconds
        self._last = now
        base = self._next
        self._next = min(self.settings.max_seconds, base * self.settings.factor)
        return base * (1.0 + self._rng.random() * self.settings.jitter)

    def reset(self) -> None:
        """The next wait is the first again."""
        self._next = self.settings.initial_seconds
