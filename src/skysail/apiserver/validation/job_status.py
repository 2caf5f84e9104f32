"""What a Job's controller may report.

Source: pkg/apis/batch/validation/validation.go ValidateJobStatus, v1.36; pkg/registry/batch/job/strategy.go.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import OMITTED, FieldError, invalid, required
from skysail.apiserver.validation.field import Errors, non_negative


def is_true(status: Raw, kind: str) -> bool:
    """Whether a status has a condition that is true."""
    return any(c.get("type") == kind and c.get("status") == "True" for c in status.get("conditions") or ())


def job_status_update(new: Raw, old: Raw) -> Errors:
    """Check the counts a Job's controller reports."""
    status = new.get("status") or {}
    errors: Errors = []
    for key in ("active", "succeeded", "failed", "ready", "terminating"):
        errors += non_negative(status.get(key), f"status.{key}")
    return errors + _finished(status, old.get("status") or {})


def _finished(status: Raw, before: Raw) -> Errors:
    errors: Errors = []
    complete, failed = is_true(status, "Complete"), is_true(status, "Failed")
    path = "status.conditions"
    if complete and failed:
        errors.append(FieldError(path, "Invalid", OMITTED, "cannot set Complete=True and Failed=true conditions"))
    if status.get("completionTime") is not None and not complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid("status.completionTime", status["completionTime"], detail))
    if complete and status.get("completionTime") is None:
        errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    newly_failed = failed and not is_true(before, "Failed")
    if newly_failed and not is_true(status, "FailureTarget"):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(FieldError(path, "Invalid", OMITTED, detail))
    newly_complete = complete and not is_true(before, "Complete")
    if newly_complete and not is_true(status, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(FieldError(path, "Invalid", OMITTED, detail))
    if (complete or failed) and (status.get("active") or 0) > 0:
        errors.append(invalid("status.active", status["active"], "active>0 is invalid for finished job"))
    if (newly_complete or newly_failed) and status.get("startTime") is None:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    for kind in ("Failed", "Complete", "FailureTarget"):
        if is_true(before, kind) and not is_true(status, kind):
            errors.append(FieldError(path, "Invalid", OMITTED, f"cannot disable the terminal {kind}=True condition"))
    if (status.get("failed") or 0) < (before.get("failed") or 0):
        errors.append(invalid("status.failed", status.get("failed") or 0, "cannot decrease the failed counter"))
    return errors
