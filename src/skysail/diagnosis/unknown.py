"""Why a job that somebody asks about is not there: other scheduler, suspended, no pods made. Pure."""

from skysail.batch.controllers.owners import top_owner
from skysail.diagnosis.snapshot import Snapshot


def why_unknown(snapshot: Snapshot, asked: str) -> str:
    """What can be said about a job of which the engine knows no pod.

    Args:
        snapshot: What is looked at.
        asked: `namespace/name`, or `Kind/namespace/name`.
    """
    *kind, namespace, name = asked.split("/")
    others = {
        pod.spec.scheduler_name or "default-scheduler"
        for pod in snapshot.pods
        if pod.namespace == namespace
        and (pod.name == name or ((owner := top_owner(pod)) is not None and owner.name == name))
    }
    if others:
        words = f"the pods of {asked!r} are scheduled by {', '.join(sorted(others))}, not by {snapshot.scheduler_name}"
        return f"{words}; `skysail explain --pod namespace/name` tells of pods scheduled one at a time"
    if kind and kind[0].lower() not in ("job", "podgroup"):
        return f"no pod of {snapshot.scheduler_name} belongs to a job {asked!r}"
    for job in snapshot.jobs:
        if (job.namespace, job.name) == (namespace, name):
            if job.spec.suspend:
                return f"Job {namespace}/{name} is suspended: it has no pods"
            finished = [each.type for each in job.status.conditions if each.status == "True"]
            if finished:
                return f"Job {namespace}/{name} has no pods any more: {', '.join(finished)}"
            return (
                f"Job {namespace}/{name} has no pods: its controller could not make them; "
                f"kubectl describe job {name} tells why"
            )
    return f"no pod of {snapshot.scheduler_name} belongs to a job {asked!r}, and there is no Job of that name"
