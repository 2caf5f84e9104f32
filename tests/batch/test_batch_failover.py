"""Crashes and take-overs: whoever the job is, whenever it happens, nothing is bound twice and no promise leaks."""

import random

import pytest

from skysail.api.core import Pod
from skysail.api.errors import InternalError, Unreachable
from skysail.api.kinds import PODS, Kind
from skysail.batch.app import BatchOptions, BatchScheduler
from skysail.batch.claim_writing import CLAIM, read_pod_claim
from skysail.batch.config import default_configuration
from skysail.batch.kinds import POD_GROUPS, QUOTAS
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.lease import LeaderElection
from skysail.simulator.hollow import HollowNode
from skysail.testing.builders import make_pod
from tests.batch.test_batch_app import GPU, Batch, gang, gpu_container, running, set_up

TURNS = [1, 3, 6, 10, 15, 21, 28, 40, 60, 100]
KOORDINATOR = "gang.scheduling.koordinator.sh"


@pytest.fixture
def batch(cluster):
    return Batch(cluster)


async def owner_of_kind(cluster, kind):
    """Eight pods of queue a that need what queue b borrows, as each kind of job may come; their common name."""
    if kind == "group":
        await gang(cluster, "owner", 8, queue="a")
    elif kind == "lone":
        pod = make_pod(
            "owner-0", scheduler="sky-scheduler", labels={"scheduling.skysail.io/queue": "a"},
            containers=gpu_container(8),
        )  # fmt: skip
        await cluster.create(pod)
    else:
        said = {f"{KOORDINATOR}/name": "owner", f"{KOORDINATOR}/min-available": "8"}
        pods = [
            make_pod(
                f"owner-{number}", scheduler="sky-scheduler", annotations=said, containers=gpu_container(1),
                labels={"scheduling.skysail.io/queue": "a"},
            )
            for number in range(8)
        ]  # fmt: skip
        await cluster.create(*pods)
    return 1 if kind == "lone" else 8


async def written_claims(cluster):
    """Every promise that stands written anywhere."""
    found = [pod.name for pod in await cluster.list(Pod) if any(each.type == CLAIM for each in pod.status.conditions)]
    groups = (await cluster.client.list(POD_GROUPS)).items
    return found + [group.name for group in groups if group.status.claim is not None]


async def check_end(cluster, world, owners):
    assert len(await running(cluster, "owner")) == owners
    assert len(await running(cluster, "borrower")) == 8
    assert world.claims == {}
    assert await written_claims(cluster) == []
    used = {}
    for pod in await cluster.list(Pod):
        amount = int(pod.spec.containers[0].resources.requests[GPU])
        used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + amount
    assert all(amount <= 8 for node, amount in used.items() if node)


