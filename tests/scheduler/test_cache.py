"""The cluster cache: a pod's way through it, snapshots that hold still, and accounts that equal a fresh count."""

import os
import random

import numpy as np
import pytest

from skysail.api.core import Container, ContainerPort, Pod, PodSpec, ResourceRequirements
from skysail.api.labels import Selector
from skysail.api.meta import ObjectMeta
from skysail.api.node import Node, NodeStatus
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache
from skysail.scheduler.cache.snapshot import Snapshot

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))


def node(name: str, cpu: str = "4", zone: str = "") -> Node:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable=allocatable))


def pod(name: str, node_name: str = "", cpu: str = "1", app: str = "web", port: int = 0) -> Pod:
    ports = (ContainerPort(host_port=port),) if port else ()
    container = Container(resources=ResourceRequirements(requests={"cpu": cpu}), ports=ports)
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", labels={"app": app}),
        spec=PodSpec(containers=(container,), node_name=node_name),
    )


def used(cache: ClusterCache, name: str) -> int:
    info = cache.node_info(name)
    return info.requested.get("cpu", 0) if info is not None else 0


def test_an_assumed_pod_takes_room_until_it_is_forgotten() -> None:
    cache = ClusterCache()
    cache.add_node(node("n1"))
    assumed = cache.assume(pod("a"), "n1")
    assert assumed.pod.spec.node_name == "n1"
    assert used(cache, "n1") == 1000
    assert cache.is_assumed("uid-a")
    cache.forget("uid-a")
    assert used(cache, "n1") == 0
    assert cache.pod_state("uid-a") is None


def test_a_pod_is_not_assumed_twice() -> None:
    cache = ClusterCache()
    cache.assume(pod("a"), "n1")
    with pytest.raises(CacheError, match="can't be assumed"):
        cache.assume(pod("a"), "n2")


def test_a_confirmed_pod_is_not_forgotten() -> None:
    cache = ClusterCache()
    cache.assume(pod("a"), "n1")
    cache.add_pod(pod("a", "n1"))
    assert not cache.is_assumed("uid-a")
    with pytest.raises(CacheError, match="can't be forgotten"):
        cache.forget("uid-a")


def test_a_pod_confirmed_on_another_node_moves_its_account() -> None:
    cache = ClusterCache()
    cache.assume(pod("a"), "n1")
    cache.add_pod(pod("a", "n2"))
    assert (used(cache, "n1"), used(cache, "n2")) == (0, 1000)


def test_an_unfinished_binding_never_expires_and_a_finished_one_after_its_time() -> None:
    cache = ClusterCache(assume_ttl_seconds=30.0)
    cache.assume(pod("a"), "n1")
    cache.assume(pod("b"), "n1")
    cache.finish_binding("uid-b", now=100.0)
    assert cache.expire(now=129.0) == []
    assert [info.key for info in cache.expire(now=130.0)] == ["uid-b"]
    assert cache.expire(now=1e9) == []
    assert used(cache, "n1") == 1000


def test_without_a_time_limit_nothing_expires() -> None:
    cache = ClusterCache()
    cache.assume(pod("a"), "n1")
    cache.finish_binding("uid-a", now=0.0)
    assert cache.expire(now=1e9) == []


def test_an_update_replaces_what_the_pod_takes() -> None:
    cache = ClusterCache()
    cache.add_pod(pod("a", "n1"))
    cache.update_pod(pod("a", "n1", cpu="3"))
    assert used(cache, "n1") == 3000
    cache.remove_pod("uid-a")
    cache.remove_pod("uid-a")
    assert used(cache, "n1") == 0


def test_pods_of_an_unknown_node_are_accounted_but_not_shown() -> None:
    cache, snapshot = ClusterCache(), Snapshot()
    cache.add_pod(pod("a", "ghost"))
    cache.update_snapshot(snapshot)
    assert len(snapshot) == 0
    cache.add_node(node("ghost"))
    cache.update_snapshot(snapshot)
    info = snapshot.get("ghost")
    assert info is not None
    assert info.requested == {"cpu": 1000}


def test_a_removed_node_leaves_the_snapshot_and_keeps_its_pods_until_they_go() -> None:
    cache, snapshot = ClusterCache(), Snapshot()
    cache.add_node(node("n1"))
    cache.add_pod(pod("a", "n1"))
    cache.remove_node("n1")
    cache.update_snapshot(snapshot)
    assert len(snapshot) == 0
    assert used(cache, "n1") == 1000
    cache.remove_pod("uid-a")
    assert cache.node_info("n1") is None
    with pytest.raises(CacheError, match="not found"):
        cache.remove_node("n1")


def test_a_snapshot_holds_still_while_the_cache_moves() -> None:
    cache, snapshot = ClusterCache(), Snapshot()
    cache.add_node(node("n1"))
    cache.assume(pod("a"), "n1")
    cache.update_snapshot(snapshot)
    held = snapshot.get("n1")
    cache.assume(pod("b"), "n1")
    assert held is not None
    assert held.requested["cpu"] == snapshot.table.amounts.requested[1, 0] == 1000
    cache.update_snapshot(snapshot)
    assert snapshot.table.amounts.requested[1, 0] == 2000


