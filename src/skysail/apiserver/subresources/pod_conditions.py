"""Setting a condition in a pod's status.

Source: pkg/api/pod/util.go UpdatePodCondition, v1.36.
"""

from datetime import datetime

from skysail.api.raw import Raw


def timestamp(now: datetime) -> str:
    """A time as it is written into objects."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def set_condition(pod: Raw, kind: str, status: str, now: datetime, *, reason: str = "", message: str = "") -> None:
    """Add or change one condition; the time of transition moves only with the status."""
    conditions: list[Raw] = list((pod.get("status") or {}).get("conditions") or ())
    known = next((index for index, item in enumerate(conditions) if item.get("type") == kind), None)
    condition: Raw = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": timestamp(now)}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    if known is None:
        conditions.append(condition)
    else:
        before = conditions[known]
        if before.get("status") == status:
            condition["lastTransitionTime"] = before.get("lastTransitionTime")
        condition["lastProbeTime"] = before.get("lastProbeTime")
        conditions[known] = condition
    pod.setdefault("status", {})["conditions"] = conditions
