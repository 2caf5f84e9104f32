"""When a finished job is to go.

Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go, v1.36.
"""

from datetime import datetime, timedelta

from skysail.api.batch import Job

_ENDS = ("Complete", "Failed")


def expires_at(job: Job) -> datetime | None:
    """When the job is to be deleted; None when it never is, is not done, or is being deleted already."""
    lifetime = job.spec.ttl_seconds_after_finished
    if lifetime is None or job.metadata.deletion_timestamp is not None:
        return None
    for condition in job.status.conditions:
        if condition.type in _ENDS and condition.status == "True" and condition.last_transition_time is not None:
            return condition.last_transition_time + timedelta(seconds=lifetime)
    return None
