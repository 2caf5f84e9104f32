"""What becomes of a pod whose attempt failed: back to the queue, a condition, an event.

    refused (does not fit, rejected)   reason Unschedulable     sleeps until an event that helps its refusers
    no node at all                     reason Unschedulable     backs off
    something broke                    reason SchedulerError    backs off

The pod is read again first: one that is gone, was bound, or is another of the same name is dropped.

Taking a failed pod back is the one thing that must not fail: a bug in the telling costs the telling, and a step that
brings the pod back is taken once more if it raises.

Source: pkg/scheduler/schedule_one.go (handleSchedulingFailure), v1.36.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

import numpy as np

from skysail.api.core import Pod
from skysail.controller.recorder import EventRecorder
from skysail.scheduler.attempts import Attempt
from skysail.scheduler.framework.diagnosis import Diagnosis, NodeStatuses
from skysail.scheduler.framework.events import ClusterEvent
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.metrics import ERROR, UNSCHEDULABLE, SchedulerMetrics
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.status_writer import StatusWriter, Verdict

_log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

_NOTE_LIMIT: Final = 1024
_CUT: Final = " ..."


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt failed.

    Attributes:
        status: A refusal, or an error.
        diagnosis: Refusals by node; None when it did not fail for lack of a fitting node.
        nominated_node: What becomes of the pod's nomination: a node, "" to take it back, None to leave it.
    """

    status: Status
    diagnosis: Diagnosis | None = None
    nominated_node: str | None = ""

    @property
    def message(self) -> str:
        """In upstream's words."""
        return self.diagnosis.message() if self.diagnosis is not None else self.status.message


def refused_on(node_name: str, status: Status) -> Failure:
    """The failure of a pod that found its node and was refused there afterwards (Reserve, Permit)."""
    statuses = NodeStatuses((node_name,), np.ones(1, np.uint16), (SUCCESS, status))
    diagnosis = Diagnosis(num_all_nodes=1, node_statuses=statuses)
    diagnosis.add_plugin_status(status)
    return Failure(status, diagnosis)


def broken(error: Exception) -> Failure:
    """The failure of an attempt that a bug ended."""
    return Failure(Status.error(f"{type(error).__name__}: {error}"))


def insist(doing: str, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
    """Take an idempotent step of cleaning up, once more if it raises; None when it raised twice."""
    for _ in range(2):
        try:
            return call(*args, **kwargs)
        except Exception:  # noqa: BLE001 - what comes after it must be done as well
            _log.exception("cleaning up after an attempt failed", extra={"doing": doing})
    return None


def order_failed(plugin: str, error: BaseException) -> None:
    """Say that a queue sort raised."""
    _log.error("queue sort failed, the usual order counts", extra={"plugin": plugin}, exc_info=error)


def hint_failed(plugin: str, event: ClusterEvent, pod: Pod, error: Exception) -> None:
    """Say that a queueing hint raised."""
    _log.error(
        "queueing hint failed, pod is woken",
        extra={"plugin": plugin, "event": event.label, "pod": pod.key}, exc_info=error,
    )  # fmt: skip


class FailureHandler:
    """Takes failed pods.

    Args:
        queue: Where they go back to.
        current: The pod as the informers know it now; None when it is gone.
        recorder: The event recorder of a profile.
        writer: Writes conditions.
        metrics: Counts attempts.
        now: Seconds on the queue's clock.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        *,
        current: Callable[[Pod], Pod | None],
        recorder: Callable[[str], EventRecorder],
        writer: StatusWriter | None,
        metrics: SchedulerMetrics,
        now: Callable[[], float],
    ) -> None:
        self._queue, self._current, self._recorder = queue, current, recorder
        self._writer, self._metrics, self._now = writer, metrics, now

    def handle(
        self, profile: str, info: QueuedPodInfo, failure: Failure, start: float, attempt: Attempt | None = None
    ) -> None:
        """Requeue the pod, or drop it; tell people why. Raises nothing.

        Args:
            profile: Whose pod it is.
            info: The popped pod.
            failure: How it failed.
            start: When the attempt began.
            attempt: Its record.
        """
        insist("noting a failed attempt", self._note, info, failure, attempt)
        if insist("bringing a pod back", self._requeue, info, failure):
            insist("keeping a nomination", self._queue.nominator.add, info.pod, failure.nominated_node)
            insist("telling of a failed attempt", self._tell, profile, info.pod, failure)
        result = UNSCHEDULABLE if failure.status.is_rejected else ERROR
        insist("counting a failed attempt", self._metrics.attempt, result, profile, self._now() - start)

    def _note(self, info: QueuedPodInfo, failure: Failure, attempt: Attempt | None) -> None:
        rejected = failure.status.is_rejected
        if attempt is not None:
            attempt.result = "unschedulable" if rejected else "error"
            attempt.message, attempt.diagnosis = failure.message, failure.diagnosis
        if not rejected:
            _log.error("scheduling failed, will retry", extra={"pod": info.pod.key, "error": failure.message})

    def _requeue(self, info: QueuedPodInfo, failure: Failure) -> bool:
        info.clear_rejectors()
        if failure.diagnosis is not None:
            info.unschedulable_plugins = set(failure.diagnosis.unschedulable_plugins)
            info.pending_plugins = set(failure.diagnosis.pending_plugins)
        uid = info.pod.metadata.uid
        pod = self._current(info.pod)
        if pod is None or pod.metadata.uid != uid or pod.spec.node_name:
            self._queue.done(uid)
            return False
        info.pod = pod
        if not self._queue.add_unschedulable_if_not_present(info, self._now()):
            _log.error("pod was in the queue while under way", extra={"pod": pod.key})
        return True

    def _tell(self, profile: str, pod: Pod, failure: Failure) -> None:
        message = failure.message
        note = message if len(message.encode()) <= _NOTE_LIMIT else _cut(message)
        self._recorder(profile).event(pod, "Warning", "FailedScheduling", note, action="Scheduling")
        if self._writer is not None:
            reason = "Unschedulable" if failure.status.is_rejected else "SchedulerError"
            node_name = failure.nominated_node
            if node_name is None:  # told again while the server seems not to have heard of it
                node_name = self._queue.nominator.not_shown(pod)
            self._writer.submit(pod, Verdict(reason, message, node_name))


def _cut(message: str) -> str:
    return message.encode()[: _NOTE_LIMIT - len(_CUT)].decode(errors="ignore") + _CUT
