"""What is owed to Kueue's objects: our statuses in its words."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from skysail.api.meta import Condition, format_time
from skysail.api.raw import Raw
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.model import specs
from skysail.batch.model.resources import FlavorResource

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def cluster_queue_status(
    status: QueueStatus,
    held: Mapping[FlavorResource, int],
    spec: specs.QueueSpec,
    old: Iterable[Raw] = (),
    now: datetime = EPOCH,
) -> Raw:
    """A ClusterQueue's status in Kueue's words.

    Args:
        status: As we have it.
        held: What its jobs hold.
        spec: The queue, for what of it is borrowed.
        old: The conditions it has.
        now: For what changes.
    """
    usage: dict[str, list[Raw]] = {}
    for key, figures in spec.figures.items():
        flavor, resource = key
        total, nominal = held.get(key, 0), figures.deserved or 0
        usage.setdefault(flavor, []).append(
            {
                "name": resource,
                "total": quantity(resource, total),
                "borrowed": quantity(resource, max(0, total - nominal)),
            }
        )
    flavors = [{"name": flavor, "resources": resources} for flavor, resources in usage.items()]
    return {
        "pendingWorkloads": status.pending + status.inqueue,
        "admittedWorkloads": status.running,
        "reservingWorkloads": status.running,
        "flavorsUsage": flavors,
        "flavorsReservation": flavors,
        "conditions": active(status.state == "Open", status.conditions, old, now),
    }


def local_queue_status(
    pending: int, admitted: int, problem: str = "", old: Iterable[Raw] = (), now: datetime = EPOCH
) -> Raw:
    """A LocalQueue's status in Kueue's words.

    Args:
        pending: How many of its jobs wait.
        admitted: How many run.
        problem: Why it lets none out; empty when it does.
        old: The conditions it has.
        now: For what changes.
    """
    faults = [Condition(type="Misconfigured", status="True", message=problem)] if problem else []
    return {
        "pendingWorkloads": pending,
        "admittedWorkloads": admitted,
        "reservingWorkloads": admitted,
        "conditions": active(not problem, faults, old, now),
    }


def active(holds: bool, faults: Iterable[Condition], old: Iterable[Raw], now: datetime) -> list[Raw]:
    """Kueue's condition `Active`: whether a queue can admit."""
    wrong = next((each for each in faults if each.type == "Misconfigured"), None)
    is_active = holds and wrong is None
    reason = "Ready" if is_active else "Misconfigured" if wrong is not None else "Stopped"
    message = wrong.message if wrong is not None else "Can admit new workloads" if is_active else "is stopped"
    known = next((each for each in old if each.get("type") == "Active"), None)
    return [
        {
            "type": "Active",
            "status": "True" if is_active else "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": _carried_time(known, is_active, now),
        }
    ]


def quantity(resource: str, amount: int) -> str:
    """An amount as a quantity's text."""
    if resource != "cpu":
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def workload_status(status: PodGroupStatus, spec: Raw, queue: str, old: Iterable[Raw], now: datetime) -> Raw:
    """A Workload's status in Kueue's words: whether its quota is reserved, it is admitted, its pods run, it is done.

    Args:
        status: Of the gang that its pods are.
        spec: The Workload's.
        queue: The ClusterQueue.
        old: The conditions it has.
        now: For what changes.
    """
    waits = status.scheduling_conditions[0] if status.scheduling_conditions else None
    ended, runs = status.phase == "Completed", status.phase in ("Running", "Completed")
    reason, message = (waits.code, waits.message) if waits is not None else ("Pending", "waits")
    wanted = [
        ("QuotaReserved", runs, "QuotaReserved" if runs else "Pending", "" if runs else message),
        ("Admitted", runs, "Admitted" if runs else reason, "" if runs else message),
        ("PodsReady", status.phase == "Running", "Started" if runs else "WaitForStart", ""),
        *([("Finished", True, "Failed" if status.failed else "Succeeded", "")] if ended else []),
    ]
    known = {each.get("type"): each for each in old}
    sets = [{"name": each.get("name", ""), "count": each.get("count", 1)} for each in spec.get("podSets") or ()]
    return {
        "conditions": [
            {
                "type": kind,
                "status": "True" if holds else "False",
                "reason": why,
                "message": words,
                "lastTransitionTime": _carried_time(known.get(kind), holds, now),
            }
            for kind, holds, why, words in wanted
        ],
        "admission": {"clusterQueue": queue, "podSetAssignments": sets} if runs and not ended else None,
    }


def _carried_time(known: Raw | None, holds: bool, now: datetime) -> str:
    if known is not None and known.get("status") == ("True" if holds else "False") and known.get("lastTransitionTime"):
        return str(known["lastTransitionTime"])
    return str(format_time(now))
