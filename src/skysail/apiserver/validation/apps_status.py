"""What controllers may report of Deployments and their kin.

Source: pkg/apis/apps/validation/validation.go Validate*Status, v1.36.
"""

from collections.abc import Callable

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid
from skysail.apiserver.validation.field import Errors, non_negative

Check = Callable[[Raw, Raw], Errors]


def counts(
    not_negative: tuple[str, ...], within_replicas: tuple[str, ...], *, ready_word: str = "readyReplicas"
) -> Check:
    """A check of a status made of counts.

    Args:
        not_negative: Counts that may not be below zero, in upstream's order.
        within_replicas: Counts that may not exceed `replicas`.
        ready_word: How the complaint names the count that `availableReplicas` may not exceed.
    """

    def check(new: Raw, old: Raw) -> Errors:
        status = new.get("status") or {}
        errors: Errors = []
        for key in not_negative:
            errors += non_negative(status.get(key), f"status.{key}")
        replicas = status.get("replicas") or 0
        for key in within_replicas:
            count = status.get(key) or 0
            if count > replicas:
                errors.append(invalid(f"status.{key}", count, "cannot be greater than status.replicas"))
        available = status.get("availableReplicas") or 0
        if within_replicas and available > (status.get("readyReplicas") or 0):
            errors.append(invalid("status.availableReplicas", available, f"cannot be greater than {ready_word}"))
        return errors + _collisions(status, old.get("status") or {})

    return check


def _collisions(status: Raw, before: Raw) -> Errors:
    new, old = status.get("collisionCount"), before.get("collisionCount")
    if new is not None and old is not None and new < old:
        return [invalid("status.collisionCount", new, "cannot be decremented")]
    return []


deployment = counts(
    (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "terminatingReplicas", "collisionCount",
    ),
    ("updatedReplicas", "readyReplicas", "availableReplicas"),
)  # fmt: skip
replica_set = counts(
    (
        "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
        "terminatingReplicas",
    ),
    ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)  # fmt: skip
replication_controller = counts(
    ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"),
    ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)
stateful_set = counts(
    (
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
        "collisionCount",
    ),
    ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    ready_word="status.readyReplicas",
)  # fmt: skip
daemon_set = counts(
    (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    ),
    (),
)  # fmt: skip
