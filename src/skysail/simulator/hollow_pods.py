"""A hollow pod's life: what a kubelet would report of it, and when.

    bound ──start_seconds──▶ Running ──ready_seconds──▶ Ready ──(batch pods) run time──▶ Succeeded or Failed
    deleted ──stop_seconds──▶ gone

Pure: `next_step` is given a pod, what was last reported of it and the time, and says what to report next and when.

How long a pod runs, and how it ends, first rule that applies:

1. annotations `skysail.io/run-seconds` and `skysail.io/exit-code`;
2. `restartPolicy` Never or OnFailure and a command that says it: `sleep 5`, `exit 3`;
3. a pod of a Job runs for `job_seconds`;
4. any other runs for ever.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from skysail.api.core import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)

RUN_SECONDS = "skysail.io/run-seconds"
EXIT_CODE = "skysail.io/exit-code"

_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?)([smh]?)\b")
_EXIT = re.compile(r"\bexit\s+(\d+)\b")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodLatencies:
    """How long the steps of a pod's life take, in seconds.

    Attributes:
        start_seconds: From bound to Running: pulling images, starting containers.
        ready_seconds: From Running to Ready: the first successful probe. 0 reports both in one write.
        stop_seconds: From deleted to gone; never longer than the pod's grace period.
        job_seconds: How long a Job's pod runs when nothing else says so.
    """

    start_seconds: float = 0.2
    ready_seconds: float = 0.0
    stop_seconds: float = 0.2
    job_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a pod's run ends.

    Attributes:
        after_seconds: After so long.
        exit_code: With this code.
    """

    after_seconds: float
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Reported:
    """What was last reported of a pod, and when: the cache may be behind it.

    Attributes:
        stage: `""` (nothing yet), `Running`, `Ready`, `Succeeded`, `Failed`, `Stopping` or `Gone`.
        since: When that was.
    """

    stage: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next.

    Attributes:
        due: When.
        stage: What the pod will be then.
        status: The status to report; None for `Gone`: delete it at once.
    """

    due: datetime
    stage: str
    status: PodStatus | None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a pod lives.

    Attributes:
        host_ip: Its node's address.
        pod_ip: Its own.
        images: Of the node; for image ids.
    """

    host_ip: str
    pod_ip: str
    images: Mapping[str, str] = field(default_factory=dict)


def ending_of(pod: Pod, latencies: PodLatencies) -> Ending | None:
    """How the pod's run ends; None for never."""
    annotations = pod.metadata.annotations
    code = _number(annotations.get(EXIT_CODE, ""))
    seconds = _number(annotations.get(RUN_SECONDS, ""))
    if seconds is not None:
        return Ending(seconds, int(code or 0))
    if pod.spec.restart_policy not in ("Never", "OnFailure"):
        return None
    words = " ".join(word for container in pod.spec.containers[:1] for word in (*container.command, *container.args))
    sleep, end = _SLEEP.search(words), _EXIT.search(words)
    of_job = any(ref.controller and ref.kind == "Job" for ref in pod.metadata.owner_references)
    if code is None and end is not None:
        code = float(end.group(1))
    if sleep is not None:
        return Ending(float(sleep.group(1)) * _UNITS[sleep.group(2)], int(code or 0))
    return Ending(latencies.job_seconds, int(code or 0)) if of_job or end is not None else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def next_step(
    pod: Pod, reported: Reported, addresses: Addresses, latencies: PodLatencies, seen: datetime
) -> Step | None:
    """What to report next of a bound pod; None when there is nothing left to say.

    Args:
        pod: As cached; perhaps behind what was reported.
        reported: The last report.
        addresses: Where it lives.
        latencies: How long things take.
        seen: When the pod was first seen bound, or, once it is being deleted, first seen so.
    """
    if pod.metadata.deletion_timestamp is not None:
        return _stopping_step(pod, reported, latencies, seen)
    stage = reported.stage or _stage_of(pod)
    since = reported.since or seen
    if stage == "":
        due = since + timedelta(seconds=latencies.start_seconds)
        ready = latencies.ready_seconds == 0
        return Step(due, "Ready" if ready else "Running", running_status(pod, addresses, due, ready=ready))
    if stage == "Running":
        due = since + timedelta(seconds=latencies.ready_seconds)
        return Step(due, "Ready", running_status(pod, addresses, due, ready=True))
    ending = ending_of(pod, latencies) if stage == "Ready" else None
    if ending is None:
        return None
    due = since + timedelta(seconds=ending.after_seconds)
    return Step(due, "Failed" if ending.exit_code else "Succeeded", ended_status(pod, ending.exit_code, due))


