"""The rows of what runs pods, and of what limits them.

Source: pkg/printers/internalversion/printers.go, v1.36.
"""

from collections.abc import Sequence
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.tables.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    condition,
    human_duration,
    labels_text,
    moment,
    part,
    selector_text,
    since,
    template_cells,
)

Row = Sequence[object]


def _name(obj: Raw) -> str:
    return str(obj["metadata"].get("name", ""))


def _number(obj: Raw, name: str) -> int:
    return int(obj.get(name) or 0)


def deployment_cells(obj: Raw, now: datetime) -> Row:
    """Name, Ready, Up-to-date, Available, Age; Containers, Images, Selector."""
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{_number(status, 'readyReplicas')}/{_number(spec, 'replicas')}"
    updated, available = _number(status, "updatedReplicas"), _number(status, "availableReplicas")
    selector = selector_text(spec.get("selector"))
    return [
        _name(obj), ready, updated, available, age(obj, now), *template_cells(spec),
        "" if selector == NONE else selector,
    ]  # fmt: skip


def replicated_cells(obj: Raw, now: datetime) -> Row:
    """Name, Desired, Current, Ready, Age; Containers, Images, Selector."""
    spec, status = part(obj, "spec"), part(obj, "status")
    selector = spec.get("selector")
    is_set = obj.get("kind") == "ReplicaSet" or (isinstance(selector, dict) and "matchLabels" in selector)
    return [
        _name(obj), _number(spec, "replicas"), _number(status, "replicas"), _number(status, "readyReplicas"),
        age(obj, now), *template_cells(spec), selector_text(selector) if is_set else labels_text(selector),
    ]  # fmt: skip


def stateful_set_cells(obj: Raw, now: datetime) -> Row:
    """Name, Ready, Age; Containers, Images."""
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{_number(status, 'readyReplicas')}/{_number(spec, 'replicas')}"
    return [_name(obj), ready, age(obj, now), *template_cells(spec)]


def daemon_set_cells(obj: Raw, now: datetime) -> Row:
    """Name, five counts, Node Selector, Age; Containers, Images, Selector."""
    spec, status = part(obj, "spec"), part(obj, "status")
    counts = (
        "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
    )  # fmt: skip
    return [
        _name(obj), *(_number(status, count) for count in counts),
        labels_text(part(spec, "template", "spec").get("nodeSelector")), age(obj, now), *template_cells(spec),
        selector_text(spec.get("selector")),
    ]  # fmt: skip


def job_cells(obj: Raw, now: datetime) -> Row:
    """Name, Status, Completions, Duration, Age; Containers, Images, Selector."""
    spec, status = part(obj, "spec"), part(obj, "status")
    succeeded = _number(status, "succeeded")
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        parallelism = _number(spec, "parallelism")
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    started = moment(status.get("startTime"))
    duration = "" if started is None else human_duration((moment(status.get("completionTime")) or now) - started)
    return [
        _name(obj), _job_status(obj), completions, duration, age(obj, now), *template_cells(spec),
        selector_text(spec.get("selector")),
    ]  # fmt: skip


def _job_status(obj: Raw) -> str:
    conditions = part(obj, "status").get("conditions")
    for kind in ("Complete", "Failed"):
        if condition(conditions, kind) == "True":
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    shown = (
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    )
    return next((word for kind, word in shown if condition(conditions, kind) == "True"), "Running")


def cron_job_cells(obj: Raw, now: datetime) -> Row:
    """Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age; Containers, Images, Selector."""
    spec, status = part(obj, "spec"), part(obj, "status")
    last = status.get("lastScheduleTime")
    job = part(spec, "jobTemplate", "spec")
    suspend = UNSET if spec.get("suspend") is None else str(bool(spec["suspend"]))
    return [
        _name(obj), spec.get("schedule", ""), spec.get("timeZone") or NONE, suspend, len(status.get("active") or ()),
        since(last, now) if last else NONE, age(obj, now), *template_cells(job), selector_text(job.get("selector")),
    ]  # fmt: skip


