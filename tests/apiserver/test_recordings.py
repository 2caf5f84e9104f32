"""Every step of every recorded scenario is answered as kube-apiserver answered it.

`known_differences.json` names the steps that are not, by scenario; see also `tests/golden/EXCEPTIONS.md`.
"""

import json
from pathlib import Path

import pytest
from tests.apiserver.replay import replay, scenarios

KNOWN = json.loads((Path(__file__).parent / "known_differences.json").read_text())


@pytest.mark.parametrize("scenario", scenarios())
def test_a_recorded_scenario_goes_as_recorded(scenario: str) -> None:
    outcome = replay(scenario)
    assert outcome.steps > 0
    unknown = {step: found[:6] for step, found in outcome.differing.items() if step not in KNOWN.get(scenario, ())}
    assert not unknown, json.dumps(unknown, indent=1, default=str)
