"""Never a critical pod: what the cluster itself needs is nobody's victim."""

from collections.abc import Sequence
from typing import Final

from skysail.batch.model.job import Job, Task
from skysail.batch.session import Arguments, Session

CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
CRITICAL_NAMESPACE: Final = "kube-system"
CRITICAL_PRIORITY: Final = 2_000_000_000


def is_critical(task: Task) -> bool:
    """Whether the cluster needs it."""
    pod = task.pod
    if pod.spec.priority_class_name in CRITICAL_CLASSES or pod.metadata.namespace == CRITICAL_NAMESPACE:
        return True
    return task.priority >= CRITICAL_PRIORITY


class Conformance:
    """The plugin."""

    name = "conformance"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        session.add_preemptable(self.name, self.evictable, lambda job: None)
        session.add_reclaimable(self.name, self.evictable, lambda job: None)
        session.add_victim(self.name, self.movable)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def evictable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """All but critical pods."""
        return [task for task in candidates if not is_critical(task)]

    def movable(self, nobody: None, candidates: Sequence[Task]) -> list[Task]:
        """All but critical pods."""
        return [task for task in candidates if not is_critical(task)]
