"""One pod's way from the queue to its node: the scheduling cycle, serial, and the binding cycle, a task of its own.

    scheduling cycle (nothing else runs meanwhile)         binding cycle (many at a time)
    ─────────────────────────────────────────────         ─────────────────────────────────────────────
    pop ▶ snapshot ▶ decide ▶ assume ▶ reserve ▶ permit ─▶ wait on permit ▶ pre-bind ▶ bind ▶ post-bind
                      │         └───────┴─────────┴────────────────┴─────────────┴────────┘
                      │                          any failure: unreserve in reverse order, forget,
                      ▼                          wake who may use the freed room
              post-filter (preemption)                                    │
                      └──────────────────────▶ requeue, condition, event ◀┘

    point        order                         stops                        answers combined
    PreEnqueue   the gating plugin first       at the first refusal         all must pass
    PreFilter    the profile's                 at the first refusal         node sets meet; Skip leaves Filter out
    Filter       the profile's                 per node, at the first       all must pass
    PostFilter   the profile's                 at the first success         the first success ends it
    PreScore     the profile's                 at the first failure         Skip leaves Score out
    Score        any                           at the first failure         sum of weight x normalised score
    Reserve      the profile's                 at the first failure         all or none
    Unreserve    reverse                       never                        a raise is contained, the rest still run
    Permit       the profile's                 at the first refusal         any Wait holds the pod
    PreBind      the profile's                 at the first failure         all that did not skip in their pre-flight
    Bind         the profile's                 at the first that takes it   exactly one plugin
    PostBind     the profile's                 never                        informational

A pod is under way (its events are kept) until permit lets it go: from then on no plugin can refuse it any more.

Source: pkg/scheduler/schedule_one.go, v1.36.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from skysail.api.core import Pod
from skysail.api.ports import Clock
from skysail.controller.recorder import EventRecorder
from skysail.scheduler.attempts import Attempt, AttemptRing
from skysail.scheduler.binding import BindingRunner
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.deciding import Decider
from skysail.scheduler.extenders.chain import ExtenderChain
from skysail.scheduler.failure import NO_NODES, Failure, FailureHandler, refused_on
from skysail.scheduler.framework.conversation import Conversation, alone
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.events import EVENT_ASSIGNED_POD_DELETE
from skysail.scheduler.framework.queued_pod import QueuedPodInfo, scheduler_name
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import Code, Status
from skysail.scheduler.instruments import Instruments
from skysail.scheduler.metrics import SCHEDULED, SchedulerMetrics
from skysail.scheduler.preemption.evictor import Eviction
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.status_writer import StatusWriter, Verdict

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CycleProfile:
    """What a cycle must know of one profile."""

    framework: Framework
    decider: Decider
    binding: BindingRunner
    recorder: EventRecorder


@dataclass(slots=True)
class Flight:
    """A pod on its way, with all that its binding cycle needs."""

    profile: CycleProfile
    info: QueuedPodInfo
    state: CycleState
    pod: Pod
    node_name: str
    start: float
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Decided:
    """What the algorithm came to.

    Attributes:
        state: The attempt's memory; None when there was no attempt.
        node_name: The node.
        failure: Why there is none.
    """

    state: CycleState | None = None
    node_name: str = ""
    failure: Failure | None = None


class GroupScheduler(Protocol):
    """Takes over pods of pod groups."""

    def schedule(self, cycle: "SchedulingCycle", info: QueuedPodInfo, tasks: asyncio.TaskGroup) -> Conversation[None]:
        """Try the popped pod's whole group."""
        ...


