"""After any news of any objects, in any order, queues are charged as a process charges them that starts now."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from skysail.batch.foreign.pods import MembershipReader
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.model.specs import FlavorSpec, JobQueueSpec, PodGroupSpec, QueueSpec, QuotaSpec, UserLimit
from skysail.batch.registry import DEFAULT_ACTIONS
from skysail.batch.world import World
from skysail.testing.builders import make_node, make_pod
from tests.batch.lab import ANY, Lab, configuration, figures

GANG = "gang.scheduling.koordinator.sh/"
OURS = "scheduling.skysail.io/"
NAMES = st.integers(0, 5).map("p{}".format)
GROUPS = st.sampled_from(["g0", "g1", "g2"])
QUEUES = st.sampled_from(["a", "b", "c"])
LINES = st.sampled_from(["l0", "l1"])
NODES = st.sampled_from(["n0", "n1"])
QUOTAS = st.sampled_from(["s0", "s1"])
WORDS = st.fixed_dictionaries(
    {},
    optional={
        f"{OURS}pod-group": GROUPS,
        f"{OURS}queue": QUEUES,
        f"{OURS}job-queue": LINES,
        f"{OURS}user": st.sampled_from(["ann", "bob"]),
        f"{GANG}name": GROUPS,
    },
)
NO_REST = [action for action in DEFAULT_ACTIONS if action != "reclaim"]


def moment(seconds):
    return datetime.fromtimestamp(seconds, UTC)


class Objects:
    """What the server holds."""

    def __init__(self):
        self.pods, self.groups, self.quotas, self.nodes = {}, {}, {}, {}
        self.queues, self.lines, self.flavors, self.namespaces = {}, {}, (), {}

    def world(self, running):
        """What a process knows that starts now.

        Args:
            running: The world of which statuses say where slots are, and who sits in them.
        """
        slots, now = running.slots.values(), running.now
        said = {quota.key: as_said(quota, slots, running.tasks) for quota in self.quotas.values()}
        reader = MembershipReader(namespaces=dict(self.namespaces))
        world = World(membership=reader)
        world.now = now
        world.replace_queues(self.queues, self.lines, self.flavors)
        for group in self.groups.values():
            world.set_group(group)
        for node in self.nodes.values():
            world.set_node(node)
        for quota in said.values():
            world.set_quota(quota)
        for _, pod in sorted(self.pods.items()):
            world.set_pod(pod)
        world.place_slots(said)
        return world


def as_said(quota, slots, tasks):
    """A Quota with what its status says."""
    mine = [slot for slot in slots if slot.spec.key == quota.key]
    return replace(
        quota,
        node={slot.index: slot.node for slot in mine if slot.node},
        bound={slot.index: slot.bound_at for slot in mine if slot.node},
        holders={slot.index: tuple(tasks[uid].key for uid in slot.holders) for slot in mine if slot.holders},
        used=frozenset(slot.index for slot in mine if slot.is_spent),
        released={slot.index: slot.reason for slot in mine if slot.reason is not None},
    )


def charges(world):
    """All that is charged, and all that is asked for."""
    wanted = {(queue, name): amount for queue, each in world.wanted.items() for name, amount in each.items() if amount}
    others = {key: amount for key, amount in world.foreign_use.items() if amount}
    return {**world.ledger.entries()}, wanted, others


class NewsMachine(RuleBasedStateMachine):
    """News come one after another; between them a cycle may run."""

    @initialize()
    def start(self):
        self.membership = MembershipReader()
        self.lab = Lab(membership=self.membership)
        self.lab.configuration = configuration(NO_REST)
        self.lab.play = self.play
        self.world, self.objects, self.made = self.lab.world, Objects(), 0
        for name in ("a", "b"):
            self.objects.queues[name] = QueueSpec(name, uid=name)
        self.read_queues()
        for name in ("n0", "n1"):
            self.set_node(name, "", "8")
        self.set_quota("s0", "a", 2, 1000, once=False)
        self.lab.cycle()
        for name, queue in (("g0", "a"), ("g1", "")):
            self.set_group(name, queue, "", 1)
        for number, words in enumerate(({f"{OURS}pod-group": "g0"}, {f"{OURS}pod-group": "g1"}, {f"{GANG}name": "g2"})):
            for place in (number, number + 3):
                self.make_pod(f"p{place}", words | ({f"{OURS}queue": "b"} if place % 2 else {}), "1", ours=True)
                self.run_on(f"p{place}", f"n{place % 2}")

    def make_pod(self, name, words, cpu, *, ours):
        made = moment(self.tick())
        scheduler = SCHEDULER_NAME if ours else "other"
        self.put(
            make_pod(
                name, uid=f"{self.made}", labels=words, cpu=cpu, phase="Pending", created=made, scheduler=scheduler
            )
        )

    def set_group(self, name, queue, line, minimum):
        known = self.objects.groups.get(name)
        uid = known.uid if known is not None else f"{name}-{self.made}"
        spec = PodGroupSpec("default", name, uid=uid, queue=queue, job_queue=line, min_member=minimum)
        self.objects.groups[name] = spec
        self.world.set_group(spec)

    def set_node(self, name, size, cpu):
        node = make_node(name, cpu=cpu, memory="64Gi", labels={"size": size} if size else {})
        self.objects.nodes[name] = node
        self.world.set_node(node)

    def set_quota(self, name, queue, count, cpu, *, once):
        known, now = self.objects.quotas.get(name), self.tick()
        uid, created = (known.uid, known.created) if known is not None else (f"{name}-{self.made}", now)
        spec = QuotaSpec(
            "default", name, queue, {"cpu": cpu}, uid=uid, count=count, allocate_once=once, created=created
        )
        self.objects.quotas[name] = spec
        self.world.set_quota(spec)

    def play(self, effects):
        """Kubelets run what was bound."""
        for batch in effects.binds:
            for task in list(batch.tasks):
                self.run_on(task.pod.name, task.node)

    def tick(self):
        self.world.now += 1
        self.made += 1
        return self.world.now

    def put(self, pod):
        self.objects.pods[pod.name] = pod
        self.world.set_pod(pod)

    def run_on(self, name, node):
        pod = self.objects.pods[name]
        status = msgspec.structs.replace(pod.status, phase="Running", start_time=moment(self.tick()))
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.put(msgspec.structs.replace(pod, spec=spec, status=status))

    # -- pods ------------------------------------------------------------------------------------------------------

    @rule(name=NAMES, words=WORDS, cpu=st.sampled_from(["1", "2"]), ours=st.sampled_from([True, True, True, False]))
    def pod_made(self, name, words, cpu, ours):
        if name not in self.objects.pods:
            self.make_pod(name, words, cpu, ours=ours)

    @rule(name=NAMES, words=WORDS)
    def pod_says_otherwise(self, name, words):
        pod = self.objects.pods.get(name)
        if pod is not None:
            metadata = msgspec.structs.replace(pod.metadata, labels=words)
            self.put(msgspec.structs.replace(pod, metadata=metadata))

    @rule(name=NAMES, node=NODES)
    def pod_bound(self, name, node):
        pod = self.objects.pods.get(name)
        if pod is not None and not pod.spec.node_name and not pod.metadata.deletion_timestamp:
            self.run_on(name, node)

    @rule(name=NAMES, cpu=st.sampled_from(["1", "2"]))
    def pod_resized(self, name, cpu):
        pod = self.objects.pods.get(name)
        if pod is not None:
            again = make_pod(name, cpu=cpu)
            spec = msgspec.structs.replace(pod.spec, containers=again.spec.containers)
            self.put(msgspec.structs.replace(pod, spec=spec))

    @rule(name=NAMES)
    def pod_leaves(self, name):
        pod = self.objects.pods.get(name)
        if pod is not None and pod.metadata.deletion_timestamp is None:
            metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=moment(self.tick()))
            self.put(msgspec.structs.replace(pod, metadata=metadata))

    @rule(name=NAMES)
    def pod_ends(self, name):
        pod = self.objects.pods.get(name)
        if pod is not None and pod.spec.node_name:
            self.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded")))

    @rule(name=NAMES)
    def pod_gone(self, name):
        pod = self.objects.pods.pop(name, None)
        if pod is not None:
            self.world.remove_pod(pod.uid)

    # -- groups ----------------------------------------------------------------------------------------------------

    @rule(name=GROUPS, queue=st.just("") | QUEUES, line=st.just("") | LINES, minimum=st.integers(1, 2))
    def group(self, name, queue, line, minimum):
        self.set_group(name, queue, line, minimum)

    @rule(name=GROUPS)
    def group_gone(self, name):
        if self.objects.groups.pop(name, None) is not None:
            self.world.remove_group(f"default/{name}")

    # -- queues ----------------------------------------------------------------------------------------------------

    def read_queues(self):
        objects = self.objects
        self.membership.namespaces = dict(objects.namespaces)
        self.world.replace_queues(objects.queues, objects.lines, objects.flavors)
        self.world.read_pods_anew()

    @rule(name=QUEUES, parent=st.just("") | QUEUES, limited=st.booleans())
    def queue(self, name, parent, limited):
        limits = (UserLimit("ann", "", {"cpu": 64000}, None),) if limited else ()
        self.objects.queues[name] = QueueSpec(name, uid=name, parent=parent, limits=limits)
        self.read_queues()

    @rule(name=QUEUES)
    def queue_gone(self, name):
        if self.objects.queues.pop(name, None) is not None:
            self.read_queues()

    @rule(name=LINES, queue=QUEUES)
    def line(self, name, queue):
        self.objects.lines[f"default/{name}"] = JobQueueSpec("default", name, queue)
        self.read_queues()

    @rule(name=LINES)
    def line_gone(self, name):
        if self.objects.lines.pop(f"default/{name}", None) is not None:
            self.read_queues()

    @rule(queue=st.none() | QUEUES)
    def namespace_has_a_queue(self, queue):
        self.objects.namespaces = {} if queue is None else {"default": queue}
        self.read_queues()

    # -- nodes -----------------------------------------------------------------------------------------------------

    @rule(name=NODES, size=st.sampled_from(["", "large"]), cpu=st.sampled_from(["4", "8"]))
    def node(self, name, size, cpu):
        self.set_node(name, size, cpu)

    @rule(name=NODES)
    def node_gone(self, name):
        if self.objects.nodes.pop(name, None) is not None:
            self.world.remove_node(name)

    @rule(defined=st.booleans())
    def flavors(self, defined):
        self.objects.flavors = (FlavorSpec("large", {"size": "large"}),) if defined else ()
        self.read_queues()

    # -- slots -----------------------------------------------------------------------------------------------------

    @rule(name=QUOTAS, queue=QUEUES, count=st.integers(1, 2), once=st.booleans(), cpu=st.sampled_from([1000, 2000]))
    def quota(self, name, queue, count, once, cpu):
        self.set_quota(name, queue, count, cpu, once=once)

    @rule(name=QUOTAS)
    def quota_gone(self, name):
        if self.objects.quotas.pop(name, None) is not None:
            self.world.remove_quota(f"default/{name}")

    # -- what must hold --------------------------------------------------------------------------------------------

    @precondition(lambda self: hasattr(self, "lab"))
    @rule()
    def cycle(self):
        self.tick()
        self.lab.cycle()
        self.look()

    def look(self):
        again = self.objects.world(self.world)
        assert again.problems() == []
        assert charges(self.world) == charges(again)

    def teardown(self):
        if hasattr(self, "lab"):
            self.cycle()


NewsMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=15, deadline=None)
TestNews = NewsMachine.TestCase


def test_pods_whose_group_is_gone_are_charged_where_they_say_themselves_at_once():
    lab = Lab()
    lab.nodes(1)
    lab.queue("a")
    lab.gang("job", 2, queue="a", cpu="1")
    lab.cycle()
    lab.world.remove_group("default/job")
    lab.cycle()
    assert charges(lab.world)[0].keys() == {
        ("default", "held", (flavor, name)) for flavor in (ANY, "default") for name in ("cpu", "pods")
    }


def test_who_waits_for_what_a_running_job_uses_is_looked_at_once_that_job_is_of_another_queue():
    lab = Lab()
    lab.nodes(1)
    lab.queue("a", figures=figures(capability=2000, resource="cpu"))
    lab.gang("job", 2, queue="a", cpu="1")
    lab.cycle()
    lab.pod("next", queue="a", cpu="2")
    lab.cycle()
    assert lab.code("next") == "QuotaExceeded"
    lab.world.remove_group("default/job")
    lab.cycle()
    assert lab.count("next") == 1
