"""Recorded decisions in which volumes have a say, the volumes found included."""

from pathlib import Path

import pytest

from skysail.scheduler.explain import compare, explain_scenario, load_scenarios
from skysail.scheduler.registry import REGISTRY

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"


@pytest.mark.parametrize("suite", ["volumes", "mixed", "profiles", "errors"])
def test_every_recorded_decision_about_volumes_is_ours(suite):
    built = frozenset(REGISTRY)
    scenarios = [each for each in load_scenarios(GOLDEN / f"{suite}.json.gz") if _has_claims(each)]
    assert len(scenarios) >= 20
    differing = {}
    for scenario in scenarios:
        differences = compare(scenario["expected"], explain_scenario(scenario, built), built)
        if differences:
            differing[scenario["id"]] = differences
    assert differing == {}


def _has_claims(scenario) -> bool:
    return any(each["kind"] in ("PersistentVolumeClaim", "PersistentVolume") for each in scenario["objects"])
