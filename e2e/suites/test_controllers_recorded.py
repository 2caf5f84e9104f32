"""The real controllers do again what the transcripts say they did, so a replay that agrees agrees with them.

`TRANSCRIPTS` in the environment asks for others, by the beginnings of their names (`TRANSCRIPTS=deploy,sts`).
"""

import json
import os
from pathlib import Path

from e2e.harness.control_plane import ControlPlane
from e2e.harness.recording import record_all
from skysail.testing.transcripts.comparing import compare

GOLDEN = Path(__file__).parents[2] / "tests" / "golden"
DEFAULT = "rs-create-scale,deploy-recreate,sts-parallel,ds-roll-taints,gc-two-owners-foreground,taint-noexecute"
CHOSEN = tuple(os.environ.get("TRANSCRIPTS", DEFAULT).split(","))
FILES = sorted(file for file in GOLDEN.glob("controllers*/*.json") if file.stem.startswith(CHOSEN))


async def test_the_real_controllers_do_what_was_recorded(control_plane: ControlPlane) -> None:
    assert FILES, f"no transcript is named {' or '.join(CHOSEN)}"
    transcripts = [json.loads(file.read_text()) for file in FILES]
    found = {
        transcript["scenario"]: list(compare(transcript["steps"], seen))
        async for transcript, seen in record_all(control_plane, transcripts)
    }
    assert {name: differences for name, differences in found.items() if differences} == {}