@pytest.mark.parametrize("kind", ["lone", "implied"])
@pytest.mark.parametrize("turns", TURNS)
async def test_a_crash_at_any_moment_leaks_no_promise_of_a_job_without_a_group_of_ours(cluster, batch, turns, kind):
    await set_up(batch, queues=[(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")])
    await gang(cluster, "borrower", 16, 8, queue="b")
    await batch.settle()
    owners = await owner_of_kind(cluster, kind)
    await cluster.advance(0.025)
    await cluster.crash_after(batch.name, turns)
    await batch.start()
    await batch.settle()
    await check_end(cluster, batch.engine.world, owners)


@pytest.mark.parametrize("kind", ["lone", "implied", "group"])
async def test_a_promise_stands_written_before_anybody_is_evicted_for_it(cluster, batch, kind):
    await set_up(batch, queues=[(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")])
    await gang(cluster, "borrower", 16, 8, queue="b")
    await batch.settle()
    seen = []
    evict = batch.engine.carrying._client.evict

    async def noted(namespace, name, **more):
        seen.append(await written_claims(cluster))
        await evict(namespace, name, **more)

    batch.engine.carrying._client.evict = noted
    owners = await owner_of_kind(cluster, kind)
    await batch.settle()
    assert len(seen) == 8
    assert all(claims for claims in seen)
    await check_end(cluster, batch.engine.world, owners)


@pytest.mark.parametrize("kind", ["lone", "group"])
async def test_a_promise_whose_beneficiary_is_gone_is_erased(cluster, batch, kind):
    await set_up(batch, queues=[(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")])
    await gang(cluster, "borrower", 16, 8, queue="b")
    await batch.settle()

    async def not_yet(namespace, name, **more):
        """The victims take their time."""

    batch.engine.carrying._client.evict = not_yet
    await owner_of_kind(cluster, kind)
    await cluster.advance(5.0)
    assert await written_claims(cluster)
    await cluster.client.delete(Kind("", "v1", "Pod", "pods", True, dict), "owner-0", "default")
    await batch.settle()
    assert await written_claims(cluster) == []
    assert batch.engine.world.claims == {}


def test_what_is_no_promise_is_not_read_as_one():
    assert read_pod_claim(make_pod("one")) is None


class Replicas:
    """Two engines, one lease."""

    def __init__(self, cluster):
        self.cluster, self.engines, self.leaders, self.binds = cluster, {}, [], []

    async def start(self, name):
        async def main(client):
            bind = client.bind

            async def noted(namespace, pod, uid, node):
                self.binds.append((name, uid, node))
                await bind(namespace, pod, uid, node)

            client.bind = noted
            elector = LeaderElector(
                client, LeaderElection("skysail-batch", namespace="default"), name, clock=self.cluster.clock,
                rng=random.Random(len(self.engines)), on_new_leader=self.leaders.append,
            )  # fmt: skip
            engine = self.engines[name] = BatchScheduler(
                client, default_configuration(), clock=self.cluster.clock, rng=random.Random(1), elector=elector,
                options=BatchOptions(check=True, slice_seconds=0.0),
            )  # fmt: skip
            await engine.run()

        await self.cluster.run(name, main)


@pytest.mark.parametrize("turns", [1, 10, 28, 60])
async def test_when_the_leader_is_killed_the_other_replica_goes_on_and_binds_nothing_twice(cluster, batch, turns):
    await set_up(batch, run=False, queues=[(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")])
    replicas = Replicas(cluster)
    await replicas.start("one")
    await replicas.start("two")
    await gang(cluster, "borrower", 16, 8, queue="b")
    await cluster.advance(60.0)
    assert len(await running(cluster, "borrower")) == 16
    leader = replicas.leaders[-1]
    other = "two" if leader == "one" else "one"
    owners = await owner_of_kind(cluster, "group")
    await cluster.advance(0.025)
    await cluster.crash_after(leader, turns)
    await cluster.advance(120.0)
    assert replicas.leaders[-1] == other
    await check_end(cluster, replicas.engines[other].world, owners)
    assert {name for name, uid, _ in replicas.binds} <= {leader, other}
    bound = {pod.uid: pod.spec.node_name for pod in await cluster.list(Pod) if pod.spec.node_name}
    assert all(bound.get(uid, node) == node for _, uid, node in replicas.binds)


async def test_a_standby_decides_nothing(cluster, batch):
    await set_up(batch, run=False)
    replicas = Replicas(cluster)
    await replicas.start("one")
    await replicas.start("two")
    await cluster.advance(20.0)
    await gang(cluster, "job", 4)
    await cluster.advance(60.0)
    assert len(await running(cluster, "job")) == 4
    standby = "two" if replicas.leaders[-1] == "one" else "one"
    assert replicas.engines[standby].engine.statistics.cycles == 0
    assert {name for name, _, _ in replicas.binds} == {replicas.leaders[-1]}


async def room_used(cluster):
    used = {}
    for pod in await cluster.list(Pod):
        amount = int(pod.spec.containers[0].resources.requests[GPU])
        used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + amount
    return used


@pytest.mark.parametrize("server_fails", [False, True])
@pytest.mark.parametrize("lost", [1, 3, 8])
async def test_room_of_a_binding_without_an_answer_is_nobody_elses(cluster, batch, lost, server_fails):
    """The server did it, but nobody heard of it: neither by an answer nor, for now, by the watch."""
    await set_up(batch, nodes=1)
    await cluster.advance(5)
    faults = cluster.components[batch.name].faults
    rule = faults.lose_answers(verb="create", resource="pods", times=lost)
    late = faults.lose_events(resource="pods", times=0)
    bind = batch.engine.carrying._client.bind

    async def failed(namespace, name, uid, node):
        late.times = -1
        try:
            await bind(namespace, name, uid, node)
        except Unreachable as error:
            if server_fails:
                raise InternalError("the connection to etcd was lost") from error
            raise

    batch.engine.carrying._client.bind = failed
    await gang(cluster, "first", 8)
    await cluster.advance(2)
    late.times = 0
    await gang(cluster, "second", 8)
    await cluster.advance(20)
    assert rule.times == 0
    assert (await room_used(cluster))["node-0"] == 8
    bound = {pod.name.partition("-")[0] for pod in await cluster.list(Pod) if pod.spec.node_name}
    assert bound == {"first"}


async def test_a_server_that_is_away_while_it_binds_sells_no_room_twice(cluster, batch):
    await set_up(batch, nodes=1)
    await cluster.advance(5)
    faults = cluster.components[batch.name].faults
    faults.lose_requests(verb="create", resource="pods", times=40)
    await gang(cluster, "first", 8)
    await cluster.advance(150)
    await batch.settle()
    assert len(await running(cluster, "first")) == 8
    assert batch.engine.world.cache.statistics().assumed_pods == 0


async def test_a_victim_whose_evictions_answer_was_lost_has_left_for_whom_it_was(cluster, batch):
    await set_up(batch, queues=[(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")])
    await gang(cluster, "borrower", 16, 8, queue="b")
    await batch.settle()
    evict, lost = batch.engine.carrying._client.evict, []

    async def unanswered(namespace, name, **more):
        await evict(namespace, name, **more)
        lost.append(name)
        raise Unreachable("the answer was lost")

    batch.engine.carrying._client.evict = unanswered
    await gang(cluster, "owner", 8, queue="a")
    await batch.settle()
    assert len(lost) == 8
    await check_end(cluster, batch.engine.world, 8)


async def quota(cluster, count, size, **spec):
    body = {"apiVersion": QUOTAS.api_version, "kind": "Quota", "metadata": {"name": "many", "namespace": "default"}}
    await cluster.client.create(
        QUOTAS, body | {"spec": {"queue": "default", "resources": size, "count": count, **spec}}
    )


async def slot_pods(cluster, numbers):
    await cluster.create(*[make_pod(f"pod-{number}", scheduler="sky-scheduler", cpu="500m") for number in numbers])


def standing(world):
    """What stands on nodes, slots and those who sit in them."""
    accounts = {info.name: (len(info.pods), info.requested.get("cpu", 0)) for info in world.cache.node_infos()}
    seated = sorted(world.tasks[uid].pod.name for slot in world.slots.values() for uid in slot.holders)
    return accounts, sorted(slot.node for slot in world.slots.values()), seated


async def test_after_a_crash_pods_are_found_in_their_slots(cluster, batch):
    """The last pods are bound just before, so no status says yet who sits where."""
    await set_up(batch, run=False)
    await cluster.add_nodes([HollowNode("small", capacity={"cpu": "10", "memory": "64Gi", "pods": "10"})])
    await cluster.create(make_pod("before", scheduler="default-scheduler", node="small", cpu="500m"))
    await batch.start()
    await quota(cluster, 9, {"cpu": "1"})
    await batch.settle()
    await slot_pods(cluster, range(8))
    await cluster.wait_until(lambda: all_bound(cluster, 9), timeout=60)
    before = standing(batch.engine.world)
    assert len(before[2]) == 8
    await cluster.crash_after(batch.name, 1)
    await batch.start()
    await batch.settle()
    assert standing(batch.engine.world) == before


@pytest.mark.parametrize("spec", [{"allocateOnce": True}, {"releasePolicy": {"type": "OnJobFinish"}}])
async def test_a_slot_for_one_use_whose_pod_ended_while_no_process_ran_is_given_back(cluster, batch, spec):
    """The process dies with its very first binding, of which it hears nothing any more."""
    await set_up(batch)
    await quota(cluster, 1, {"cpu": "1"}, **spec)
    await batch.settle()
    cluster.components[batch.name].faults.crash_at(1, after=True, verb="create", resource="pods")
    await slot_pods(cluster, [0])
    await cluster.wait_until(lambda: all_bound(cluster, 1), timeout=60)
    await cluster.client.delete(PODS, "pod-0", "default", grace_period_seconds=0)
    await batch.start()
    await batch.settle()
    (slot,) = (await cluster.client.get(QUOTAS, "many", "default")).status.slots
    assert (slot.phase, slot.used, slot.reason) == ("Releasing", True, "Used")


async def all_bound(cluster, number):
    return sum(bool(pod.spec.node_name) for pod in await cluster.list(Pod)) == number


async def test_who_takes_over_finds_slots_and_those_who_sit_in_them(cluster, batch):
    await set_up(batch, run=False)
    replicas = Replicas(cluster)
    await replicas.start("one")
    await replicas.start("two")
    await cluster.settle(quiet=30.0)
    await quota(cluster, 9, {"cpu": "1"})
    await cluster.settle(quiet=15.0)
    await slot_pods(cluster, range(8))
    await cluster.settle(quiet=15.0)
    first, second = replicas.leaders[0], {"one": "two", "two": "one"}[replicas.leaders[0]]
    before = standing(replicas.engines[first].world)
    assert len(before[2]) == 8
    await cluster.crash_after(first, 1)
    await cluster.settle(quiet=120.0)
    assert replicas.leaders[-1] == second
    assert standing(replicas.engines[second].world) == before
