"""Decisions as kube-scheduler 1.36.2 recorded them: every scenario of every suite, whole."""

from pathlib import Path

import pytest

from skysail.scheduler.explain import compare, explain_scenario, load_scenarios

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"


@pytest.mark.parametrize(
    "suite",
    [
        "resources_fit", "fit_strategies", "balanced_allocation", "node_affinity", "taints", "taints_comparison",
        "node_ports", "image_locality", "gates_and_node_name", "topology_spread", "inter_pod_affinity", "preemption",
        "preemption_constraints", "errors", "mixed", "profiles", "dynamic_resources",
    ],
)  # fmt: skip
def test_every_recorded_decision_is_ours(suite: str) -> None:
    differing = {}
    for scenario in load_scenarios(GOLDEN / f"{suite}.json.gz"):
        differences = compare(scenario["expected"], explain_scenario(scenario))
        if differences:
            differing[scenario["id"]] = differences
    assert differing == {}
