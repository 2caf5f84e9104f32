"""Whether a node is alive: it is, as long as it has given a sign of life not too long ago.

A sign of life is a renewed Lease or a new heartbeat in the Ready condition. Times are our own, of when we saw a sign,
never the node's: clocks differ.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go `tryUpdateNodeHealth`, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from skysail.api.coordination import Lease
from skysail.api.node import Node, NodeCondition

READY = "Ready"
WATCHED = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """How patient to be.

    Attributes:
        grace_seconds: How long a node may be silent.
        startup_grace_seconds: How long a node that never said anything may be silent.
    """

    grace_seconds: float = 50.0
    startup_grace_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """What is remembered of a node. It outlives the node, and serves the next of its name.

    Attributes:
        ready: Its Ready condition as last seen; None when it had none.
        probe_time: When it last gave a sign of life.
        transition_time: When its readiness last changed.
        renew_time: The last renewal of its Lease that counted; empty when none did.
    """

    ready: NodeCondition | None
    probe_time: datetime
    transition_time: datetime
    renew_time: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of a node.

    Attributes:
        record: To remember.
        observed: The Ready condition as found.
        current: The Ready condition as it is to be; None while it is missing and nothing is to be done.
        conditions: All conditions to write; None when nothing is to be written.
    """

    record: HealthRecord
    observed: NodeCondition
    current: NodeCondition | None
    conditions: tuple[NodeCondition, ...] | None = None


def ready_condition(node: Node) -> NodeCondition | None:
    """The node's Ready condition."""
    return next((item for item in node.status.conditions if item.type == READY), None)


def judge_health(
    node: Node, record: HealthRecord | None, lease: Lease | None, now: datetime, settings: HealthSettings
) -> Verdict:
    """Whether the node is alive, and what to write if it is not.

    Args:
        node: As read.
        record: What is remembered of it.
        lease: Its Lease, if it has one.
        now: The time.
        settings: How patient to be.
    """
    current = ready_condition(node)
    saved_renewal = record.renew_time if record is not None else ""
    if current is None:
        born = node.metadata.creation_timestamp or now
        observed = NodeCondition(type=READY, status="Unknown", last_heartbeat_time=born, last_transition_time=born)
        grace = settings.startup_grace_seconds
        record = replace(record, ready=None) if record is not None else HealthRecord(None, born, born)
    else:
        observed, grace = current, settings.grace_seconds
        record = _seen(record, current, now)
    renewal = lease.spec.renew_time if lease is not None else ""
    if renewal and renewal > saved_renewal:
        record = replace(record, renew_time=renewal, probe_time=now)
    if now <= record.probe_time + timedelta(seconds=grace):
        return Verdict(record, observed, current)
    conditions = _unknown_conditions(node, now.replace(microsecond=0))
    current = next(item for item in conditions if item.type == READY)
    if current == observed:
        return Verdict(record, observed, current)
    record = HealthRecord(current, record.probe_time, now, renewal or "")
    return Verdict(record, observed, current, conditions)


def _seen(record: HealthRecord | None, current: NodeCondition, now: datetime) -> HealthRecord:
    """The record after a look at a Ready condition: a new heartbeat is a sign of life."""
    if record is None or record.ready is None:
        return HealthRecord(current, now, now)
    if record.ready.last_heartbeat_time == current.last_heartbeat_time:
        return record
    changed = record.ready.last_transition_time != current.last_transition_time
    return HealthRecord(current, now, now if changed else record.transition_time)


def _unknown_conditions(node: Node, now: datetime) -> tuple[NodeCondition, ...]:
    """The node's conditions with all watched ones Unknown."""
    known = {item.type for item in node.status.conditions}
    changed = tuple(_unknown(item, now) if item.type in WATCHED else item for item in node.status.conditions)
    missing = tuple(
        NodeCondition(
            type=name,
            status="Unknown",
            reason="NodeStatusNeverUpdated",
            message="Kubelet never posted node status.",
            last_heartbeat_time=node.metadata.creation_timestamp,
            last_transition_time=now,
        )
        for name in WATCHED
        if name not in known
    )
    return changed + missing


def _unknown(condition: NodeCondition, now: datetime) -> NodeCondition:
    if condition.status == "Unknown":
        return condition
    return msgspec.structs.replace(
        condition,
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
        last_transition_time=now,
    )


def zone_of(node: Node) -> str:
    """The failure zone of a node: region and zone together; empty when it has neither label."""
    labels = node.metadata.labels
    region = labels.get("topology.kubernetes.io/region") or labels.get("failure-domain.beta.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("failure-domain.beta.kubernetes.io/zone", "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def is_counted(node: Node) -> bool:
    """Whether the node counts when a zone's health is worked out."""
    return "node.kubernetes.io/exclude-disruption" not in node.metadata.labels


def count_ready(conditions: Sequence[NodeCondition | None]) -> int:
    """How many of these Ready conditions are True."""
    return sum(item is not None and item.status == "True" for item in conditions)
