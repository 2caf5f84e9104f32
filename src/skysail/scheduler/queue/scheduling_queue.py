"""The scheduling queue: every unbound pod of our profiles is in exactly one part of it, or under way.

                add                       pop                      done (bound, gone)
    informer ─────────▶  ACTIVE ────────────────────▶ IN FLIGHT ─────────────────────▶
                │          ▲ ▲ ▲                         │ add_unschedulable_if_not_present
        gated   │  backoff │ │ │ event past the wait,    ▼
                ▼  is over │ │ │ activate       an event came meanwhile that helps?
             SLEEPING ─────┼─┘ └───── BACKOFF ◀── yes, or it failed with an error
              (gated or ───┘              ▲            └─ no ──▶ SLEEPING
           unschedulable) ────────────────┘
                event that a refuser's hint likes, or the five-minute flush

Invariants (`QueueParts.validate` checks them):
- a pod is in at most one of active, backoff, sleeping; a pod under way is in none of them;
- a sleeping pod was refused by some plugin, and no event since its last attempt began helps any of its refusers;
- what is gated is sleeping.

The queue is synchronous and owns no clock: `now` is in seconds, of any one clock that only rises.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, v1.36.
Differs: assigned pods that are added or relabelled are not pre-filtered by affinity terms before the hints are asked;
the hints of the two built-in plugins concerned give the same answer, and a third party's plugin is not passed over.
What a scheduler wrote about a pod's last attempt does not wake it: a pod refused at Permit by a plugin that listens to
everything would be tried again without a pause, woken by its own nomination.
Pods of a pod group are never popped before their backoff is over: upstream would try such a group without a pause.
"""

from collections.abc import Callable, Iterable, Mapping

from skysail.api.core import Pod
from skysail.scheduler.framework.changes import is_schedulers_own_writing, pod_scheduling_properties_change
from skysail.scheduler.framework.events import (
    BACKOFF_COMPLETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_UPDATE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_Q,
    SCHEDULE_ATTEMPT_FAILURE,
    ClusterEvent,
)
from skysail.scheduler.framework.queued_pod import PodKey, QueuedPodInfo, pod_key, scheduler_name
from skysail.scheduler.queue.backoff import BackoffQueue
from skysail.scheduler.queue.gates import NO_PROFILE, QueueProfile
from skysail.scheduler.queue.hints import Strategy
from skysail.scheduler.queue.nominator import IsPending, Nominator
from skysail.scheduler.queue.parts import QueueParts
from skysail.scheduler.queue.pod_heap import Order, PodHeap