def controller_revision_cells(obj: Raw, now: datetime) -> Row:
    """Name, Controller, Revision, Age."""
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((ref for ref in owners if ref.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [_name(obj), controller, _number(obj, "revision"), age(obj, now)]


def autoscaler_cells(obj: Raw, now: datetime) -> Row:
    """Name, Reference, Targets, MinPods, MaxPods, Replicas, Age."""
    spec, status = part(obj, "spec"), part(obj, "status")
    target = part(spec, "scaleTargetRef")
    minimum = UNSET if spec.get("minReplicas") is None else str(spec["minReplicas"])
    return [
        _name(obj), f"{target.get('kind', '')}/{target.get('name', '')}", _targets(spec, status), minimum,
        _number(spec, "maxReplicas"), _number(status, "currentReplicas"), age(obj, now),
    ]  # fmt: skip


def _targets(spec: Raw, status: Raw) -> str:
    if "metrics" not in spec and spec.get("targetCPUUtilizationPercentage") is not None:
        now = status.get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if now is None else f'{now}%'}/{spec['targetCPUUtilizationPercentage']}%"
    current: Sequence[Raw] = status.get("currentMetrics") or ()
    shown = [
        _metric(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(spec.get("metrics") or ())
    ]
    if not shown:
        return NONE
    text = ", ".join(shown[:2])
    return f"{text} + {len(shown) - 2} more..." if len(shown) > 2 else text


_SOURCES = {
    "External": "external", "Pods": "pods", "Object": "object", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip


def _metric(metric: Raw, current: Raw) -> str:
    source = _SOURCES.get(metric.get("type", ""))
    if source is None:
        return "<unknown type>"
    target, reached = part(metric, source, "target"), part(current, source, "current")
    average = target.get("averageValue")
    if source in ("resource", "containerResource"):
        name = part(metric, source).get("name", "")
        if average is not None:
            return f"{name}: {reached.get('averageValue', UNKNOWN)}/{average}"
        now, wanted = reached.get("averageUtilization"), target.get("averageUtilization")
        return f"{name}: {UNKNOWN if now is None else f'{now}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if source == "pods":
        return f"{reached.get('averageValue', UNKNOWN)}/{average or 0}"
    if average is not None:
        return f"{reached.get('averageValue', UNKNOWN)}/{average} (avg)"
    return f"{reached.get('value', UNKNOWN)}/{target.get('value', 0)}"


def disruption_budget_cells(obj: Raw, now: datetime) -> Row:
    """Name, Min Available, Max Unavailable, Allowed Disruptions, Age."""
    spec = part(obj, "spec")
    limits = (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return [
        _name(obj), *("N/A" if limit is None else str(limit) for limit in limits),
        _number(part(obj, "status"), "disruptionsAllowed"), age(obj, now),
    ]  # fmt: skip


def pod_group_cells(obj: Raw, now: datetime) -> Row:
    """Name, Policy, Workload, Status, Age."""
    spec, conditions = part(obj, "spec"), part(obj, "status").get("conditions") or ()
    policy = "Gang" if part(spec, "schedulingPolicy").get("gang") is not None else "Basic"
    scheduled = condition(conditions, "PodGroupScheduled")
    status = {None: "Pending", "True": "Scheduled"}.get(scheduled, "Unschedulable")
    for found in conditions:
        if found.get("type") == "DisruptionTarget":
            status = found.get("reason", "")
    workload = part(spec, "podGroupTemplateRef", "workload").get("workloadName") or NONE
    return [_name(obj), policy, workload, status, age(obj, now)]


def scale_cells(obj: Raw, now: datetime) -> Row:
    """Name, Desired, Available, Age."""
    spec, status = part(obj, "spec"), part(obj, "status")
    return [_name(obj), _number(spec, "replicas"), _number(status, "replicas"), age(obj, now)]
