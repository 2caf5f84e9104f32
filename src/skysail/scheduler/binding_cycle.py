"""The binding cycle: from permission to the binding, many at a time, each a task of its own.

    wait on permit ▶ pre-bind ▶ bind ▶ post-bind
           └───────────┴─────────┘
             any failure, a bug in this code included:
             unreserve in reverse order, forget, wake who may use the freed room, requeue

A bug after the binding was written is only logged: the pod is bound, the watch confirms it.

Source: pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError), v1.36.
"""

import logging
from collections.abc import Callable

from skysail.api.core import Pod
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache
from skysail.scheduler.failure import Failure, FailureHandler, broken, insist, refused_on
from skysail.scheduler.flight import Flight
from skysail.scheduler.framework.events import EVENT_ASSIGNED_POD_DELETE
from skysail.scheduler.metrics import SCHEDULED, SchedulerMetrics
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.status_writer import StatusWriter, Verdict

_log = logging.getLogger(__name__)


class BindingCycle:
    """Binds pods that took their node.

    Args:
        cache: The account of the cluster.
        queue: Where pods go back to.
        failures: Takes failed pods.
        now: Seconds on the queue's clock.
        metrics: Counts and measures.
        writer: Writes nominations; None writes none.
    """

    def __init__(
        self,
        cache: ClusterCache,
        queue: SchedulingQueue,
        failures: FailureHandler,
        *,
        now: Callable[[], float],
        metrics: SchedulerMetrics,
        writer: StatusWriter | None,
    ) -> None:
        self._cache, self._queue, self._failures = cache, queue, failures
        self._now, self._metrics, self._writer = now, metrics, writer

    async def run(self, flight: Flight) -> None:
        """Wait for permission, prepare, bind; undo everything if any of it fails. Raises nothing but cancellation."""
        running = self._metrics.in_progress
        running["binding"] += 1
        try:
            try:
                failure = await self._bind(flight)
            except Exception as error:  # noqa: BLE001 - a bug costs this attempt, not the scheduler
                _log.exception("binding cycle ended in a bug", extra={"pod": flight.pod.key})
                failure = broken(error)
            for _ in range(2):  # either ending may be taken twice
                try:
                    return await self._bound(flight) if failure is None else self._failed(flight, failure)
                except Exception:  # noqa: BLE001 - likewise
                    _log.exception("end of a binding cycle ended in a bug", extra={"pod": flight.pod.key})
        finally:
            running["binding"] -= 1

    async def _bind(self, flight: Flight) -> Failure | None:
        binding, state, pod, node_name = flight.profile.binding, flight.state, flight.pod, flight.node_name
        pre_flight, skipped = binding.pre_bind_pre_flight(state, pod, node_name)
        if pre_flight.is_error:
            return Failure(pre_flight)
        if self._writer is not None and (pre_flight.is_success or binding.will_wait(pod)):
            self._writer.submit(flight.info.pod, Verdict(nominated_node=node_name))
        status = await binding.wait_on_permit(pod)
        if not status.is_success:
            return refused_on(node_name, status) if status.is_rejected else Failure(status)
        flight.attempt.result = "binding"
        self._queue.done(pod.metadata.uid)
        status = await binding.pre_bind(state, pod, node_name, skipped)
        if status.is_success:
            if self._writer is not None:
                await self._writer.end(pod.metadata.uid)
            status = await binding.bind(state, pod, node_name)
        return None if status.is_success else Failure(status)

    async def _bound(self, flight: Flight) -> None:
        self._cache.finish_binding(flight.pod.metadata.uid, self._now())
        try:
            self._tell_bound(flight)
            await flight.profile.binding.post_bind(flight.state, flight.pod, flight.node_name)
        except Exception:  # noqa: BLE001 - the pod is bound, whatever else goes wrong
            _log.exception("telling of a binding ended in a bug", extra={"pod": flight.pod.key})

    def _tell_bound(self, flight: Flight) -> None:
        pod, info, now = flight.pod, flight.info, self._now()
        flight.attempt.result = SCHEDULED
        flight.profile.recorder.event(
            pod, "Normal", "Scheduled", f"Successfully assigned {pod.key} to {flight.node_name}", action="Binding"
        )
        self._metrics.attempt(SCHEDULED, flight.profile.name, now - flight.start)
        entered = info.timestamp if info.initial_attempt_timestamp is None else info.initial_attempt_timestamp
        self._metrics.scheduled(info.attempts, now - entered, info.was_flushed_from_unschedulable)

    def _failed(self, flight: Flight, failure: Failure) -> None:
        """Undo, wake whoever may use the freed room, requeue.

        A refused pod must not be woken by its own leaving: it is requeued before the event is noted. One that failed
        with an error is tried again in any case.
        """
        freed = self.undo(flight)
        if freed and not failure.status.is_rejected:
            insist("waking who may use freed room", self._room_freed, flight.pod)
        self._failures.handle(flight.profile.name, flight.info, failure, flight.start, flight.attempt)
        if freed and failure.status.is_rejected:
            insist("waking who may use freed room", self._room_freed, flight.pod)

    def _room_freed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._queue.move_all_to_active_or_backoff(
            EVENT_ASSIGNED_POD_DELETE, pod, None, self._now(), only=lambda other: other.metadata.uid != uid
        )

    def undo(self, flight: Flight) -> bool:
        """Unreserve in reverse order, hold it no longer, forget; False when the watch has confirmed the pod meanwhile.

        Nothing of it is left out for a bug in another part.
        """
        binding, uid = flight.profile.binding, flight.pod.metadata.uid
        insist("unreserving", binding.unreserve, flight.state, flight.pod, flight.node_name)
        insist("letting a held pod go", binding.release, uid)
        return bool(insist("forgetting a pod", self._forget, flight.pod))

    def _forget(self, pod: Pod) -> bool:
        try:
            self._cache.forget(pod.metadata.uid)
        except CacheError as error:
            _log.info("pod was bound after all", extra={"pod": pod.key, "detail": str(error)})
            return False
        return True
