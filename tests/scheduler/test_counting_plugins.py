"""Property: over random histories, the table form of spread and pod affinity answers as their plain, per-node form."""

import os
import random
from datetime import UTC, datetime

import numpy as np
import pytest

from skysail.api.affinity import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from skysail.api.core import Pod, PodSpec
from skysail.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from skysail.api.node import Node, NodeSpec, Taint
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.plugins.args import InterPodAffinityArgs, PodTopologySpreadArgs
from skysail.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from skysail.scheduler.plugins.pod_topology_spread import PodTopologySpread
from skysail.scheduler.scenario import build_world
from tests.scheduler.plain_plugins import PlainAffinity, PlainSpread, new_state, outcome

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
APPS = ("web", "db", "cache")
KEYS = ("zone", "kubernetes.io/hostname", "rack")


def selector(rng: random.Random) -> LabelSelector | None:
    dice = rng.random()
    if dice < 0.1:
        return None if rng.random() < 0.5 else LabelSelector()
    if dice < 0.6:
        return LabelSelector(match_labels={"app": rng.choice(APPS)})
    expression = LabelSelectorRequirement(key="app", operator="NotIn", values=(rng.choice(APPS),))
    return LabelSelector(match_expressions=(expression,))


def term(rng: random.Random) -> PodAffinityTerm:
    namespaces = rng.choice([(), (), ("a", "b")])
    return PodAffinityTerm(label_selector=selector(rng), topology_key=rng.choice(KEYS), namespaces=namespaces)


def random_affinity(rng: random.Random) -> Affinity | None:
    if rng.random() < 0.4:
        return None
    required = tuple(term(rng) for _ in range(rng.choice([0, 0, 1, 2])))
    preferred = tuple(
        WeightedPodAffinityTerm(weight=rng.randrange(1, 101), pod_affinity_term=term(rng))
        for _ in range(rng.choice([0, 1, 2]))
    )
    if rng.random() < 0.5:
        near = PodAffinity(
            required_during_scheduling_ignored_during_execution=required,
            preferred_during_scheduling_ignored_during_execution=preferred,
        )
        return Affinity(pod_affinity=near)
    away = PodAntiAffinity(
        required_during_scheduling_ignored_during_execution=required,
        preferred_during_scheduling_ignored_during_execution=preferred,
    )
    return Affinity(pod_anti_affinity=away)


def random_pod(rng: random.Random, number: int) -> Pod:
    constraints = tuple(
        TopologySpreadConstraint(
            max_skew=rng.choice([1, 2]),
            topology_key=key,
            when_unsatisfiable=rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
            label_selector=selector(rng),
            min_domains=rng.choice([None, None, 3]),
            node_taints_policy=rng.choice(["", "Honor"]),
            node_affinity_policy=rng.choice(["", "Ignore"]),
        )
        for key in rng.sample(KEYS, rng.choice([0, 1, 2]))
    )
    gone = datetime(2026, 1, 1, tzinfo=UTC) if rng.random() < 0.1 else None
    return Pod(
        metadata=ObjectMeta(
            name=f"p{number}",
            namespace=rng.choice(["a", "a", "b"]),
            uid=f"u{number}",
            labels={"app": rng.choice(APPS)},
            deletion_timestamp=gone,
        ),
        spec=PodSpec(
            affinity=random_affinity(rng),
            topology_spread_constraints=constraints,
            node_selector={"zone": "x"} if rng.random() < 0.2 else {},
        ),
    )


def random_node(rng: random.Random, name: str) -> Node:
    labels = {"kubernetes.io/hostname": name}
    if rng.random() < 0.9:
        labels["zone"] = rng.choice(["x", "y", "z"])
    if rng.random() < 0.7:
        labels["rack"] = rng.choice(["r1", "r2"])
    taints = (Taint(key="k", effect="NoSchedule"),) if rng.random() < 0.2 else ()
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=taints))


@pytest.mark.parametrize("seed", SEEDS)
def test_table_form_equals_plain_form_over_random_histories(seed: int) -> None:
    rng = random.Random(seed)
    world = build_world((), {})
    spread = PodTopologySpread(PodTopologySpreadArgs(), world)
    affinity = InterPodAffinity(InterPodAffinityArgs(), world)
    cache, snapshot = ClusterCache(), Snapshot()
    names = [f"n{index}" for index in range(6)]
    placed: list[str] = []
    for name in names:
        cache.add_node(random_node(rng, name))
    for step in range(60):
        if rng.random() < 0.1:
            cache.add_node(random_node(rng, rng.choice(names)))
        if rng.random() < 0.3 and placed:
            cache.forget(placed.pop(rng.randrange(len(placed))))
        cache.update_snapshot(snapshot)
        pod = random_pod(rng, step)
        nodes = list(snapshot)
        plain_spread = PlainSpread(nodes, pod, dict(feature_gates({})))
        plain_affinity = PlainAffinity(nodes, pod)
        for plugin, plain in ((spread, plain_spread), (affinity, plain_affinity)):
            state, table = new_state(pod), snapshot.table
            status, _ = plugin.pre_filter(state, pod, table)
            expected = [plain.filter(node) for node in nodes]
            if status.is_skip:
                assert expected == [""] * len(nodes)
            else:
                codes = plugin.filter_rows(state, pod, table, table.all_rows)
                given = [outcome(codes.statuses[code - 1]) if codes.statuses and code else "" for code in codes.codes]
                assert (given or [""] * len(nodes)) == expected
            rows = np.array(sorted(rng.sample(range(len(nodes)), 4)), dtype=np.intp)
            if not plugin.pre_score(state, pod, table, rows).is_skip:
                raw = plugin.score_rows(state, pod, table, rows)
                scores = plugin.normalize(state, raw, int(raw.min()), int(raw.max()))
                assert scores.tolist() == plain.scores([nodes[int(row)] for row in rows])
        cache.assume(pod, rng.choice(names))
        placed.append(pod.uid)
