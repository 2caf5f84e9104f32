"""Which nodes are to be marked NoExecute next, and how fast: a queue with a rate.

A node is queued once; when it was marked it stays known, so that it is not queued again, until it is forgotten.

Source: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, v1.36.
"""


class RatedQueue:
    """Names in order of arrival, let out at a rate, one at a time.

    Args:
        rate: Names a second; 0 for none.
        now: Seconds on a monotonic clock.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._next = now
        self._waiting: dict[str, None] = {}
        self._known: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def rate(self) -> float:
        """Names a second."""
        return self._rate

    def add(self, name: str) -> bool:
        """Queue a name, unless it is known; whether it was queued."""
        if name in self._known:
            return False
        self._known.add(name)
        self._waiting[name] = None
        return True

    def forget(self, name: str) -> bool:
        """Take a name out, and let it be queued again; whether it was known."""
        self._waiting.pop(name, None)
        known = name in self._known
        self._known.discard(name)
        return known

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate. The first name after a change has to wait for its turn."""
        if rate != self._rate:
            self._rate = rate
            self._next = now + (1.0 / rate if rate > 0 else 0.0)

    def take(self, now: float) -> str | None:
        """The next name, if one waits and its time has come."""
        if not self._waiting or self._rate <= 0 or now < self._next:
            return None
        self._next = max(self._next, now) + 1.0 / self._rate
        name = next(iter(self._waiting))
        del self._waiting[name]
        return name

    def put_back(self, name: str) -> None:
        """The name could not be dealt with: it waits again, at the end."""
        if name in self._known:
            self._waiting[name] = None
