"""Scenarios are written to a file and played through the command, as users do it."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from skysail.cli.main import app


@pytest.fixture
def replay(tmp_path):
    """Write a scenario, play it with `skysail batch replay`, give its cycles and its end."""

    def run(seed=1, **scenario):
        file = tmp_path / "scenario.yaml"
        file.write_text(yaml.safe_dump(scenario, sort_keys=False))
        found = CliRunner().invoke(app, ["batch", "replay", str(file), "--seed", str(seed), "--output", "json"])
        if found.exception is not None:
            raise found.exception
        lines = [json.loads(line) for line in found.stdout.splitlines()]
        return lines[:-1], lines[-1]["final"]

    return run
