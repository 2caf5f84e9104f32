"""Decisions recorded where the golden suites do not go: see `tests/golden/scheduler-more/README.md`."""

from pathlib import Path
from typing import Any

import pytest

from skysail.scheduler.explain import explain_scenario, load_scenarios

RECORDED = Path(__file__).parents[1] / "golden" / "scheduler-more"
Raw = dict[str, Any]


def status(raw: Raw | None) -> Raw:
    """A status; the reasons of NodeResourcesFit come in any order."""
    found = dict(raw or {})
    if found.get("plugin") == "NodeResourcesFit":
        found["reasons"] = sorted(found["reasons"])
    return found


def statuses(raw: Raw | None) -> Raw:
    return {name: status(each) for name, each in (raw or {}).items()}


def part(raw: Raw, *keys: str) -> Raw:
    return {key: raw[key] for key in keys if raw.get(key)}


def weighted(decision: Raw) -> Raw:
    nodes = len(decision["feasible"])
    return {
        name: [score * entry["weight"] for score in entry.get("normalized", entry.get("raw", [0] * nodes))]
        for name, entry in decision["scores"].items()
    }


def differences(expected: Raw, decision: Raw) -> list[str]:
    told = ["code", "plugin", "reasons", "node_names"]
    if expected["prefilter"]["code"] == "Success":
        told.append("skipped_filter_plugins")
    compared = {
        "pre_enqueue": (status(expected["pre_enqueue"]), status(decision["pre_enqueue"])),
        "prefilter": (part(expected["prefilter"], *told), part(decision["prefilter"], *told)),
        "filter": (statuses(expected.get("filter")), statuses(decision.get("filter"))),
    }
    if not expected.get("errored"):
        for key in ("feasible", "score_error", "totals", "fit_error_without_postfilter", "fit_error"):
            if key in expected:
                compared[key] = (expected[key], decision.get(key))
        compared |= scores(expected, decision) | preemption(expected, decision)
    return [f"{key}: expected {wanted}, got {got}" for key, (wanted, got) in compared.items() if wanted != got]


def scores(expected: Raw, decision: Raw) -> Raw:
    if "weighted" not in expected:
        return {}
    ours, nothing = weighted(decision), [0] * len(expected["feasible"])
    names = expected["weighted"].keys() | ours.keys()
    return {name: (expected["weighted"].get(name, nothing), ours.get(name, nothing)) for name in names}


def preemption(expected: Raw, decision: Raw) -> Raw:
    if "preemption" not in expected:
        return {}
    ours = decision["preemption"]
    found = {
        "preemption": (
            part(expected["preemption"], "code", "plugin", "reasons"),
            part(ours, "code", "plugin", "reasons"),
        )
    }
    if ours.get("eligible") and "candidates" in expected:
        found["candidates"] = (expected["candidates"], ours.get("candidates", {}))
        found["failures"] = (statuses(expected.get("candidate_failures")), statuses(ours.get("candidate_failures")))
    return found


@pytest.mark.parametrize("suite", ["volumes", "resources", "placing", "edges"])
def test_every_recorded_decision_is_ours(suite: str) -> None:
    scenarios = load_scenarios(RECORDED / f"{suite}.json.gz")
    found = {each["id"]: differences(each["expected"], explain_scenario(each)) for each in scenarios}
    assert {name: lines for name, lines in found.items() if lines} == {}
