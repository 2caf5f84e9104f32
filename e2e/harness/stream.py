"""Streams of pods through both schedulers, with a cluster that changes under them."""

from random import Random

from e2e.harness.differential import Differential
from e2e.harness.random_cluster import NAMESPACED, node_patch, random_node
from e2e.harness.random_devices import device_pod
from e2e.harness.random_pods import random_pod
from skysail.api.kinds import NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICASETS


async def mixed_stream(both: Differential, rng: Random, pods: int) -> None:
    """Pods of every kind; between them nodes change, pods leave, budgets grow and shrink."""
    claims: list[tuple[str, str]] = []
    owners = {(each.namespace, each.name): each.uid for each in both.mirror.all(REPLICASETS)}
    for number in range(pods):
        refused = both.result.seen["refused"]
        await both.decide(random_pod(rng, number, claims, owners))
        if both.waiting is not None:  # a few more pods while it waits; changes would wake it
            if rng.random() < 0.3:
                await both.dismiss_waiting()
            continue
        if both.result.seen["refused"] > refused and rng.random() < 0.3:
            await _some_leave(both, rng)
        if rng.random() < 0.03:
            await _change_a_node(both, rng)
        if rng.random() < 0.05:
            await _change_a_budget(both, rng)
        if rng.random() < 0.02:
            await _change_a_namespace(both, rng)
        if rng.random() < 0.01:
            await _replace_a_node(both, rng)


async def device_stream(both: Differential, rng: Random, pods: int) -> None:
    """Pods with claims; between them pods leave, so that devices become free."""
    claims: list[tuple[str, str]] = []
    for number in range(pods):
        refused = both.result.seen["refused"]
        await both.decide(device_pod(rng, number, claims))
        if both.result.seen["refused"] > refused and rng.random() < 0.5:
            await _some_leave(both, rng)
            await both.settle(0.2)


async def _some_leave(both: Differential, rng: Random) -> None:
    bound = sorted((pod for pod in both.mirror.all(PODS) if pod.spec.node_name), key=lambda pod: pod.key)
    for pod in rng.sample(bound, min(len(bound), rng.randint(1, 3))):
        await both.remove(pod, for_good=rng.random() < 0.5)
    await both.settle()


async def _change_a_node(both: Differential, rng: Random) -> None:
    name = rng.choice(sorted(node.name for node in both.mirror.all(NODES)))
    await both.client.patch(NODES, name, "", node_patch(rng))
    await both.settle()


async def _replace_a_node(both: Differential, rng: Random) -> None:
    """One goes, its pods with it or not; one of the same name, and quite different, comes.

    Both without images: how many nodes hold an image kube-scheduler notes at each node when that node changes
    (`NodeInfo.SnapshotConcrete`), so that the others would go on with an old number.
    """
    names = sorted(node.name for node in both.mirror.all(NODES) if not node.status.images)
    if not names:
        return
    node = rng.choice(names)
    if rng.random() < 0.7:
        for pod in [pod for pod in both.mirror.all(PODS) if pod.spec.node_name == node]:
            await both.remove(pod)
    await both.client.delete(NODES, node)
    await both.settle()
    made = random_node(rng, int(node.removeprefix("n")))
    del made["status"]["images"]
    await both.prepare([(NODES, "", made)])
    await both.settle()


async def _change_a_namespace(both: Differential, rng: Random) -> None:
    labels = {"env": rng.choice(("prod", "test", None))}
    await both.client.patch(NAMESPACES, rng.choice(("red", "blue")), "", {"metadata": {"labels": labels}})
    await both.settle()


async def _change_a_budget(both: Differential, rng: Random) -> None:
    namespace = rng.choice(tuple(NAMESPACED))
    names = sorted(each.name for each in both.mirror.all(POD_DISRUPTION_BUDGETS) if each.namespace == namespace)
    await both.allow_disruptions(namespace, rng.choice(names), rng.choice((0, 0, 1, 3)))
    await both.settle()
