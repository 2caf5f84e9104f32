"""The rows of pods: the STATUS column is the sum of phase, reasons and containers' states.

Source: pkg/printers/internalversion/printers.go `printPod`, v1.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.tables.cells import (
    NONE,
    age,
    condition,
    human_duration,
    labels_text,
    moment,
    part,
    template_cells,
)

Row = Sequence[object]

_CONDITIONS: Mapping[str, Sequence[Raw]] = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}


def row_conditions(pod: Raw) -> Sequence[Raw] | None:
    """What a finished pod's row says of itself."""
    return _CONDITIONS.get(part(pod, "status").get("phase", ""))


@dataclass(slots=True)
class _Restarts:
    """Restarts counted so far, and the last of them."""

    count: int = 0
    last: datetime | None = None

    def add(self, status: Raw) -> None:
        self.count += status.get("restartCount", 0)
        finished = moment(part(status, "lastState", "terminated").get("finishedAt"))
        if finished is not None and (self.last is None or finished > self.last):
            self.last = finished

    def text(self, now: datetime) -> str:
        if self.count and self.last is not None:
            return f"{self.count} ({human_duration(now - self.last)} ago)"
        return str(self.count)


class _Summary:
    """READY, STATUS and RESTARTS of one pod."""

    def __init__(self, pod: Raw) -> None:
        self.spec, self.status = part(pod, "spec"), part(pod, "status")
        self.metadata: Raw = pod["metadata"]
        self.sidecars = {
            c.get("name") for c in self.spec.get("initContainers") or () if c.get("restartPolicy") == "Always"
        }
        self.total = len(self.spec.get("containers") or ()) + len(self.sidecars)
        self.ready = 0
        self.restarts, self.sidecar_restarts = _Restarts(), _Restarts()
        self.reason = self.status.get("reason") or self.status.get("phase", "")
        for found in self.status.get("conditions") or ():
            if found.get("type") == "PodScheduled" and found.get("reason") == "SchedulingGated":
                self.reason = "SchedulingGated"
        initializing = self._initial_containers()
        if not initializing or condition(self.status.get("conditions"), "Initialized") == "True":
            self._containers()
        self._deletion()

    def _initial_containers(self) -> bool:
        """Go through init containers up to the one that is not done; whether there is such a one."""
        for index, container in enumerate(self.status.get("initContainerStatuses") or ()):
            sidecar = container.get("name") in self.sidecars
            self.restarts.add(container)
            if sidecar:
                self.sidecar_restarts.add(container)
            state = part(container, "state")
            terminated = state.get("terminated")
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            waiting = part(state, "waiting").get("reason", "")
            if terminated is not None:
                self.reason = "Init:" + _end_of(terminated)
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{index}/{len(self.spec.get('initContainers') or ())}"
            return True
        return False

    def _containers(self) -> None:
        self.restarts = self.sidecar_restarts
        running, failure = False, ""
        for container in reversed(self.status.get("containerStatuses") or []):
            self.restarts.add(container)
            state = part(container, "state")
            terminated = state.get("terminated")
            if part(state, "waiting").get("reason"):
                self.reason = state["waiting"]["reason"]
            elif terminated is not None:
                self.reason = _end_of(terminated)
                if terminated.get("exitCode", 0) != 0:
                    failure = self.reason
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and condition(self.status.get("conditions"), "Ready") == "True":
                self.reason = "Running"
            elif failure:
                self.reason = failure
            elif running:
                self.reason = "NotReady"

    def _deletion(self) -> None:
        if not self.metadata.get("deletionTimestamp"):
            return
        if self.status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif self.status.get("phase") not in ("Succeeded", "Failed"):
            self.reason = "Terminating"


def _end_of(terminated: Raw) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def pod_cells(pod: Raw, now: datetime) -> Row:
    """Name, Ready, Status, Restarts, Age, and wide: IP, Node, Nominated Node, Readiness Gates."""
    summary = _Summary(pod)
    addresses = summary.status.get("podIPs") or [{}]
    return [
        pod["metadata"].get("name", ""), f"{summary.ready}/{summary.total}", summary.reason,
        summary.restarts.text(now), age(pod, now), addresses[0].get("ip") or NONE,
        summary.spec.get("nodeName") or NONE, summary.status.get("nominatedNodeName") or NONE,
        _readiness_gates(summary.spec, summary.status),
    ]  # fmt: skip


def _readiness_gates(spec: Raw, status: Raw) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return NONE
    passed = sum(condition(status.get("conditions"), gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def pod_template_cells(obj: Raw, _: datetime) -> Row:
    """Name, Containers, Images, Pod Labels."""
    return [obj["metadata"]["name"], *template_cells(obj), labels_text(part(obj, "template", "metadata").get("labels"))]
