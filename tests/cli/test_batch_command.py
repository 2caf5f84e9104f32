"""skysail batch, its configuration file, its documents and manifests."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from skysail.api.errors import ConfigError
from skysail.batch.foreign.registry import GROUP_KINDS, QUEUE_KINDS
from skysail.batch.model.outcome import OutcomeCode
from skysail.cli.batch import configuration_source
from skysail.cli.demo_batch import example_folders
from skysail.cli.main import app
from skysail.testing.batch_replay.scenario import read_scenario

ROOT = Path(__file__).parents[2]


def test_replay_prints_a_line_a_cycle(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("{nodes: 1, run: {cycles: 3}}")
    found = CliRunner().invoke(app, ["batch", "replay", str(file), "--seed", "5"])
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert [line.get("cycle") for line in lines] == [1, 2, 3, None]
    assert set(lines[-1]["final"]) == {"pods", "queues", "ledger_equals_rebuild", "digest"}


def test_an_output_nobody_knows_is_refused(tmp_path):
    found = CliRunner().invoke(app, ["batch", "replay", str(tmp_path / "s.yaml"), "-o", "xml"])
    assert isinstance(found.exception, ConfigError)


def test_a_bad_configuration_stops_the_start_and_names_the_field(tmp_path):
    file = tmp_path / "batch.yaml"
    file.write_text("actions: [allocateJobs]")
    with pytest.raises(ConfigError, match=r"actions\[0\]"):
        configuration_source(file)


def test_a_changed_configuration_is_taken_and_a_bad_one_refused(tmp_path):
    file = tmp_path / "batch.yaml"
    file.write_text("actions: [allocateJob, bind]")
    current = configuration_source(file)
    first = current()
    assert current() is first
    file.write_text("actions: [allocateJob, bind, backfill]")
    os.utime(file, (1, 1))
    second = current()
    assert [action.name for action in second.actions] == ["allocateJob", "bind", "backfill"]
    file.write_text("actions: [nonsense]")
    os.utime(file, (2, 2))
    assert current() is second
    file.unlink()
    assert current() is second


def test_the_documented_outcomes_are_those_there_are():
    text = (ROOT / "docs" / "batch.md").read_text()
    table = text[text.index("| code | what stands in the way") :].split("\n\n")[0]
    documented = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert documented == [code.value for code in OutcomeCode]
    rows = [row.split("|") for row in table.splitlines()[2:]]
    assert [row[1].strip() for row in rows if not row[2].strip()] == []


def test_the_deployment_may_read_what_the_engine_watches():
    documents = list(yaml.safe_load_all((ROOT / "deploy" / "batch" / "batch.yaml").read_text()))
    (role,) = [each for each in documents if each["kind"] == "ClusterRole"]
    allowed = {
        (group, resource)
        for rule in role["rules"]
        if "watch" in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched = {(kind.group, kind.plural) for kinds in (*QUEUE_KINDS, *GROUP_KINDS) for kind in kinds}
    assert watched - allowed == set()
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 2
    assert "--leader-elect" in deployment["spec"]["template"]["spec"]["containers"][0]["command"]


@pytest.mark.parametrize("folder", example_folders(), ids=lambda folder: folder.name)
def test_every_example_can_be_read(folder):
    assert read_scenario(folder / "scenario.yaml").objects


def test_the_demo_tells_of_all_examples():
    found = CliRunner().invoke(app, ["demo", "batch", "-o", "json"])
    ends = {line["scenario"]: line for line in map(json.loads, found.stdout.splitlines())}
    assert found.exit_code == 0
    assert ends["02-large-gang"]["pods"] == {"Running": 20, "Succeeded": 4}
    assert ends["03-spot"]["pods"] == {"Running": 8, "Succeeded": 4}
    assert ends["04-pytorch"]["pods"] == {"Succeeded": 4}
    assert ends["05-kueue"]["pods"] == {"Pending": 12, "Succeeded": 9}
    assert ends["06-volcano"]["pods"] == {"Running": 3}
    assert ends["07-kueue-cohort"]["queues"]["team-a-cq"]["held"]["cpu"] == 12000
    assert ends["07-kueue-cohort"]["pods"]["Succeeded"] == 4
    volcano = ends["08-volcano-queues"]["queues"]
    assert [volcano[name]["held"]["cpu"] for name in ("kept", "lent", "owner")] == [4000, 2000, 2000]
