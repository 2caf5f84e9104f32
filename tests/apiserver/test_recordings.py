"""Every step of every recorded scenario is answered as kube-apiserver answered it.

`tests/golden/EXCEPTIONS.md` names the few steps that are not, with the reason.
"""

import json
import re
from pathlib import Path

import pytest

from tests.apiserver.replay import replay, scenarios

EXCEPTIONS = Path(__file__).parent.parent / "golden" / "EXCEPTIONS.md"
LINE = re.compile(r"- `(?P<scenario>[^`]+)` / `(?P<step>[^`]+)`: (?P<why>.+)")


def excepted() -> dict[str, set[str]]:
    """The excepted steps, by scenario."""
    found: dict[str, set[str]] = {}
    for line in EXCEPTIONS.read_text().splitlines():
        if match := LINE.fullmatch(line):
            found.setdefault(match["scenario"], set()).add(match["step"])
    return found


@pytest.mark.parametrize("scenario", scenarios())
def test_a_recorded_scenario_goes_as_recorded(scenario: str) -> None:
    outcome = replay(scenario)
    allowed = excepted().get(scenario, set())
    assert outcome.steps > 0
    unknown = {step: found[:6] for step, found in outcome.differing.items() if step not in allowed}
    assert not unknown, json.dumps(unknown, indent=1, default=str)
    assert allowed == set(outcome.differing), "an exception that goes as recorded is none: delete its line"


def test_exceptions_are_few_and_each_has_a_reason() -> None:
    lines = [line for line in EXCEPTIONS.read_text().splitlines() if line.startswith("- ")]
    assert len(lines) <= 15
    assert all(LINE.fullmatch(line) for line in lines)
