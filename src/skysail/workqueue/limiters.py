"""How long a failed item waits before it is tried again.

Source: k8s.io/client-go/util/workqueue/default_rate_limiters.go, v1.36.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from skysail.api.ports import Clock

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Gives each failed item its delay."""

    def when(self, item: T_contra) -> float:
        """Seconds the item should wait now; counts as one more failure."""
        ...

    def forget(self, item: T_contra) -> None:
        """Start over for this item."""
        ...

    def num_requeues(self, item: T_contra) -> int:
        """How many failures are remembered for this item."""
        ...


class ItemExponentialLimiter(Generic[T]):
    """Each item on its own: `base * 2**failures` seconds, up to a maximum.

    Args:
        base_seconds: The first delay.
        max_seconds: No delay is longer.
    """

    def __init__(self, base_seconds: float = 0.005, max_seconds: float = 1000.0) -> None:
        self._base, self._max = base_seconds, max_seconds
        self._failures: dict[T, int] = {}

    def when(self, item: T) -> float:
        """The delay doubles with every failure."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(self._max, self._base * 2.0 ** min(failures, 64))

    def forget(self, item: T) -> None:
        """Back to the first delay."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """Failures since the item was last forgotten."""
        return self._failures.get(item, 0)


class BucketLimiter(Generic[T]):
    """All items together: a bucket of tokens that fills at a steady rate; an empty bucket makes items wait in turn.

    Args:
        clock: Fills the bucket.
        per_second: Tokens a second.
        burst: The bucket's size; it starts full.
    """

    def __init__(self, clock: Clock, per_second: float = 10.0, burst: int = 100) -> None:
        self._clock, self._rate, self._burst = clock, per_second, burst
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    def when(self, item: T) -> float:
        """Reserve one token; seconds until it is there."""
        now = self._clock.monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._filled_at) * self._rate) - 1.0
        self._filled_at = now
        return max(0.0, -self._tokens / self._rate)

    def forget(self, item: T) -> None:
        """Nothing is remembered of single items."""

    def num_requeues(self, item: T) -> int:
        """Nothing is remembered of single items."""
        return 0


class ItemFastSlowLimiter(Generic[T]):
    """A few quick attempts, then slow ones.

    Args:
        fast_seconds: Delay of the first attempts.
        slow_seconds: Delay of all later ones.
        max_fast_attempts: How many attempts are quick.
    """

    def __init__(self, fast_seconds: float, slow_seconds: float, max_fast_attempts: int) -> None:
        self._fast, self._slow, self._max_fast = fast_seconds, slow_seconds, max_fast_attempts
        self._failures: dict[T, int] = {}

    def when(self, item: T) -> float:
        """Fast until the attempts are used up."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        return self._fast if failures <= self._max_fast else self._slow

    def forget(self, item: T) -> None:
        """The next attempts are quick again."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """Failures since the item was last forgotten."""
        return self._failures.get(item, 0)


class MaxOfLimiter(Generic[T]):
    """The longest delay of several limiters; each of them counts every failure."""

    def __init__(self, limiters: Sequence[RateLimiter[T]]) -> None:
        self._limiters = tuple(limiters)

    def when(self, item: T) -> float:
        """The longest delay any of them asks for."""
        return max((limiter.when(item) for limiter in self._limiters), default=0.0)

    def forget(self, item: T) -> None:
        """All of them start over."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The highest count any of them remembers."""
        return max((limiter.num_requeues(item) for limiter in self._limiters), default=0)


class MaxWaitLimiter(Generic[T]):
    """Another limiter's delays, cut off at a maximum."""

    def __init__(self, limiter: RateLimiter[T], max_seconds: float) -> None:
        self._limiter, self._max = limiter, max_seconds

    def when(self, item: T) -> float:
        """The other limiter's delay, or the maximum."""
        return min(self._max, self._limiter.when(item))

    def forget(self, item: T) -> None:
        """Passed on."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Passed on."""
        return self._limiter.num_requeues(item)


def default_controller_limiter(clock: Clock) -> MaxOfLimiter[Hashable]:
    """What every controller uses: per item 5 ms to 1000 s, and 10 retries a second overall with a burst of 100."""
    return MaxOfLimiter((ItemExponentialLimiter[Hashable](), BucketLimiter[Hashable](clock)))
