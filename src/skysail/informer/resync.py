"""How often a listener is told again about everything.

Source: k8s.io/client-go/tools/cache/shared_informer.go (`determineResyncPeriod`, `shouldResync`), v1.36. Differs: a
listener that asked for no resync is never in the set of those that get one.
"""

from dataclasses import dataclass

MINIMUM_RESYNC_SECONDS = 1.0


@dataclass(slots=True)
class ResyncSchedule:
    """One listener's resyncs.

    Attributes:
        requested_seconds: What the listener asked for; 0 for none.
        period_seconds: What it gets; 0 for none.
        next_at: Monotonic seconds of its next resync.
        is_due: Whether the resync that is going on concerns it.
    """

    requested_seconds: float
    period_seconds: float
    next_at: float
    is_due: bool

    @classmethod
    def plan(cls, requested_seconds: float, check_seconds: float, now: float) -> "ResyncSchedule":
        """The schedule of a new listener.

        Args:
            requested_seconds: What it asks for; 0 for none.
            check_seconds: How often the informer looks whether anybody is due; 0 for never.
            now: Monotonic seconds.
        """
        period = effective_period(requested_seconds, check_seconds)
        return cls(requested_seconds, period, now + period, period > 0)

    def check_period_changed(self, check_seconds: float) -> None:
        """The informer looks at another rhythm from now on."""
        self.period_seconds = effective_period(self.requested_seconds, check_seconds)

    def check(self, now: float) -> bool:
        """Whether the listener takes part in a resync at this moment; its next one is scheduled if so."""
        self.is_due = self.period_seconds > 0 and now >= self.next_at
        if self.is_due:
            self.next_at = now + self.period_seconds
        return self.is_due


def effective_period(requested_seconds: float, check_seconds: float) -> float:
    """No resync where none is asked for or the informer does none; else not more often than the informer looks."""
    if requested_seconds == 0 or check_seconds == 0:
        return 0.0
    return max(requested_seconds, check_seconds)
