"""`skysail controller-manager`: which controllers it takes, and its replays of recorded transcripts."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from skysail.api.errors import ConfigError
from skysail.cli.main import app

SMALL = Path(__file__).parents[1] / "golden" / "controllers" / "rs-create-scale.json"


def run(*args: str):
    return CliRunner().invoke(app, ["controller-manager", *args])


def recording() -> dict[str, Any]:
    return json.loads(SMALL.read_text())


def written(tmp_path: Path, content: dict[str, Any]) -> str:
    file = tmp_path / "given.json"
    file.write_text(json.dumps(content))
    return str(file)


def test_a_replay_prints_one_line_a_step_in_the_form_of_the_transcript():
    result = run("replay", str(SMALL), "--output", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    recorded = recording()["steps"]
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["step"] for line in lines] == list(range(len(recorded)))
    for line, step in zip(lines, recorded, strict=True):
        assert line["state"]["objects"].keys() == step["state"]["objects"].keys()


def test_a_replay_needs_no_recorded_states(tmp_path):
    content = recording()
    for step in content["steps"]:
        del step["state"]
    assert run("replay", written(tmp_path, content)).stdout == run("replay", str(SMALL)).stdout


def test_a_replay_agrees_with_its_recording():
    result = run("replay", str(SMALL), "--check")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 differences" in result.stderr


def test_a_replay_that_differs_says_where_and_fails(tmp_path):
    content = recording()
    objects = content["steps"][-1]["state"]["objects"]
    for key in objects:
        objects[key] = []
    result = run("replay", written(tmp_path, content), "--check")
    assert result.exit_code == 1
    assert result.stdout


@pytest.mark.parametrize("content", ["", "[]", '{"scenario": "x", "steps": []}', "{"])
def test_what_is_no_transcript_is_named(tmp_path, content):
    file = tmp_path / "odd.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"odd\.json"):
        raise run("replay", str(file)).exception


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--controllers", "deployments"], "there is no controller 'deployments'"),
        (["--controllers", "*", "--kubeconfig", "/nowhere/config"], "/nowhere/config"),
        (["replay", "/nowhere/x.json"], "/nowhere/x.json"),
        (["replay", str(SMALL), "--output", "yaml"], "unknown output 'yaml'"),
    ],
)
def test_what_a_user_got_wrong_is_named(args, named):
    with pytest.raises(ConfigError, match=named):
        raise run(*args).exception
