"""Which replica set is the new one, which are old, and which number each roll-out bears.

A deployment's history is its replica sets: each remembers in annotations the number of the roll-out it served, and
the numbers it served before when a roll-back brought it to the top again.

Source: pkg/controller/deployment/util/deployment_util.go, v1.36.
"""

from collections.abc import Iterable, Sequence

from skysail.api.apps import Deployment, ReplicaSet
from skysail.controllers.deployment.scaling import DESIRED_REPLICAS, MAX_REPLICAS, by_creation
from skysail.controllers.templates import templates_equal

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_HISTORY_CHARACTERS = 2000

NOT_COPIED = frozenset({LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})


def find_new(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The set whose template equals the deployment's; the oldest, should several do."""
    template = deployment.spec.template
    return next((item for item in by_creation(replica_sets) if templates_equal(item.spec.template, template)), None)


def find_old(new: ReplicaSet | None, replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """All but the new one, oldest first."""
    return [item for item in by_creation(replica_sets) if new is None or item.uid != new.uid]


def revision_of(replica_set: ReplicaSet) -> int | None:
    """The number of the roll-out it serves: 0 without annotation, None when that is no number."""
    text = replica_set.metadata.annotations.get(REVISION)
    if text is None:
        return 0
    try:
        return int(text)
    except ValueError:
        return None


def max_revision(replica_sets: Iterable[ReplicaSet]) -> int:
    """The highest number given out, 0 when none was."""
    return max((revision_of(item) or 0 for item in replica_sets), default=0)


def last_revision(replica_sets: Iterable[ReplicaSet]) -> int:
    """The second highest number: what a roll-back without a number goes back to. 0 when there is none."""
    numbers = sorted(filter(None, map(revision_of, replica_sets)), reverse=True)
    return numbers[1] if len(numbers) > 1 else 0


def by_revision(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Oldest roll-out first; equals by creation and name."""
    return sorted(by_creation(replica_sets), key=lambda item: revision_of(item) or 0)


def copied_annotations(deployment: Deployment) -> dict[str, str]:
    """What a replica set takes over from its deployment's annotations."""
    return {key: value for key, value in deployment.metadata.annotations.items() if key not in NOT_COPIED}


def new_set_annotations(deployment: Deployment, replica_set: ReplicaSet, old: Sequence[ReplicaSet]) -> dict[str, str]:
    """The annotations that the existing new set lacks, or has with another value.

    Its number must be the highest: when it is not, because the deployment went back to it, it gets the next one and
    remembers the one it had. Annotations taken off the deployment stay on the set.
    """
    has = replica_set.metadata.annotations
    changes = {key: value for key, value in copied_annotations(deployment).items() if has.get(key) != value}
    revision, number = max_revision(old) + 1, revision_of(replica_set)
    if number is None or number >= revision:
        return changes
    changes[REVISION] = str(revision)
    if REVISION in has and (history := lengthened_history(has.get(REVISION_HISTORY, ""), has[REVISION])) is not None:
        changes[REVISION_HISTORY] = history
    return changes


def lengthened_history(history: str, number: str, limit: int = MAX_HISTORY_CHARACTERS) -> str | None:
    """The history with one more number, its oldest entries dropped to fit; None when nothing fits."""
    if not history:
        return number
    numbers = history.split(",")
    length = len(history) + len(number) + 1
    while length > limit and numbers:
        length -= len(numbers.pop(0)) + 1
    return ",".join([*numbers, number]) if length <= limit else None


def rollback_revision(deployment: Deployment) -> int | None:
    """The number asked for by the deprecated roll-back annotation (0: the last one); None when not asked."""
    text = deployment.metadata.annotations.get(ROLLBACK_TO, "")
    try:
        return int(text) if text else None
    except ValueError:
        return None
