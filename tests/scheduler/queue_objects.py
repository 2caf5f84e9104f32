"""Builders for the queue's tests: pods by name, and plugins whose hints are switches."""

from collections.abc import Callable, Sequence

from skysail.api.core import Pod, PodSchedulingGate, PodSpec, PodStatus
from skysail.api.meta import ObjectMeta
from skysail.scheduler.framework.events import (
    NODE,
    POD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.queue.gates import GateCheck, QueueProfile
from skysail.scheduler.queue.hints import HintMap
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue

NODE_ADD = ClusterEvent(NODE, ActionType.ADD)
POD_DELETE = ClusterEvent(POD, ActionType.DELETE)


def pod(
    name: str, *, priority: int = 0, gates: Sequence[str] = (), labels: dict[str, str] | None = None, **kw: str
) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=kw.pop("uid", f"uid-{name}"), labels=labels or {}),
        spec=PodSpec(priority=priority, scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates)),
        status=PodStatus(**kw),
    )


def order(info: QueuedPodInfo) -> tuple[int, float]:
    return -(info.pod.spec.priority or 0), info.timestamp


def gate_check(candidate: Pod) -> str | None:
    return "waiting for gates" if candidate.spec.scheduling_gates else None


def always(hint: QueueingHint) -> Callable[[Pod, object | None, object | None], QueueingHint]:
    return lambda candidate, old, new: hint


def make_queue(
    registrations: dict[str, Sequence[ClusterEventWithHint]] | None = None,
    gates: Sequence[tuple[str, GateCheck]] = (),
    **options: object,
) -> SchedulingQueue:
    if registrations is None:
        registrations = {"Fit": [ClusterEventWithHint(NODE_ADD)]}
    profile = QueueProfile(gates=gates, hints=HintMap(registrations))
    return SchedulingQueue({"default-scheduler": profile}, order, **options)  # type: ignore[arg-type]


def refuse(queue: SchedulingQueue, info: QueuedPodInfo, now: float, *plugins: str, pending: Sequence[str] = ()) -> None:
    """What a failed cycle does: name the refusers and hand the pod back."""
    info.clear_rejectors()
    info.unschedulable_plugins.update(plugins)
    info.pending_plugins.update(pending)
    queue.add_unschedulable_if_not_present(info, now)
    queue.validate()


def names(queue: SchedulingQueue, now: float) -> list[str]:
    popped = []
    while (info := queue.pop(now)) is not None:
        popped.append(info.pod.metadata.name)
    return popped
