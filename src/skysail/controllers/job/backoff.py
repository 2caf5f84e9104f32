"""How long a job waits after failures before it makes new pods.

10 s after the first failure since the last success, twice as long after each further one, ten minutes at most. The
record of failures lives in memory alone; after a restart the wait may be shorter.

Source: pkg/controller/job/backoff_utils.go, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from skysail.api.core import Pod
from skysail.controllers.pods import pod_condition

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class BackoffRecord:
    """What a job remembers of its failures.

    Attributes:
        failures: How many since the last success.
        last_failure: When the last of them ended.
    """

    failures: int = 0
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> "BackoffRecord":
        """The record with pods that have finished since: a success wipes out the failures before it."""
        failures = sorted(filter(None, map(finished_at, failed)))
        if not succeeded:
            if not failures:
                return self
            return BackoffRecord(self.failures + len(failures), failures[-1])
        last_success = max(filter(None, map(finished_at, succeeded)), default=None)
        later = [moment for moment in failures if last_success is None or moment > last_success]
        return BackoffRecord(len(later), later[-1] if later else None)

    def remaining_seconds(self, now: datetime) -> float:
        """How long still to wait; 0 when not at all."""
        return remaining_seconds(self.failures, self.last_failure, now)


def remaining_seconds(failures: int, last_failure: datetime | None, now: datetime) -> float:
    """How long still to wait after that many failures, the last of them at that time."""
    if failures == 0 or last_failure is None:
        return 0.0
    wait = min(FIRST_SECONDS * 2.0 ** min(failures - 1, 30), LONGEST_SECONDS)
    return max(0.0, wait - (now - last_failure).total_seconds())


def finished_at(pod: Pod) -> datetime | None:
    """When a finished pod ended: by its containers, its Ready condition, its deletion, or else its creation."""
    moment = _containers_finished_at(pod)
    if moment is not None:
        return moment
    ready = pod_condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)
    return meta.creation_timestamp


def _containers_finished_at(pod: Pod) -> datetime | None:
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    statuses = [
        *pod.status.container_statuses,
        *(status for status in pod.status.init_container_statuses if status.name in sidecars),
    ]
    moments = [
        status.state.terminated.finished_at
        if status.state is not None and status.state.terminated is not None
        else None
        for status in statuses
    ]
    if any(moment is None for moment in moments):
        return None
    return max((moment for moment in moments if moment is not None), default=None)