class SchedulingQueue(QueueParts):
    """The queue.

    Args:
        profiles: By scheduler name. A pod of another scheduler never gets here.
        order: The sort key that the QueueSort plugin gives; one for all profiles.
        initial_backoff_seconds: Wait after the first refusal.
        max_backoff_seconds: Longest wait; 0 switches backoff off.
        max_unschedulable_seconds: How long a pod sleeps at most before it is tried again anyway.
        is_pending: Whether a pod still exists unbound, for the nominator.
        on_ready: Called when a pod can be popped that could not before; must not call back into the queue.
        on_waiting: Called when a pod begins to back off or to sleep: the flush timers are wanted. Likewise.
        groups_back_off: Whether a refused pod of a pod group comes back after its backoff, whatever happens meanwhile.
    """

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        order: Order,
        *,
        initial_backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 10.0,
        max_unschedulable_seconds: float = 300.0,
        is_pending: IsPending = lambda pod: True,
        on_ready: Callable[[], None] = lambda: None,
        on_waiting: Callable[[], None] = lambda: None,
        groups_back_off: bool = False,
    ) -> None:
        backoff = BackoffQueue(initial_backoff_seconds, max_backoff_seconds, order, groups_wait=groups_back_off)
        super().__init__(PodHeap(order), backoff)
        self._groups_back_off = groups_back_off
        self._profiles = profiles
        self._max_unschedulable_seconds = max_unschedulable_seconds
        self._on_ready, self._on_waiting = on_ready, on_waiting
        self.nominator = Nominator(is_pending)

    # -- pods come and go -------------------------------------------------------------------------------------------

    def add(self, pod: Pod, now: float) -> None:
        """A new unbound pod. One that is known already is only refreshed."""
        key = pod_key(pod)
        known = self.get(key)
        if known is not None and known.pod.metadata.uid == pod.metadata.uid:
            self.update(known.pod, pod, now)
        elif pod.metadata.uid not in self._in_flight:
            self._remove(key)
            self._to_active(QueuedPodInfo(pod, now), EVENT_UNSCHEDULED_POD_ADD.label, now)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """An unbound pod changed: refresh it, and wake it if the change may help it.

        A pod under way only has the change noted for when it comes back; an unknown one is taken in.
        """
        events = () if is_schedulers_own_writing(old, new) else pod_scheduling_properties_change(old, new)
        if new.metadata.uid in self._in_flight:
            for event in events:
                self._in_flight.record(event, old, new)
            return
        key = pod_key(new)
        part = next((part for part in (self._active, self._backoff) if key in part), None)
        info = part.get(key) if part is not None else self._sleeping.get(key)
        if info is None:
            self._to_active(QueuedPodInfo(new, now), EVENT_UNSCHEDULED_POD_UPDATE.label, now)
            return
        info.pod = new
        self.nominator.update(old, new)
        if part is not None:
            part.push(info)
            return
        for event in events:
            strategy = self._profile(new).hints.strategy(info, event, old, new)
            if self._requeue(info, strategy, event.label, now):
                break

    def delete(self, pod: Pod) -> None:
        """The pod is gone, or no longer ours to place. One under way is dropped when its cycle finds out."""
        self.nominator.remove(pod)
        self._remove(pod_key(pod))

    def pop(self, now: float) -> QueuedPodInfo | None:
        """The next pod to schedule, under way until `done` or `add_unschedulable_if_not_present`; None when none is.

        When nothing is active, the refused pod whose backoff ends first comes early.
        """
        while True:
            info = self._active.pop()
            if info is None:
                info = self._backoff.pop_early()
                if info is None:
                    return None
                self._incoming["active", POP_FROM_BACKOFF_Q] += 1
            try:
                started = self._in_flight.start(info.pod)
            except Exception:
                self._active.push(info)  # a bug loses no pod
                raise
            if started:
                info.attempts += 1
                self._scheduling_cycle += 1
                return info

    def pop_specific(self, pod: Pod, now: float) -> QueuedPodInfo | None:
        """One pod of the queue, whatever part it is in, as `pop` would give it; None when it is gated or not there."""
        self.activate([pod], now)
        info = self._active.remove(pod_key(pod))
        if info is None:
            return None
        try:
            started = self._in_flight.start(info.pod)
        except Exception:
            self._active.push(info)  # a bug loses no pod
            raise
        if not started:
            return None
        info.attempts += 1
        return info

    def done(self, uid: str) -> None:
        """The pod is no longer under way (bound, gone, or back in the queue). Idempotent."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo, now: float) -> bool:
        """A popped pod comes back. Who refused it stands in `info`; nobody means that an error did.

        Where it goes is decided by the events that came while it was under way.

        Returns:
            False, and nothing is queued, when the pod is in the queue already (it was deleted and made anew).
        """
        uid = info.pod.metadata.uid
        if info.key in self:
            self.done(uid)
            return False
        if info.unschedulable_plugins or info.pending_plugins:
            info.unschedulable_count += 1
            info.consecutive_errors_count = 0
        else:
            info.consecutive_errors_count += 1
        info.timestamp = now
        info.backoff_expiration = None
        info.was_flushed_from_unschedulable = False
        strategy = self._strategy_for_in_flight(info)
        self.done(uid)
        self._requeue(info, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
        return True

    # -- the world moves --------------------------------------------------------------------------------------------

    def move_all_to_active_or_backoff(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now: float,
        *,
        only: Callable[[Pod], bool] | None = None,
    ) -> int:
        """Something happened: wake every sleeping pod that it may help, and note it for the pods under way.

        Args:
            event: What happened.
            old: The object before; None for an addition.
            new: The object after; None for a deletion.
            now: Seconds on the queue's clock.
            only: Which sleeping pods are looked at at all; None is all.

        Returns:
            How many pods woke.

        Cost: one hint for each sleeping pod that an interested plugin refused; nothing when nobody registered for it.
        """
        if not event.is_wildcard and not any(p.hints.plugins_interested_in(event) for p in self._profiles.values()):
            return 0
        candidates = self._candidates(event)
        if only is not None:
            candidates = [info for info in candidates if only(info.pod)]
        return self._move(candidates, event, old, new, now)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Send these pods to the active queue, past backoff and hints (a plugin asked for it).

        One under way comes back at once if it is refused; an unknown one is ignored.
        """
        for pod in pods:
            key = pod_key(pod)
            info = self._sleeping.get(key)
            if info is not None:
                self._to_active(info, FORCE_ACTIVATE, now)
            elif (info := self._backoff.remove(key)) is not None:
                self._to_active(info, FORCE_ACTIVATE, now, ask_gates=False)
            elif pod.metadata.uid in self._in_flight:
                self._in_flight.record(EVENT_FORCE_ACTIVATE, None, pod)

    def flush_backoff_completed(self, now: float) -> int:
        """Move the pods whose backoff is over to the active queue (call each second, at whole seconds)."""
        completed = self._backoff.pop_completed(now)
        for info in completed:
            self._to_active(info, BACKOFF_COMPLETE, now, ask_gates=False)
        return len(completed)

    def flush_unschedulable_leftover(self, now: float) -> int:
        """Wake what has slept for too long (call every half a minute)."""
        late = [info for info in self._sleeping if now - info.timestamp > self._max_unschedulable_seconds]
        for info in late:
            info.was_flushed_from_unschedulable = True
        return self._move(late, EVENT_UNSCHEDULABLE_TIMEOUT, None, None, now) if late else 0

    # -- how pods move ----------------------------------------------------------------------------------------------

    def _profile(self, pod: Pod) -> QueueProfile:
        return self._profiles.get(scheduler_name(pod), NO_PROFILE)

    def _candidates(self, event: ClusterEvent) -> list[QueuedPodInfo]:
        if event.is_wildcard:
            return list(self._sleeping)
        return [
            info
            for name, profile in self._profiles.items()
            if (plugins := profile.hints.plugins_interested_in(event))
            for info in self._sleeping.refused_by(name, plugins)
        ]

    def _move(
        self, candidates: list[QueuedPodInfo], event: ClusterEvent, old: object | None, new: object | None, now: float
    ) -> int:
        woken = 0
        for info in candidates:
            if info.gated and not any(registered.matches(event) for registered in info.gating_plugin_events):
                continue
            strategy = self._profile(info.pod).hints.strategy(info, event, old, new)
            if strategy is not Strategy.SKIP:
                woken += self._requeue(info, strategy, event.label, now)
        self._in_flight.record(event, old, new)
        return woken

    def _strategy_for_in_flight(self, info: QueuedPodInfo) -> Strategy:
        if not info.unschedulable_plugins and not info.pending_plugins:
            return Strategy.AFTER_BACKOFF
        if self._groups_back_off and info.pod.spec.scheduling_group is not None:
            return Strategy.AFTER_BACKOFF
        events = self._in_flight.events_since(info.pod.metadata.uid)
        if events is None:
            return Strategy.AFTER_BACKOFF
        hints, best = self._profile(info.pod).hints, Strategy.SKIP
        for entry in events:
            strategy = hints.strategy(info, entry.event, entry.old, entry.new)
            if strategy is Strategy.IMMEDIATELY or (strategy is Strategy.AFTER_BACKOFF and not info.pending_plugins):
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                best = strategy
        return best

    def _requeue(self, info: QueuedPodInfo, strategy: Strategy, label: str, now: float) -> bool:
        if strategy is Strategy.SKIP:
            self._to_sleep(info, label)
            return False
        if strategy is Strategy.AFTER_BACKOFF and self._backoff.is_backing_off(info, now):
            return self._to_backoff(info, label)
        return self._to_active(info, label, now)

    def _to_active(self, info: QueuedPodInfo, label: str, now: float, *, ask_gates: bool = True) -> bool:
        if ask_gates and not self._profile(info.pod).passes_gates(info):
            self._to_sleep(info, label)
            return False
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = now
        self._remove(info.key)
        self._active.push(info)
        self._incoming["active", label] += 1
        if label in (EVENT_UNSCHEDULED_POD_ADD.label, EVENT_UNSCHEDULED_POD_UPDATE.label):
            self.nominator.add(info.pod)
        self._on_ready()
        return True

    def _to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        if not self._profile(info.pod).passes_gates(info):
            self._to_sleep(info, label)
            return False
        self._sleeping.remove(info.key)
        self._backoff.push(info)
        self._incoming["backoff", label] += 1
        self._on_waiting()
        if self._backoff.has_early:
            self._on_ready()
        return True

    def _to_sleep(self, info: QueuedPodInfo, label: str) -> None:
        if self._sleeping.put(info):
            self._incoming["unschedulable", label] += 1
            self._on_waiting()

    def _remove(self, key: PodKey) -> None:
        _ = self._active.remove(key) or self._backoff.remove(key) or self._sleeping.remove(key)
