"""The rows of nodes, namespaces, events, configuration and claims on devices.

Source: pkg/printers/internalversion/printers.go, v1.36.
"""

from collections.abc import Sequence
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.tables.cells import NONE, UNKNOWN, age, condition, part, since

Row = Sequence[object]

_ROLE_PREFIX, _ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"


def node_cells(obj: Raw, now: datetime) -> Row:
    """Name, Status, Roles, Age, Version; Internal-IP, External-IP, OS-Image, Kernel-Version, Container-Runtime."""
    status = part(obj, "status")
    ready = condition(status.get("conditions"), "Ready")
    words = [{None: "Unknown", "True": "Ready"}.get(ready, "NotReady")]
    if part(obj, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    info = part(status, "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        obj["metadata"]["name"], ",".join(words), _roles(part(obj, "metadata", "labels")), age(obj, now),
        info.get("kubeletVersion", ""), _address(status, "InternalIP"), _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN, kernel, info.get("containerRuntimeVersion") or UNKNOWN,
    ]  # fmt: skip


def _roles(labels: Raw) -> str:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)} | {labels.get(_ROLE)}
    return ",".join(sorted(role for role in roles if role)) or NONE


def _address(status: Raw, kind: str) -> str:
    return next((a.get("address", "") for a in status.get("addresses") or () if a.get("type") == kind), NONE)


def namespace_cells(obj: Raw, now: datetime) -> Row:
    """Name, Status, Age."""
    return [obj["metadata"]["name"], part(obj, "status").get("phase", ""), age(obj, now)]


def event_cells(obj: Raw, now: datetime) -> Row:
    """Last Seen, Type, Reason, Object, Subobject, Source, Message, First Seen, Count, Name; both event kinds."""
    about = part(obj, "involvedObject") or part(obj, "regarding")
    source = part(obj, "source") or part(obj, "deprecatedSource")
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    host = source.get("host") or obj.get("reportingInstance")
    target = about.get("kind", "").lower() + (f"/{about['name']}" if about.get("name") else "")
    message = (obj.get("message") or obj.get("note") or "").strip()
    return [
        since(last, now), obj.get("type", ""), obj.get("reason", ""), target, about.get("fieldPath", ""),
        f"{component}, {host}" if host else component, message, since(first, now), count, obj["metadata"]["name"],
    ]  # fmt: skip


def secret_cells(obj: Raw, now: datetime) -> Row:
    """Name, Type, Data, Age."""
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def config_map_cells(obj: Raw, now: datetime) -> Row:
    """Name, Data, Age."""
    return [obj["metadata"]["name"], len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def plain_cells(obj: Raw, now: datetime) -> Row:
    """Name, Age."""
    return [obj["metadata"]["name"], age(obj, now)]


def lease_cells(obj: Raw, now: datetime) -> Row:
    """Name, Holder, Age."""
    return [obj["metadata"]["name"], part(obj, "spec").get("holderIdentity") or "", age(obj, now)]


def lease_candidate_cells(obj: Raw, now: datetime) -> Row:
    """Name, LeaseName, BinaryVersion, EmulationVersion, Age."""
    spec = part(obj, "spec")
    names = ("leaseName", "binaryVersion", "emulationVersion")
    return [obj["metadata"]["name"], *(spec.get(name, "") for name in names), age(obj, now)]


def priority_class_cells(obj: Raw, now: datetime) -> Row:
    """Name, Value, Global-Default, Age, PreemptionPolicy."""
    return [
        obj["metadata"]["name"], obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now),
        obj.get("preemptionPolicy") or "",
    ]  # fmt: skip


def runtime_class_cells(obj: Raw, now: datetime) -> Row:
    """Name, Handler, Age."""
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]


def component_status_cells(obj: Raw, _: datetime) -> Row:
    """Name, Status, Message, Error."""
    for found in obj.get("conditions") or ():
        if found.get("type") == "Healthy":
            status = "Healthy" if found.get("status") == "True" else "Unhealthy"
            return [obj["metadata"]["name"], status, found.get("message", ""), found.get("error", "")]
    return [obj["metadata"]["name"], "Unknown", "", ""]


def quota_cells(obj: Raw, now: datetime) -> Row:
    """Name, Request, Limit, Age."""
    hard, used = part(obj, "status", "hard"), part(obj, "status", "used")
    shown = [(name, f"{name}: {used.get(name, '0')}/{hard[name]}") for name in sorted(hard)]
    limits = [text for name, text in shown if name.startswith("limits.")]
    requests = [text for name, text in shown if not name.startswith("limits.")]
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now)]


def resource_claim_cells(obj: Raw, now: datetime) -> Row:
    """Name, State, Age."""
    deleted, status = bool(obj["metadata"].get("deletionTimestamp")), part(obj, "status")
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    return [obj["metadata"]["name"], ",".join(states), age(obj, now)]


def resource_slice_cells(obj: Raw, now: datetime) -> Row:
    """Name, Node, Driver, Pool, Age."""
    spec = part(obj, "spec")
    pool = part(spec, "pool").get("name", "")
    return [obj["metadata"]["name"], spec.get("nodeName") or "", spec.get("driver", ""), pool, age(obj, now)]


def device_taint_cells(obj: Raw, now: datetime) -> Row:
    """Name, Key, Value, Effect, TimeAdded, Age."""
    taint = part(obj, "spec", "taint")
    added = since(taint["timeAdded"], now) if taint.get("timeAdded") else ""
    return [
        obj["metadata"]["name"], taint.get("key", ""), taint.get("value", ""), taint.get("effect", ""), added,
        age(obj, now),
    ]  # fmt: skip
