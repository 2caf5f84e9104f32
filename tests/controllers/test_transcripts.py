"""Our controllers against what the real ones were recorded to do, step by step."""

import json
from pathlib import Path

import pytest

from skysail.simulator.clock import run_virtual
from skysail.testing.transcripts.comparing import compare
from skysail.testing.transcripts.player import REPLAYED, replay

RECORDINGS = sorted((Path(__file__).parent.parent / "golden").glob("controllers*/*.json"))


def _playable(path: Path) -> bool:
    return all(f"{name}-controller" in REPLAYED for name in json.loads(path.read_text())["controllers"])


@pytest.mark.parametrize("path", list(filter(_playable, RECORDINGS)), ids=lambda path: path.stem)
def test_every_step_of_a_transcript_ends_as_recorded(path: Path) -> None:
    transcript = json.loads(path.read_text())
    seen = run_virtual(lambda clock: replay(transcript, clock))
    assert list(compare(transcript["steps"], seen)) == []


def test_a_transcript_plays_without_its_recorded_states() -> None:
    path = next(path for path in RECORDINGS if path.stem == "rs-create-scale")
    transcript = json.loads(path.read_text())
    recorded = transcript["steps"]
    bare = {**transcript, "steps": [{"step": step["step"], "action": step["action"]} for step in recorded], "names": {}}
    assert list(compare(recorded, run_virtual(lambda clock: replay(bare, clock)))) == []
