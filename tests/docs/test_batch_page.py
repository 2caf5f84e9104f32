"""The scenario on the batch page runs, and shows what the page says."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from skysail.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "batch.md"
BLOCK = re.compile(r'```yaml title="(.*?)"\n(.*?)```', re.DOTALL)


def test_the_gang_waits_and_starts_when_the_node_comes(tmp_path):
    for name, text in BLOCK.findall(PAGE.read_text()):
        (tmp_path / name).write_text(text)
    result = CliRunner().invoke(app, ["batch", "replay", str(tmp_path / "scenario.yaml"), "--seed", "7"])
    *cycles, final = [json.loads(line) for line in result.stdout.splitlines()]
    waited = {each["outcomes"]["default/job-train"]["code"] for each in cycles if each["outcomes"]}
    assert waited == {"NotEnough"}  # one node holds two of four, whoever else is there
    (at,) = [each["at"] for each in cycles if each["binds"]]
    assert 20 <= at < 22
    assert final["final"]["pods"] == {"Running": 4}
