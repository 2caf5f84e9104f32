"""CronJobs.

Source: pkg/apis/batch/validation/validation.go ValidateCronJobCreate, v1.36.
"""

import re

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, not_supported, required
from skysail.apiserver.validation.cron import schedule_fault
from skysail.apiserver.validation.field import Errors, non_negative
from skysail.apiserver.validation.jobs import job_spec

_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def cron_job(obj: Raw) -> Errors:
    """Check a new CronJob."""
    errors = _cron_job_spec(obj.get("spec") or {}, None)
    name = obj["metadata"].get("name") or ""
    if len(name) > 52:
        errors.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return errors


def cron_job_update(new: Raw, old: Raw) -> Errors:
    """Check the new state of a CronJob."""
    return _cron_job_spec(new.get("spec") or {}, old.get("spec") or {})


def _cron_job_spec(spec: Raw, old: Raw | None) -> Errors:
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    errors: Errors = []
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        errors += _schedule(schedule, zone, old)
    errors += non_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        errors += _time_zone(zone, "spec.timeZone")
    policy = spec.get("concurrencyPolicy") or ""
    known = ("Allow", "Forbid", "Replace")
    if policy not in known:
        path = "spec.concurrencyPolicy"
        errors.append(not_supported(path, policy, known) if policy else required(path))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors += job_spec(template, "spec.jobTemplate.spec")
    if template.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        errors.append(invalid("spec.jobTemplate.spec.selector", template["selector"], detail))
    if template.get("manualSelector"):
        errors.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += non_negative(spec.get(key), f"spec.{key}")
    return errors


def _schedule(schedule: str, zone: str | None, old: Raw | None) -> Errors:
    path = "spec.schedule"
    fault = schedule_fault(schedule)
    errors = [invalid(path, schedule, fault)] if fault else []
    allowed = "TZ" in ((old or {}).get("schedule") or "")
    if "TZ" in schedule:
        if allowed and zone is not None:
            detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            errors.append(invalid(path, schedule, detail))
        elif not allowed:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid(path, schedule, detail))
    return errors


def _time_zone(zone: str, path: str) -> Errors:
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, detail)]
    return []
