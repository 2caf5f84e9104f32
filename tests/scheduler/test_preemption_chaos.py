"""No victim dies in vain, whatever goes wrong with evictions.

What preemption promises, as kube-scheduler does: the room of the pods evicted on a node for a preemptor is taken by the
preemptor, or by another pod that is at least as important. It may be taken as soon as the first of these pods is going:
the others are evicted even if a more important pod took part of the room meanwhile, and the preemptor has to look for
another node. (Evictions, once begun, go on without a look at the node; and only nominations of pods that are as
important keep a pod off: upstream's `prepareCandidateAsync` and `addGENominatedPods`.) The room is no longer owed when

    the node went away, or takes no pods any more,
    the preemptor was deleted,
    room that the preemptor did not ask for came up elsewhere while its victims were ending, and it took that,
    some of the evictions failed, and by then evicting the rest would break a disruption budget: a node where none is
    broken is preferred to one where room was made already. (Half of the histories are without budgets.)

The same goes for a pod at least as important for which pods were evicted on that node: it takes the promise over.

Everything else stays as it is in these histories: nobody comes but preemptors.
"""

import asyncio
import os
import random
from dataclasses import dataclass, field

import pytest

from skysail.api.core import Pod
from skysail.api.errors import Conflict, InternalError, NotFound, TooManyRequests, Unreachable
from skysail.api.kinds import NODES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES
from skysail.client.inprocess import InProcessTransport
from skysail.controller.manager import Manager
from skysail.controllers.disruption.loop import DisruptionController
from skysail.scheduler.preemption.evictor import Eviction, Evictor
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
CLASSES = {"low": 0, "middle": 10, "high": 100, "higher": 200}
NODES_AT_FIRST = 4
APPS = ("web", "db")


@dataclass(frozen=True)
class Death:
    """A pod that was deleted for another.

    Attributes:
        victim: Its name.
        eviction: The decision that it go, the first that was carried out.
        since: How many bindings had been seen when that began.
    """

    victim: str
    eviction: Eviction
    since: int


@dataclass
class History:
    """What happened, in order.

    Attributes:
        deaths: By the victim's uid.
        bindings: `(uid, node)`, as they were seen.
        priorities: By uid.
        deleted_by_us: Uids of pods that the test took away.
        changed: Names of nodes that went away or were cordoned.
        room_came: Whether room came up that no eviction made.
        budgeted: Whether there are disruption budgets.
        failed: `(preemptor's uid, node)` of evictions of which one failed.
    """

    deaths: dict[str, Death] = field(default_factory=dict)
    bindings: list[tuple[str, str]] = field(default_factory=list)
    priorities: dict[str, int] = field(default_factory=dict)
    deleted_by_us: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    room_came: bool = False
    budgeted: bool = False
    failed: set[tuple[str, str]] = field(default_factory=set)

    def is_owed(self, death: Death) -> bool:
        """Whether the room must be taken: by the preemptor, or by one as important that took the promise over."""
        node_name, priority = death.eviction.node_name, self.priorities[death.eviction.preemptor.uid]
        heirs = [
            each.eviction
            for each in self.deaths.values()
            if each.eviction.node_name == node_name and self.priorities[each.eviction.preemptor.uid] >= priority
        ]
        return node_name not in self.changed and not any(self._is_excused(each) for each in heirs)

    def _is_excused(self, eviction: Eviction) -> bool:
        uid = eviction.preemptor.uid
        if uid in self.deleted_by_us or (self.budgeted and (uid, eviction.node_name) in self.failed):
            return True
        return self._found_room_elsewhere(eviction)

    def _found_room_elsewhere(self, eviction: Eviction) -> bool:
        """Whether the preemptor went where there was room without it, or where others left more than they needed."""
        uid = eviction.preemptor.uid
        went = {node for each, node in self.bindings if each == uid and node != eviction.node_name}
        others = {each.eviction.node_name for each in self.deaths.values() if each.eviction.preemptor.uid != uid}
        return bool(went) and (self.room_came or bool(went & others))

    def is_taken(self, death: Death) -> bool:
        """Whether somebody as important was bound there since the first of those evicted with it was going."""
        node_name, priority = death.eviction.node_name, self.priorities[death.eviction.preemptor.uid]
        since = min(each.since for each in self.deaths.values() if each.eviction is death.eviction)
        return any(node == node_name and self.priorities[uid] >= priority for uid, node in self.bindings[since:])


