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

A bug anywhere in a cycle costs that attempt: what it took is given back, its pods go back as after an error, the next
pod's turn comes. The cycle keeps two lists for that, of pods popped and of nodes taken; both are empty at its end.

Source: pkg/scheduler/schedule_one.go, v1.36.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from skysail.api.core import Pod
from skysail.api.errors import InvariantBroken
from skysail.api.ports import Clock
from skysail.scheduler.attempts import Attempt, AttemptRing
from skysail.scheduler.binding_cycle import BindingCycle
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.extenders.chain import ExtenderChain
from skysail.scheduler.failure import Failure, FailureHandler, broken, refused_on
from skysail.scheduler.flight import CycleProfile, Decided, Flight
from skysail.scheduler.framework.conversation import Conversation, alone
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import NO_NODES, Diagnosis
from skysail.scheduler.framework.queued_pod import QueuedPodInfo, scheduler_name
from skysail.scheduler.framework.status import Code, Status
from skysail.scheduler.instruments import Instruments
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.preemption.evictor import Eviction
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.status_writer import StatusWriter

_log = logging.getLogger(__name__)


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
        self._now, self._metrics, self._instruments = now, metrics, instruments
        self._binding = BindingCycle(cache, queue, failures, now=now, metrics=metrics, writer=writer)
        self._popped: dict[str, QueuedPodInfo] = {}
        self._taken: dict[str, Flight] = {}

    def schedule_one(self, info: QueuedPodInfo, group: asyncio.TaskGroup) -> None:
        """Decide about one popped pod; a binding cycle goes on as a task of `group`."""
        alone(self.schedule_one_asking(info, group))

    def schedule_one_asking(self, info: QueuedPodInfo, group: asyncio.TaskGroup) -> Conversation[None]:
        """`schedule_one`, where extenders are asked: the only place in the scheduling cycle that may have to wait."""
        self.popped(info)
        yield from self._schedule(info, group, self._now())
        if self._popped or self._taken:
            raise InvariantBroken(f"a cycle left pods undecided: {[*self._popped, *self._taken]}")

    def _schedule(self, info: QueuedPodInfo, group: asyncio.TaskGroup, start: float) -> Conversation[None]:
        if self.groups is not None and info.pod.spec.scheduling_group is not None:
            yield from self.groups.schedule(self, info, group)
            return
        profile = self.profile_of(info.pod)
        if profile is None or self.is_to_skip(profile, info.pod):
            self.drop(info)
            return
        attempt = self.begin(profile, info)
        decided = yield from self.decide(profile, info, attempt, start)
        if decided.failure is None and decided.state is not None:
            self.take_and_bind(profile, info, decided.state, decided.node_name, attempt, start, group)
        else:
            self.fail(profile, info, decided.failure or Failure(NO_NODES), attempt, start)

    def give_back(self, info: QueuedPodInfo, error: Exception, start: float) -> None:
        """A bug ended the cycle of this pod: nothing stays taken, and every pod popped for it goes back.

        Args:
            info: The pod.
            error: The bug.
            start: When the cycle began.
        """
        failure = broken(error)
        for flight in reversed(list(self._taken.values())):
            self._binding.undo(flight)
        for each in {info.pod.metadata.uid: info, **self._popped}.values():
            self._failures.handle(scheduler_name(each.pod), each, failure, start, self._record_of(each))
        self._popped.clear()
        self._taken.clear()

    def _record_of(self, info: QueuedPodInfo) -> Attempt | None:
        last = self._attempts.last(info.pod.namespace, info.pod.name)
        return last if last is not None and (last.pod.uid, last.tries) == (info.pod.uid, info.attempts) else None

    # -- steps, also of a pod group's cycle -------------------------------------------------------------------------

    def popped(self, info: QueuedPodInfo) -> None:
        """A pod left the queue for this cycle, which must now bind it, `fail` it or `drop` it."""
        self._popped[info.pod.metadata.uid] = info

    def drop(self, info: QueuedPodInfo) -> None:
        """The pod needs no node: it is no longer under way."""
        self._queue.done(info.pod.metadata.uid)
        self._popped.pop(info.pod.metadata.uid, None)

    def profile_of(self, pod: Pod) -> CycleProfile | None:
        """The pod's profile."""
        return self._profiles.get(scheduler_name(pod))

    def begin(self, profile: CycleProfile, info: QueuedPodInfo) -> Attempt:
        """The record of an attempt that begins."""
        return self._attempts.begin(info.pod, profile.name, info.attempts, self._clock.now())

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
            tasks.create_task(self._binding.run(flight), name=f"bind {info.pod.key}")
            del self._popped[info.pod.metadata.uid], self._taken[info.pod.metadata.uid]

    def decide(
        self, profile: CycleProfile, info: QueuedPodInfo, attempt: Attempt, start: float
    ) -> Conversation[Decided]:
        """Bring the snapshot up to date, find a node; where there is none, ask PostFilter."""
        self._instruments.begin()
        try:
            return (yield from self._decide(profile, info, attempt, start))
        finally:
            self._instruments.end(profile.name)

    def _decide(
        self, profile: CycleProfile, info: QueuedPodInfo, attempt: Attempt, start: float
    ) -> Conversation[Decided]:
        self._cache.update_snapshot(self._snapshot)
        if not len(self._snapshot):
            return Decided(failure=Failure(NO_NODES))
        attempt.seen = self._snapshot.position
        pod_info = PodInfo(info.pod)
        if self._extenders is None:
            result = profile.decider.decide(pod_info, self._snapshot)
        else:
            result = yield from profile.decider.decide_asking(pod_info, self._snapshot, self._extenders)
            attempt.extender_calls = result.calls
        attempt.seconds = self._now() - start
        self._metrics.observe("scheduling_algorithm_duration_seconds", attempt.seconds)
        attempt.evaluated, attempt.feasible = result.evaluated_nodes, result.feasible_nodes
        attempt.outcome, attempt.scoring, attempt.limit = result.outcome, result.scoring, result.limit
        if result.state is None or result.status.is_error:
            self._metrics.plugin_failed(result.status.plugin, "Filter")
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
        if diagnosis.preemption is not None:
            self._metrics.count("preemption_attempts_total")
        diagnosis.post_filter_message = status.message
        if result.victims and result.nominated_node and self._evict is not None:
            self._metrics.observe("preemption_victims", len(result.victims))
            eviction = Eviction(pod, profile.name, result.nominated_node, result.victims)
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
        self._taken[info.pod.metadata.uid] = flight
        status = profile.binding.reserve(state, assumed.pod, node_name)
        if status.is_success:
            return flight
        self.undo(flight)
        return refused_on(node_name, status) if status.is_rejected else Failure(status)

    def undo(self, flight: Flight) -> None:
        """Unreserve in reverse order, and forget."""
        self._binding.undo(flight)
        self._taken.pop(flight.info.pod.metadata.uid, None)

    def fail(
        self, profile: CycleProfile, info: QueuedPodInfo, failure: Failure, attempt: Attempt, start: float
    ) -> None:
        """The attempt failed: note it, requeue the pod."""
        self._failures.handle(profile.name, info, failure, start, attempt)
        self._popped.pop(info.pod.metadata.uid, None)
