"""Our controllers against what the real ones were recorded to do, step by step."""

import json
import os
from pathlib import Path

import pytest

from skysail.api.raw import Raw
from skysail.simulator.clock import LoopClock, run_virtual
from skysail.testing.transcripts.comparing import compare
from skysail.testing.transcripts.naming import Names
from skysail.testing.transcripts.player import REPLAYED, Player, replay

RECORDINGS = sorted((Path(__file__).parent.parent / "golden").glob("controllers*/*.json"))
SEEDS = range(5 if "SOAK_SEEDS" in os.environ else 1)
"""Of names, uids and ties: a transcript that agrees with one seed alone was recorded by chance."""


def _playable(path: Path) -> bool:
    return all(f"{name}-controller" in REPLAYED for name in json.loads(path.read_text())["controllers"])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("path", list(filter(_playable, RECORDINGS)), ids=lambda path: path.stem)
def test_every_step_of_a_transcript_ends_as_recorded(path: Path, seed: int) -> None:
    transcript = json.loads(path.read_text())
    seen, names = run_virtual(lambda clock: _play(transcript, clock, seed))
    assert list(compare(transcript["steps"], seen)) == []
    assert [name for name in transcript["names"].values() if names.of(name) == name] == [], "never made"


async def _play(transcript: Raw, clock: LoopClock, seed: int) -> tuple[list[Raw], Names]:
    player = Player(transcript, clock, seed)
    return [seen async for seen in player.play()], player.names


def test_a_transcript_plays_without_its_recorded_states() -> None:
    path = next(path for path in RECORDINGS if path.stem == "rs-create-scale")
    transcript = json.loads(path.read_text())
    recorded = transcript["steps"]
    bare = {**transcript, "steps": [{"step": step["step"], "action": step["action"]} for step in recorded], "names": {}}
    assert list(compare(recorded, run_virtual(lambda clock: replay(bare, clock)))) == []
