"""A cluster in memory for tests of the batch engine: a world, its cycles, and kubelets that do as they are told."""

import os
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from skysail.batch.cycle import run_once
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.model.job import TaskState
from skysail.batch.model.resources import ANY
from skysail.batch.model.specs import Figures, PodGroupSpec, QueueSpec
from skysail.batch.registry import DEFAULT_ACTIONS, DEFAULT_PLUGINS, make_action, make_plugin
from skysail.batch.session import Configuration
from skysail.batch.world import World
from skysail.testing.builders import make_node, make_pod

GPU = "nvidia.com/gpu"
START = 1_000_000.0
SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))


def configuration(actions=DEFAULT_ACTIONS, plugins=DEFAULT_PLUGINS, **more):
    return Configuration(
        tuple(make_action(name) for name in actions), tuple(make_plugin(name) for name in plugins), **more
    )


def figures(deserved=None, capability=None, guarantee=None, resource=GPU, flavor=ANY, weight=None):
    return {(flavor, resource): Figures(guarantee, deserved, capability, weight)}


class Lab:
    """What a test holds in its hands.

    Attributes:
        leaves_at_once: Whether an evicted pod is gone at once; else it is terminating until `finish_leaving`.
        recreate: Whether a controller makes a new pod for each evicted one.
        bound: Every binding so far: (pod name, node).
        evicted: Every eviction so far: (pod name, beneficiary).
    """

    def __init__(self, **more):
        self.world = World(**more)
        self.world.now = START
        self.configuration = configuration()
        self.leaves_at_once, self.recreate = True, False
        self.bound, self.evicted, self.sessions = [], [], []
        self.recreated = 0
        self._created = 0

    # -- objects ---------------------------------------------------------------------------------------------------

    def nodes(self, count, prefix="n", gpus=0, cpu="64", labels=None, pods="110", **capacity):
        for number in range(count):
            more = {GPU: str(gpus)} if gpus else {}
            node = make_node(
                f"{prefix}{number:03}", cpu=cpu, memory="256Gi", pods=pods, labels=labels, capacity=more | capacity
            )
            self.world.set_node(node)

    def slots(self, count, prefix="n"):
        """Nodes that hold one pod each."""
        self.nodes(count, prefix, pods="1")

    def queue(self, name, **spec):
        self.world.set_queue(QueueSpec(name, uid=name, **spec))

    def group(self, name, minimum, queue="default", **spec):
        self._created += 1
        self.world.set_group(
            PodGroupSpec(
                "default", name, uid=name, queue=queue, min_member=minimum, created=START + self._created, **spec
            )
        )
        return self.world.jobs[f"default/{name}"]

    def pod(self, name, group="", gpus=0, queue="", role="", scheduler=SCHEDULER_NAME, **spec):
        self._created += 1
        said = {
            "scheduling.skysail.io/pod-group": group,
            "scheduling.skysail.io/queue": queue,
            "scheduling.skysail.io/role": role,
        }
        labels = {key: value for key, value in said.items() if value} | spec.pop("labels", {})
        requests = ({GPU: str(gpus)} if gpus else {}) | spec.pop("requests", {})
        pod = make_pod(
            name, uid=f"uid-{name}", labels=labels, scheduler=scheduler, requests=requests, phase="Pending",
            created=datetime.fromtimestamp(START + self._created, UTC), **spec,
        )  # fmt: skip
        self.world.set_pod(pod)
        return pod

    def gang(self, name, size, minimum=None, queue="default", gpus=0, group=None, **spec):
        """A group and its pods."""
        job = self.group(name, size if minimum is None else minimum, queue, **(group or {}))
        for number in range(size):
            self.pod(f"{name}-{number}", name, gpus, **spec)
        return job

    def run(self, pod, node):
        """A pod runs somewhere, whoever bound it."""
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        started = datetime.fromtimestamp(self.world.now, UTC)
        status = msgspec.structs.replace(pod.status, phase="Running", start_time=started)
        self.world.set_pod(msgspec.structs.replace(pod, spec=spec, status=status))

    def delete(self, name):
        self.world.remove_pod(f"uid-{name}")

    def finish(self, name, phase="Succeeded"):
        pod = self.world.tasks[f"uid-{name}"].pod
        self.world.set_pod(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase)))

    # -- cycles ----------------------------------------------------------------------------------------------------

    def cycle(self, times=1, seconds=1.0):
        for _ in range(times):
            session = run_once(self.world, self.configuration)
            self.sessions.append(session)
            self.play(session.effects)
            assert self.world.problems() == []
            self.world.now += seconds
        return session

    def play(self, effects):
        for batch in effects.binds:
            for task in list(batch.tasks):
                self.bound.append((task.pod.name, task.node))
                self.run(task.pod, task.node)
        leaving = [(eviction.task.pod, eviction.claim.job) for eviction in effects.evictions]
        leaving += [(task.pod, "drain") for task in effects.drained]
        leaving += [(task.pod, "repair") for task in effects.let_go]
        for pod, beneficiary in leaving:
            self.evicted.append((pod.name, beneficiary))
            if self.leaves_at_once:
                self.world.remove_pod(pod.uid)
            else:
                metadata = msgspec.structs.replace(
                    pod.metadata, deletion_timestamp=datetime.fromtimestamp(self.world.now, UTC)
                )
                self.world.set_pod(msgspec.structs.replace(pod, metadata=metadata))
        if self.recreate:
            for pod, _ in leaving:
                self.create_again(pod)

    def create_again(self, pod):
        self.recreated += 1
        self._created += 1
        metadata = msgspec.structs.replace(
            pod.metadata, uid=f"{pod.uid}+", name=f"{pod.name}+", deletion_timestamp=None,
            creation_timestamp=datetime.fromtimestamp(START + self._created, UTC),
        )  # fmt: skip
        spec = msgspec.structs.replace(pod.spec, node_name="")
        self.world.set_pod(
            msgspec.structs.replace(
                pod, metadata=metadata, spec=spec, status=msgspec.structs.replace(pod.status, phase="Pending")
            )
        )

    def finish_leaving(self):
        for task in [task for task in self.world.tasks.values() if task.state is TaskState.RELEASING]:
            self.world.remove_pod(task.uid)

    # -- questions -------------------------------------------------------------------------------------------------

    def job(self, name):
        return self.world.jobs.get(f"default/{name}") or self.world.jobs[f"pod:default/{name}"]

    def running(self, name):
        """Names of a job's running pods."""
        return [task.pod.name for task in self.job(name).tasks.values() if task.state is TaskState.BOUND]

    def count(self, name):
        return len(self.running(name))

    def code(self, name):
        outcome = self.job(name).outcome
        return outcome.code.value if outcome is not None else None

    def numbers(self, name):
        return dict(self.job(name).outcome.numbers)

    def node_of(self, name):
        return self.world.tasks[f"uid-{name}"].node


__all__ = ["ANY", "GPU", "SEEDS", "START", "Figures", "Lab", "configuration", "figures", "replace"]