def _stage_of(pod: Pod) -> str:
    """Where a pod stands that this process has reported nothing of: after a restart it goes on from there."""
    if pod.status.phase in _TERMINAL:
        return pod.status.phase
    if pod.status.phase != "Running":
        return ""
    ready = any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions)
    return "Ready" if ready else "Running"


def _stopping_step(pod: Pod, reported: Reported, latencies: PodLatencies, seen: datetime) -> Step | None:
    """A deleted pod ends, says how if somebody waits to hear it (a finalizer), and goes."""
    if reported.stage == "Gone":
        return None
    grace = pod.metadata.deletion_grace_period_seconds
    wait = latencies.stop_seconds if grace is None else min(latencies.stop_seconds, float(grace))
    due = seen + timedelta(seconds=wait)
    ended = pod.status.phase in _TERMINAL or reported.stage in _TERMINAL
    if pod.metadata.finalizers and not ended:
        ran = pod.status.phase == "Running"
        return Step(due, "Failed", ended_status(pod, 137 if ran else 0, due, phase="Failed"))
    return Step(due, "Gone", None)


def running_status(pod: Pod, addresses: Addresses, now: datetime, *, ready: bool) -> PodStatus:
    """The status of a pod whose containers run."""
    moment = now.replace(microsecond=0)
    started = pod.status.start_time or moment
    running = ContainerState(running=ContainerStateRunning(started_at=moment))
    done = ContainerState(
        terminated=ContainerStateTerminated(reason="Completed", started_at=moment, finished_at=moment)
    )
    flag = "True" if ready else "False"
    conditions = _with_conditions(
        pod,
        moment,
        {"PodReadyToStartContainers": "True", "Initialized": "True", "Ready": flag, "ContainersReady": flag},
        "" if ready else "ContainersNotReady",
    )
    return msgspec.structs.replace(
        pod.status,
        phase="Running",
        conditions=conditions,
        host_ip=addresses.host_ip,
        pod_ip=addresses.pod_ip,
        pod_ips=(PodIP(ip=addresses.pod_ip),),
        start_time=started,
        container_statuses=tuple(_container(item, running, ready=ready) for item in pod.spec.containers),
        init_container_statuses=tuple(
            _container(item, running, ready=True)
            if item.restart_policy == "Always"
            else _container(item, done, ready=True)
            for item in pod.spec.init_containers
        ),
    )


def ended_status(pod: Pod, exit_code: int, now: datetime, *, phase: str = "") -> PodStatus:
    """The status of a pod whose containers have ended with that code."""
    moment = now.replace(microsecond=0)
    reason = "Error" if exit_code else "Completed"
    started = pod.status.start_time or moment
    ended = ContainerState(
        terminated=ContainerStateTerminated(exit_code=exit_code, reason=reason, started_at=started, finished_at=moment)
    )
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))
    state = ended if pod.status.phase == "Running" or not phase else waiting
    conditions = _with_conditions(
        pod,
        moment,
        {"PodReadyToStartContainers": "False", "Ready": "False", "ContainersReady": "False"},
        "PodFailed" if exit_code else "PodCompleted",
    )
    return msgspec.structs.replace(
        pod.status,
        phase=phase or ("Failed" if exit_code else "Succeeded"),
        conditions=conditions,
        start_time=started,
        container_statuses=tuple(_container(item, state, ready=False) for item in pod.spec.containers),
    )


def _container(container: Container, state: ContainerState, *, ready: bool) -> ContainerStatus:
    image = container.image
    return ContainerStatus(
        name=container.name,
        image=image,
        image_id=f"hollow://{image}",
        container_id=f"hollow://{container.name}" if state.waiting is None else "",
        ready=ready,
        started=state.running is not None,
        state=state,
    )


def _with_conditions(pod: Pod, now: datetime, values: Mapping[str, str], reason: str) -> tuple[PodCondition, ...]:
    """The pod's conditions with these set; a condition that keeps its value keeps its time."""
    known = {item.type: item for item in pod.status.conditions}
    for name, value in values.items():
        before = known.get(name)
        since = before.last_transition_time if before is not None and before.status == value else now
        why = reason if value == "False" else ""
        known[name] = PodCondition(type=name, status=value, reason=why, last_transition_time=since)
    return tuple(known.values())