def test_a_snapshot_takes_over_only_what_changed() -> None:
    cache, snapshot = ClusterCache(), Snapshot()
    for index in range(5):
        cache.add_node(node(f"n{index}"))
    cache.update_snapshot(snapshot)
    before = snapshot.table.log.end
    cache.assume(pod("a"), "n3")
    cache.update_snapshot(snapshot)
    assert snapshot.table.log.since(before).tolist() == [snapshot.table.rows["n3"]]


def test_two_pods_on_one_host_port_free_it_only_together() -> None:
    cache = ClusterCache()
    cache.add_pod(pod("a", "n1", port=80))
    cache.add_pod(pod("b", "n1", port=80))
    cache.remove_pod("uid-a")
    info = cache.node_info("n1")
    assert info is not None
    assert list(info.used_ports) == [("0.0.0.0", "TCP", 80)]


def test_nodes_are_visited_zone_by_zone_in_turn() -> None:
    cache, snapshot = ClusterCache(), Snapshot()
    for name, zone in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")):
        cache.add_node(node(name, zone=zone))
    cache.update_snapshot(snapshot)
    names = [snapshot.table.names[row] for row in snapshot.visiting_order()]
    assert names == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_scratch_rows_leave_no_trace() -> None:
    cache, snapshot = ClusterCache(), Snapshot()
    cache.add_node(node("n1"))
    cache.add_pod(pod("a", "n1"))
    cache.update_snapshot(snapshot)
    table = snapshot.table
    everyone = (None, Selector.parse("app=web"))
    assert table.matches(everyone).total[0] == 1
    trial = table.info(0).clone()
    trial.add_pod(cache.assume(pod("b"), "elsewhere"))
    with table.scratch([trial]) as rows:
        assert table.matches(everyone).total[rows].tolist() == [2]
        assert table.amounts.free[1, rows].tolist() == [2000]
    cache.add_node(node("n2"))
    cache.update_snapshot(snapshot)
    assert table.matches(everyone).total[:2].tolist() == [1, 0]
    assert table.amounts.requested[1, :2].tolist() == [1000, 0]


def rebuilt(cache: ClusterCache) -> ClusterCache:
    """A cache fed with the same objects in one go."""
    fresh = ClusterCache()
    for info in cache.node_infos():
        if info.exists:
            fresh.add_node(info.node)
    for state in cache.pods():
        fresh.add_pod(state.info.pod)
    return fresh


def account(cache: ClusterCache) -> dict[str, object]:
    return {
        info.name: (
            sorted(info.pods),
            {name: amount for name, amount in info.requested.items() if amount},
            info.nonzero_cpu,
            info.nonzero_memory,
            info.used_ports,
            info.allocatable,
        )
        for info in cache.node_infos()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_history_cache_and_table_equal_a_fresh_count(seed: int) -> None:
    rng = random.Random(seed)
    cache, snapshot = ClusterCache(assume_ttl_seconds=5.0), Snapshot()
    names = [f"n{index}" for index in range(5)]
    known: list[str] = []
    everyone = (None, Selector.parse("app=web"))
    for step in range(200):
        dice, name = rng.random(), rng.choice(names)
        known = [uid for uid in known if cache.pod_state(uid) is not None]
        if dice < 0.2:
            cache.add_node(node(name, cpu=rng.choice("248"), zone=rng.choice("ab")))
        elif dice < 0.25:
            info = cache.node_info(name)
            if info is not None and info.exists:
                cache.remove_node(name)
        elif dice < 0.5:
            cache.assume(pod(f"p{step}", app=rng.choice(["web", "db"]), port=rng.choice([0, 80])), name)
            known.append(f"uid-p{step}")
        elif known:
            uid = rng.choice(known)
            state = cache.pod_state(uid)
            assert state is not None
            if dice < 0.6 and state.assumed:
                cache.forget(uid)
            elif dice < 0.7 and state.assumed:
                cache.finish_binding(uid, now=float(step))
            elif dice < 0.85:
                where = rng.choice([state.node_name, name])
                cache.add_pod(pod(uid.removeprefix("uid-"), where, app=rng.choice(["web", "db"])))
            else:
                cache.remove_pod(uid)
        cache.expire(now=float(step))
        if rng.random() < 0.5:
            cache.update_snapshot(snapshot)
            snapshot.table.matches(everyone)
            table = snapshot.table
            assert table.all_names() == tuple(table.names[: table.size])
            assert table.all_names() is table.all_names()
    cache.update_snapshot(snapshot)
    fresh, fresh_snapshot = rebuilt(cache), Snapshot()
    fresh.update_snapshot(fresh_snapshot)
    assert account(cache) == account(fresh)
    assert snapshot.table.rows.keys() == fresh_snapshot.table.rows.keys()
    for name, row in snapshot.table.rows.items():
        other = fresh_snapshot.table.rows[name]
        mine, theirs = snapshot.table, fresh_snapshot.table
        for matrix in ("allocatable", "requested", "free", "nonzero"):
            left, right = getattr(mine.amounts, matrix), getattr(theirs.amounts, matrix)
            assert np.array_equal(left[:4, row], right[:4, other]), (name, matrix)
        assert mine.matches(everyone).total[row] == theirs.matches(everyone).total[other]
        zone = "topology.kubernetes.io/zone"
        assert mine.label(zone).values[mine.label(zone).codes[row]] == mine.info(row).node.metadata.labels[zone]