class Chaos:
    """One seeded history."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.dice, self.history = world, random.Random(seed), History()
        self.transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
        self.inner = InProcessTransport(world.server, ADMIN)
        self.made, self.preemptors = 0, list[str]()
        self.ending: set[str] = set()
        self.disturbs = self.dice.random() < 0.5

    # -- what a kubelet does ----------------------------------------------------------------------------------------

    async def follow(self) -> None:
        async for event in self.world.client.watch(PODS, resource_version="0"):
            if event.type == "BOOKMARK":
                continue
            pod: Pod = event.object
            self.history.priorities[pod.uid] = pod.spec.priority or 0
            if event.type == "DELETED" or not pod.spec.node_name:
                continue
            if (pod.uid, pod.spec.node_name) not in self.history.bindings:
                self.history.bindings.append((pod.uid, pod.spec.node_name))
                self.world.group.create_task(self.run_pod(pod))
            if pod.metadata.deletion_timestamp is not None and pod.uid not in self.ending:
                self.ending.add(pod.uid)
                self.world.group.create_task(self.end(pod))

    async def run_pod(self, pod: Pod) -> None:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        try:
            await self.world.client.patch(PODS, pod.name, "default", {"status": status}, subresource="status")
        except NotFound:
            return

    async def end(self, pod: Pod) -> None:
        """The grace period, sometimes cut short, sometimes more than used up."""
        await asyncio.sleep(self.dice.choice([0.0, 0.1, 3.0, 30.0, 45.0]))
        await self.gone(pod)

    async def gone(self, pod: Pod) -> None:
        try:
            await self.world.client.delete(PODS, pod.name, "default", grace_period_seconds=0, uid=pod.uid)
        except (NotFound, Conflict):
            return

    # -- faults -----------------------------------------------------------------------------------------------------

    def fault(self, request):
        evicts = request.method == "DELETE" or request.path.endswith("/status")
        roll = self.dice.random()
        if not evicts or roll > 0.45:
            return None
        if roll < 0.1:
            raise Unreachable("reset")
        if roll < 0.2:
            raise InternalError("the server is not well")
        if roll < 0.25:
            raise TooManyRequests("later")
        return self.lose_answer(request) if roll < 0.35 else self.late()

    async def lose_answer(self, request):
        await self.inner.request(request)
        raise Unreachable("answer lost")

    async def late(self):
        await asyncio.sleep(self.dice.random() * 20)

    # -- what people do ---------------------------------------------------------------------------------------------

    async def build(self) -> None:
        for name, value in CLASSES.items():
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            await self.world.client.create(PRIORITY_CLASSES, {**body, "value": value})
        for index in range(NODES_AT_FIRST):
            await self.world.node(f"n{index}", cpu="4")
        self.history.budgeted = self.dice.random() < 0.5
        for app in APPS if self.history.budgeted else ():
            spec = {"minAvailable": self.dice.randrange(5), "selector": {"matchLabels": {"app": app}}}
            body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
            await self.world.client.create(
                POD_DISRUPTION_BUDGETS, {**body, "metadata": {"name": app, "namespace": "default"}}
            )

    async def pod(self, priority: str, cpu: str) -> str:
        self.made += 1
        name = f"{priority}-{self.made}"
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        metadata = {"name": name, "namespace": "default", "labels": {"app": self.dice.choice(APPS)}}
        spec = {"containers": [container], "priorityClassName": priority}
        await self.world.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return name

    async def fill(self) -> None:
        for _ in range(NODES_AT_FIRST * 4):
            await self.pod(self.dice.choice(["low", "low", "middle"]), "1")
        await settle(within=60.0)

    async def step(self) -> None:
        steps = [self.preempt, self.preempt, self.wait, self.wait]
        await self.dice.choice(
            [*steps, self.delete_preemptor, self.lose_node, self.make_room] if self.disturbs else steps
        )()

    async def preempt(self) -> None:
        if len(self.preemptors) < 6:
            self.preemptors.append(
                await self.pod(self.dice.choice(["middle", "high", "higher"]), self.dice.choice(["1", "2", "3500m"]))
            )

    async def wait(self) -> None:
        await settle(within=self.dice.choice([0.0, 0.5, 3.0, 30.0]))

    async def delete_preemptor(self) -> None:
        if self.preemptors:
            pod = await self.world.client.get(PODS, self.dice.choice(self.preemptors), "default")
            self.preemptors.remove(pod.name)
            self.history.deleted_by_us.add(pod.uid)
            self.history.room_came |= bool(pod.spec.node_name)
            await self.gone(pod)

    async def lose_node(self) -> None:
        name = f"n{self.dice.randrange(NODES_AT_FIRST)}"
        if name in self.history.changed:
            return
        self.history.changed.add(name)
        if self.dice.random() < 0.5:
            await self.world.client.patch(NODES, name, "", {"spec": {"unschedulable": True}})
        else:
            await self.world.client.delete(NODES, name)

    async def make_room(self) -> None:
        self.made += 1
        self.history.room_came = True
        await self.world.node(f"new-{self.made}", cpu="2")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_victim_dies_in_vain(seed, monkeypatch):
    @in_world
    async def run(world: World):
        chaos = Chaos(world, seed)
        await chaos.build()
        note_evictions(monkeypatch, chaos.history)
        scheduler = world.scheduler(transport=chaos.transport)
        budgets = Manager(world.client, clock=world.clock, rng=random.Random(seed))
        budgets.add(DisruptionController())
        tasks = [world.group.create_task(each) for each in (chaos.follow(), budgets.run())]
        async with world.running(scheduler):
            await chaos.fill()
            chaos.transport.fault = chaos.fault
            for _ in range(12):
                await chaos.step()
                scheduler.queue.validate()
            chaos.transport.fault = lambda request: None
            await settle(within=900.0)
            check(chaos.history)
            scheduler.queue.validate()
        for task in tasks:
            task.cancel()

    run()


def note_evictions(monkeypatch: pytest.MonkeyPatch, history: History) -> None:
    evict = Evictor._evict_one

    async def noted(self: Evictor, eviction: Eviction, victim: Pod) -> bool:
        since = len(history.bindings)
        done = await evict(self, eviction, victim)
        if done:
            history.deaths.setdefault(victim.uid, Death(victim.name, eviction, since))
        else:
            history.failed.add((eviction.preemptor.uid, eviction.node_name))
        return done

    monkeypatch.setattr(Evictor, "_evict_one", noted)


def check(history: History) -> None:
    for death in history.deaths.values():
        if history.is_owed(death) and not history.is_taken(death):
            eviction = death.eviction
            pytest.fail(
                f"{death.victim} died for {eviction.preemptor.name}, and nobody took its room on {eviction.node_name}"
            )