class SchedulingCycle:
    """Schedules pods, one by one.

    Args:
        profiles: By scheduler name.
        cache: The account of the cluster.
        snapshot: What decisions look at; brought up to date before each.
        queue: Where pods come from and go back to.
        failures: Takes failed pods.
        attempts: Where each attempt leaves its record.
        clock: Stamps records.
        now: Seconds on the queue's clock.
        metrics: Counts and measures.
        instruments: Measures the plugins.
        writer: Writes nominations; None writes none.
        evict: Takes over what preemption decided; None evicts nobody.
        extenders: Who has a say beside the plugins; None when there are none.
    """

    def __init__(
        self,
        profiles: Mapping[str, CycleProfile],
        *,
        cache: ClusterCache,
        snapshot: Snapshot,
        queue: SchedulingQueue,
        failures: FailureHandler,
        attempts: AttemptRing,
        clock: Clock,
        now: Callable[[], float],
        metrics: SchedulerMetrics,
        instruments: Instruments,
        writer: StatusWriter | None = None,
        evict: Callable[[Eviction], None] | None = None,
        extenders: ExtenderChain | None = None,
    ) -> None:
        self._evict, self._extenders = evict, extenders
        self.groups: GroupScheduler | None = None
        """Takes over pods of pod groups; None where these are scheduled like all others."""
        self._profiles, self._cache, self._snapshot, self._queue = profiles, cache, snapshot, queue
        self._failures, self._attempts, self._clock = failures, attempts, clock
        self._now, self._metrics, self._instruments, self._writer = now, metrics, instruments, writer

    def schedule_one(self, info: QueuedPodInfo, group: asyncio.TaskGroup) -> None:
        """Decide about one popped pod; a binding cycle goes on as a task of `group`."""
        alone(self.schedule_one_asking(info, group))

    def schedule_one_asking(self, info: QueuedPodInfo, group: asyncio.TaskGroup) -> Conversation[None]:
        """`schedule_one`, where extenders are asked: the only place in the scheduling cycle that may have to wait."""
        if self.groups is not None and info.pod.spec.scheduling_group is not None:
            yield from self.groups.schedule(self, info, group)
            return
        pod = info.pod
        profile = self.profile_of(pod)
        if profile is None or self.is_to_skip(profile, pod):
            self._queue.done(pod.metadata.uid)
            return
        start = self._now()
        attempt = self.begin(profile, info)
        decided = yield from self.decide(profile, info, attempt, start)
        if decided.failure is None and decided.state is not None:
            self.take_and_bind(profile, info, decided.state, decided.node_name, attempt, start, group)
        else:
            self.fail(profile, info, decided.failure or Failure(NO_NODES), attempt, start)

    # -- steps, also of a pod group's cycle -------------------------------------------------------------------------

    def profile_of(self, pod: Pod) -> CycleProfile | None:
        """The pod's profile."""
        return self._profiles.get(scheduler_name(pod))

    def begin(self, profile: CycleProfile, info: QueuedPodInfo) -> Attempt:
        """The record of an attempt that begins."""
        metadata = info.pod.metadata
        return self._attempts.begin(
            metadata.namespace, metadata.name, metadata.uid,
            profile.framework.scheduler_name, info.attempts, self._clock.now(),
        )  # fmt: skip

    def is_to_skip(self, profile: CycleProfile, pod: Pod) -> bool:
        """Whether the pod needs no node any more."""
        if pod.metadata.deletion_timestamp is not None:
            message = f"skip schedule deleting pod: {pod.key}"
            profile.recorder.event(pod, "Warning", "FailedScheduling", message, action="Scheduling")
            return True
        return self._cache.is_assumed(pod.metadata.uid)

    def take_and_bind(
        self,
        profile: CycleProfile,
        info: QueuedPodInfo,
        state: CycleState,
        node_name: str,
        attempt: Attempt,
        start: float,
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Take the node; the binding cycle goes on as a task."""
        flight = self._take_node(profile, info, state, node_name, attempt, start)
        if isinstance(flight, Failure):
            self.fail(profile, info, flight, attempt, start)
        else:
            tasks.create_task(self.binding_cycle(flight), name=f"bind {info.pod.key}")

    def decide(
        self, profile: CycleProfile, info: QueuedPodInfo, attempt: Attempt, start: float
    ) -> Conversation[Decided]:
        """Bring the snapshot up to date, find a node; where there is none, ask PostFilter."""
        self._instruments.begin()
        try:
            return (yield from self._decide(profile, info, attempt, start))
        finally:
            self._instruments.end(profile.framework.scheduler_name)

    def _decide(
        self, profile: CycleProfile, info: QueuedPodInfo, attempt: Attempt, start: float
    ) -> Conversation[Decided]:
        self._cache.update_snapshot(self._snapshot)
        if not len(self._snapshot):
            return Decided(failure=Failure(NO_NODES))
        pod_info = PodInfo(info.pod)
        if self._extenders is None:
            result = profile.decider.decide(pod_info, self._snapshot)
        else:
            result = yield from profile.decider.decide_asking(pod_info, self._snapshot, self._extenders)
            attempt.extender_calls = result.calls
        attempt.seconds = self._now() - start
        self._metrics.observe("scheduling_algorithm_duration_seconds", attempt.seconds)
        attempt.evaluated, attempt.feasible = result.evaluated_nodes, result.feasible_nodes
        attempt.outcome, attempt.scoring = result.outcome, result.scoring
        if result.state is None or result.status.is_error:
            return Decided(failure=Failure(result.status))
        attempt.skipped = result.state.skip_filter_plugins
        if not result.node_name:
            diagnosis = result.diagnosis or Diagnosis(len(self._snapshot))
            failure = yield from self._post_filter(profile, result.state, diagnosis)
            attempt.extender_calls = tuple(diagnosis.extender_calls)
            return Decided(result.state, failure=failure)
        attempt.node, attempt.total, attempt.ties = result.node_name, result.total, result.ties
        return Decided(result.state, result.node_name)

    def _post_filter(self, profile: CycleProfile, state: CycleState, diagnosis: Diagnosis) -> Conversation[Failure]:
        refusal = Status(Code.UNSCHEDULABLE)
        if not profile.framework.post_filter:
            return Failure(refusal, diagnosis)
        pod = state.pod_info.pod
        status, result = yield from profile.framework.post_filter_asking(state, pod, diagnosis)
        self._metrics.count("preemption_attempts_total")
        diagnosis.post_filter_message = status.message
        if result.victims and result.nominated_node and self._evict is not None:
            self._metrics.observe("preemption_victims", len(result.victims))
            eviction = Eviction(pod, profile.framework.scheduler_name, result.nominated_node, result.victims)
            self._evict(eviction)
        return Failure(refusal, diagnosis, result.nominated_node)

    def _take_node(
        self,
        profile: CycleProfile,
        info: QueuedPodInfo,
        state: CycleState,
        node_name: str,
        attempt: Attempt,
        start: float,
    ) -> Flight | Failure:
        """Assume, reserve, ask for permission; all undone at the first failure."""
        flight = self.assume(profile, info, state, node_name, attempt, start)
        if isinstance(flight, Failure):
            return flight
        self._queue.nominator.remove(info.pod)
        status = profile.binding.permit(state, flight.pod, node_name)
        if status.is_success or status.is_wait:
            attempt.result = "waiting" if status.is_wait else "binding"
            return flight
        self.undo(flight)
        return refused_on(node_name, status) if status.is_rejected else Failure(status)

    def assume(
        self,
        profile: CycleProfile,
        info: QueuedPodInfo,
        state: CycleState,
        node_name: str,
        attempt: Attempt,
        start: float,
    ) -> Flight | Failure:
        """Assume and reserve; both undone at the first failure."""
        try:
            assumed = self._cache.assume(state.pod_info, node_name)
        except CacheError as error:
            return Failure(Status.error(str(error)))
        flight = Flight(profile, info, state, assumed.pod, node_name, start, attempt)
        status = profile.binding.reserve(state, assumed.pod, node_name)
        if status.is_success:
            return flight
        self.undo(flight)
        return refused_on(node_name, status) if status.is_rejected else Failure(status)

    async def binding_cycle(self, flight: Flight) -> None:
        """Wait for permission, prepare, bind; undo everything if any of it fails."""
        self._metrics.in_progress["binding"] += 1
        try:
            failure = await self._bind(flight)
            if failure is None:
                await self._bound(flight)
            else:
                self._binding_failed(flight, failure)
        finally:
            self._metrics.in_progress["binding"] -= 1

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
            status = await binding.bind(state, pod, node_name)
        return None if status.is_success else Failure(status)

    async def _bound(self, flight: Flight) -> None:
        pod, info, now = flight.pod, flight.info, self._now()
        self._cache.finish_binding(pod.metadata.uid, now)
        flight.attempt.result = SCHEDULED
        flight.profile.recorder.event(
            pod, "Normal", "Scheduled", f"Successfully assigned {pod.key} to {flight.node_name}", action="Binding"
        )
        self._metrics.attempt(SCHEDULED, flight.profile.framework.scheduler_name, now - flight.start)
        entered = info.timestamp if info.initial_attempt_timestamp is None else info.initial_attempt_timestamp
        self._metrics.scheduled(info.attempts, now - entered, info.was_flushed_from_unschedulable)
        await flight.profile.binding.post_bind(flight.state, pod, flight.node_name)

    def _binding_failed(self, flight: Flight, failure: Failure) -> None:
        """Undo, wake whoever may use the freed room, requeue.

        A refused pod must not be woken by its own leaving: it is requeued before the event is noted. One that failed
        with an error is tried again in any case.
        """
        freed = self.undo(flight)
        if freed and not failure.status.is_rejected:
            self._room_freed(flight.pod)
        self.fail(flight.profile, flight.info, failure, flight.attempt, flight.start)
        if freed and failure.status.is_rejected:
            self._room_freed(flight.pod)

    def _room_freed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._queue.move_all_to_active_or_backoff(
            EVENT_ASSIGNED_POD_DELETE, pod, None, self._now(), only=lambda other: other.metadata.uid != uid
        )

    def undo(self, flight: Flight) -> bool:
        """Unreserve in reverse order, then forget; False when the watch has confirmed the pod meanwhile."""
        flight.profile.binding.unreserve(flight.state, flight.pod, flight.node_name)
        try:
            self._cache.forget(flight.pod.metadata.uid)
        except CacheError as error:
            _log.info("pod was bound after all", extra={"pod": flight.pod.key, "detail": str(error)})
            return False
        return True

    def fail(
        self, profile: CycleProfile, info: QueuedPodInfo, failure: Failure, attempt: Attempt, start: float
    ) -> None:
        """The attempt failed: note it, requeue the pod."""
        attempt.result = "unschedulable" if failure.status.is_rejected else "error"
        attempt.message, attempt.diagnosis = failure.message, failure.diagnosis
        self._failures.handle(profile.framework.scheduler_name, info, failure, start)
