"""Events: why a job waits, on its PodGroup and on the object whose pods it groups, when that changes."""

from skysail.batch.controllers.owners import top_owner
from skysail.batch.engine import Cycle
from skysail.batch.feeding import Feeding
from skysail.batch.kinds import POD_GROUPS, PodGroup
from skysail.batch.model.job import Job
from skysail.controller.events import NORMAL, WARNING, Reference
from skysail.controller.recorder import EventRecorder


class OutcomeEvents:
    """Tells of outcomes.

    Args:
        recorder: Writes Events.
        feeding: Knows the object behind each gang.
    """

    def __init__(self, recorder: EventRecorder, feeding: Feeding) -> None:
        self._recorder, self._feeding = recorder, feeding

    def observe(self, cycle: Cycle) -> None:
        """A cycle was decided: tell what it found out about jobs, and whom it evicts for whom."""
        for job in cycle.outcomes:
            if job.outcome is not None:
                for about in self._abouts(job):
                    words = f"{job.name}: {job.outcome.message}"
                    self._recorder.event(about, WARNING, job.outcome.code.value, words)
        for batch in cycle.effects.binds:
            for about in self._abouts(batch.job):
                self._recorder.event(about, NORMAL, "Scheduled", f"{batch.job.name}: {len(batch.tasks)} pods bound")
        for eviction in cycle.effects.evictions:
            words = f"leaves for {eviction.claim.job} ({eviction.claim.id})"
            self._recorder.event(eviction.task.pod, NORMAL, "Evicted", words)

    def _abouts(self, job: Job) -> list[object]:
        """The gang's object, where it is ours, and its pods' top owner, where one of them knows its uid."""
        found: list[object] = []
        known = self._feeding.groups.get(job.key)
        if known is not None and known[0] is POD_GROUPS and isinstance(known[1], PodGroup):
            group: PodGroup = known[1]
            meta = group.metadata
            version = POD_GROUPS.api_version
            found.append(Reference(version, "PodGroup", meta.namespace, meta.name, meta.uid, meta.resource_version))
            for each in meta.owner_references:
                if each.controller:
                    found.append(Reference(each.api_version, each.kind, meta.namespace, each.name, each.uid, ""))
                    return found
        owners = {owner for task in job.tasks.values() if (owner := top_owner(task.pod)) is not None and owner.uid}
        for owner in sorted(owners, key=lambda owner: (owner.kind, owner.name)):
            namespace = job.key.removeprefix("pod:").partition("/")[0]
            found.append(Reference(owner.api_version, owner.kind, namespace, owner.name, owner.uid, ""))
        return found
