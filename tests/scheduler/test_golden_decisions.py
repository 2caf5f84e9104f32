"""Decisions as kube-scheduler 1.36.2 recorded them: every scenario of every suite whose plugins exist."""

from pathlib import Path

import pytest

from skysail.scheduler.explain import compare, explain_scenario, load_scenarios
from skysail.scheduler.registry import REGISTRY

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"

PLUGINS = frozenset(
    {
        "SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
        "NodePorts", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder",
        "PodTopologySpread", "InterPodAffinity", "DefaultPreemption", "NodeDeclaredFeatures",
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "suite",
    [
        "resources_fit", "fit_strategies", "balanced_allocation", "node_affinity", "taints", "taints_comparison",
        "node_ports", "image_locality", "gates_and_node_name", "topology_spread", "inter_pod_affinity", "preemption",
        "preemption_constraints",
    ],
)  # fmt: skip
def test_every_recorded_decision_is_ours(suite: str) -> None:
    only = PLUGINS & REGISTRY.keys()
    differing = {}
    for scenario in load_scenarios(GOLDEN / f"{suite}.json.gz"):
        differences = compare(scenario["expected"], explain_scenario(scenario, only), only)
        if differences:
            differing[scenario["id"]] = differences
    assert differing == {}
