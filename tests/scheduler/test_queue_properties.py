"""A model of the queue: whatever happens in whatever order, no pod is lost and none sleeps that an event could help."""

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skysail.api.core import Pod
from skysail.scheduler.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.queued_pod import QueuedPodInfo, pod_key
from tests.scheduler.queue_objects import gate_check, make_queue, pod

PLUGINS = ("A", "B", "C")
NAMES = ("p0", "p1", "p2", "p3")
RESOURCES = ("r0", "r1", "r2")
GATES_GONE = ClusterEvent("Pod", ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def likes(plugin: str, candidate: Pod, new: object) -> bool:
    """An arbitrary but fixed opinion: whether `plugin` thinks the new object may help the pod."""
    return (ord(plugin) + int(candidate.metadata.name[1:]) + int(str(new))) % 3 != 0


def hint_of(plugin: str):
    return lambda candidate, old, new: QueueingHint.QUEUE if likes(plugin, candidate, new) else QueueingHint.SKIP


REGISTRATIONS = {
    plugin: [
        ClusterEventWithHint(ClusterEvent(resource, ActionType.ADD), hint_of(plugin))
        for resource in RESOURCES[index : index + 2]
    ]
    for index, plugin in enumerate(PLUGINS)
} | {"SchedulingGates": [ClusterEventWithHint(GATES_GONE)]}


class QueueModel(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.now = 0.0
        self.queue = make_queue(REGISTRATIONS, gates=[("SchedulingGates", gate_check)])
        self.known: dict[str, Pod] = {}
        self.in_flight: dict[str, QueuedPodInfo] = {}
        self.since: dict[str, list[tuple[str, int]]] = {}
        self.generation = 0
        for name in NAMES[:3]:
            self.add(name, False)

    @precondition(lambda self: self.queue.has_ready)
    @rule(
        during=st.lists(st.sampled_from(RESOURCES), max_size=2), new=st.integers(0, 5), refuser=st.sampled_from(PLUGINS)
    )
    def attempt_fails_while_events_come(self, during, new, refuser):
        self.pop()
        for resource in during:
            self.event(resource, new)
        info = self.in_flight.pop(sorted(self.in_flight)[0])
        self.fail(info, {refuser}, set())

    @precondition(lambda self: self.queue.has_ready)
    @rule(
        before=st.booleans(),
        during=st.sampled_from(RESOURCES),
        new=st.integers(0, 5),
        refusers=st.tuples(st.sampled_from(PLUGINS), st.sampled_from(PLUGINS)),
        oldest_first=st.booleans(),
    )
    def attempts_overlap(self, before, during, new, refusers, oldest_first):
        """An event comes while several attempts go on; then the oldest and the youngest fail, in either order."""
        self.pop()
        if before:
            self.event(during, new + 1)
        if self.queue.has_ready:
            self.pop()
        self.event(during, new)
        by_age = [entry.metadata.name for entry in self.queue.in_flight_pods]
        ending = (by_age[0], by_age[-1]) if oldest_first else (by_age[-1], by_age[0])
        for name, refuser in zip(dict.fromkeys(ending), refusers, strict=False):
            self.fail(self.in_flight.pop(name), {refuser}, set())

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 7.0]))
    def time_passes(self, seconds):
        self.now += seconds
        self.queue.flush_backoff_completed(self.now)

    @rule()
    def half_a_minute_passes(self):
        self.now += 30.0
        self.queue.flush_unschedulable_leftover(self.now)

    @precondition(lambda self: len(self.known) < len(NAMES))
    @rule(name=st.sampled_from(NAMES), gated=st.booleans())
    def add(self, name, gated):
        if name not in self.known and name not in self.in_flight:
            self.generation += 1
            self.known[name] = pod(name, gates=["g"] if gated else [], uid=f"{name}-{self.generation}")
            self.queue.add(self.known[name], self.now)

    @rule(name=st.sampled_from(NAMES))
    def ungate(self, name):
        old = self.known.get(name)
        if old is not None and old.spec.scheduling_gates:
            self.known[name] = pod(name, uid=old.metadata.uid)
            self.queue.update(old, self.known[name], self.now)
            assert self.queue.part_of(pod_key(old)) == "active"

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name):
        if name in self.known:
            self.queue.delete(self.known.pop(name))

    @precondition(lambda self: self.queue.has_ready)
    @rule()
    def pop(self):
        info = self.queue.pop(self.now)
        if info is not None:
            name = info.pod.metadata.name
            assert name in self.known
            assert not info.pod.spec.scheduling_gates
            self.in_flight[name] = info
            self.since[info.pod.metadata.uid] = []

    @precondition(lambda self: self.in_flight)
    @rule(
        data=st.data(),
        refusers=st.sets(st.sampled_from(PLUGINS)),
        pending=st.sets(st.sampled_from(PLUGINS), max_size=1),
    )
    def attempt_fails(self, data, refusers, pending):
        info = self.in_flight.pop(data.draw(st.sampled_from(sorted(self.in_flight))))
        self.fail(info, refusers, pending)

    def fail(self, info, refusers, pending):
        current = self.known.get(info.pod.metadata.name)
        if current is None or current.metadata.uid != info.pod.metadata.uid:
            self.queue.done(info.pod.metadata.uid)
            return
        info.pod = current
        info.clear_rejectors()
        info.unschedulable_plugins, info.pending_plugins = set(refusers), set(pending)
        assert self.queue.add_unschedulable_if_not_present(info, self.now)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def bound(self, data):
        name = data.draw(st.sampled_from(sorted(self.in_flight)))
        info = self.in_flight.pop(name)
        self.known.pop(name, None)
        self.queue.done(info.pod.metadata.uid)

    @rule(resource=st.sampled_from(RESOURCES), new=st.integers(0, 5))
    def event(self, resource, new):
        for events in self.since.values():
            events.append((resource, new))
        self.queue.move_all_to_active_or_backoff(ClusterEvent(resource, ActionType.ADD), None, new, self.now)

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name):
        if name in self.known:
            self.queue.activate([self.known[name]], self.now)

    @invariant()
    def every_pod_is_in_exactly_one_place(self):
        self.queue.validate()
        queued = {info.pod.metadata.name for info in self.queue.pending_pods()}
        under_way = {entry.metadata.name for entry in self.queue.in_flight_pods}
        assert under_way == set(self.in_flight)
        assert queued == set(self.known) - set(self.in_flight)

    @invariant()
    def no_pod_sleeps_that_an_event_since_its_attempt_could_help(self):
        for info in self.queue.pending_pods():
            if self.queue.part_of(info.key) != "unschedulable":
                continue
            for resource, new in self.since.get(info.pod.metadata.uid, []):
                for plugin in info.rejectors:
                    registered = {row.event.resource for row in REGISTRATIONS[plugin]}
                    assert not (resource in registered and likes(plugin, info.pod, new)), (info, resource, new)

    @invariant()
    def nothing_is_remembered_for_nobody(self):
        if not self.in_flight:
            assert self.queue.statistics().in_flight_events == 0

    def teardown(self):
        """Given time, everything that is not gated comes out."""
        for info in list(self.in_flight.values()):
            self.queue.done(info.pod.metadata.uid)
            self.known.pop(info.pod.metadata.name, None)
        self.now += 1000.0
        self.queue.flush_unschedulable_leftover(self.now)
        self.queue.flush_backoff_completed(self.now)
        out = set()
        while (info := self.queue.pop(self.now)) is not None:
            out.add(info.pod.metadata.name)
        assert out == {name for name, known in self.known.items() if not known.spec.scheduling_gates}


EXAMPLES = 120 * max(1, int(os.environ.get("SOAK_SEEDS", "10")) // 10)
QueueModel.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None, derandomize=True, database=None
)
TestQueueModel = QueueModel.TestCase
