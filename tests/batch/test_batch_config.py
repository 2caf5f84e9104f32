"""Configuration files: ours, Volcano's, and what is refused."""

import pytest

from skysail.api.errors import ConfigError
from skysail.batch.config import default_configuration, load_configuration
from skysail.batch.config_file import ConfigurationFile
from skysail.batch.registry import DEFAULT_ACTIONS, DEFAULT_PLUGINS
from tests.batch.lab import Lab


def names(things):
    return [thing.name for thing in things]


def test_without_a_file_the_defaults_run():
    for made in (default_configuration(), load_configuration("")):
        assert names(made.actions) == list(DEFAULT_ACTIONS)
        assert names(made.plugins) == list(DEFAULT_PLUGINS)


def test_actions_and_plugins_run_in_the_order_of_the_file():
    made = load_configuration("actions: [bind, allocateJob]\nplugins: [gang, {name: binpack, arguments: {weight: 3}}]")
    assert names(made.actions) == ["bind", "allocateJob"]
    assert names(made.plugins) == ["gang", "binpack"]
    assert made.plugins[1]._arguments.weight == 3


def test_expressions_are_read_for_their_points():
    made = load_configuration("plugins: [gang, priority]\nexpressions: {jobOrder: 'firstNotPass(priority, gang)'}")
    assert str(made.expressions["jobOrder"]) == "firstNotPass(priority, gang)"


VOLCANO = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
    enabledPreemptable: false
  - name: gang
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
    arguments: {binpack.weight: 7, binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 2}
"""


def test_volcanos_form_is_read():
    made = load_configuration(VOLCANO)
    assert names(made.actions) == ["allocateJob", "allocateZone", "allocateQuota", "bind", "reclaim", "backfill"]
    assert names(made.plugins) == ["priority", "gang", "drf", "predicates", "entitlement", "nodeorder", "binpack"]
    assert "priority" not in made.expressions["preemptable"].names
    assert made.plugins[-1]._arguments.resources == {"nvidia.com/gpu": 2}


def test_a_world_runs_with_volcanos_form():
    lab = Lab()
    lab.configuration = load_configuration(VOLCANO)
    lab.nodes(2, gpus=8)
    lab.gang("job", 4, gpus=1)
    lab.cycle()
    assert lab.count("job") == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("actions: [alocate]", 'actions\\[0\\].name: Unsupported value: "alocate"'),
        ("actions: 5", "actions: a list is wanted, not int"),
        ("actions: []", "actions: Required value"),
        ("plugins: [gang, gang]", 'plugins\\[1\\].name: Duplicate value: "gang"'),
        ("plugins: [nope]", 'plugins\\[0\\].name: Unsupported value: "nope"'),
        ("plugins: [{name: gang, argument: 1}]", "plugins\\[0\\].argument: unknown field"),
        ("plugins: [{name: binpack, arguments: {wait: 1}}]", "plugins\\[0\\].arguments.wait: unknown field"),
        ("plugins: [{name: binpack, arguments: {weight: x}}]", "plugins\\[0\\].arguments.weight: Expected int"),
        ("plugin: [gang]", "plugin: unknown field"),
        ("expressions: {jobOrder: and(gang)}", "expressions.jobOrder: at position 1"),
        ("expressions: {nowhere: gang}", "expressions.nowhere: unknown point"),
        ("expressions: {jobOrder: 5}", "expressions.jobOrder: an expression is a string"),
        ("kind: Deployment", "kind: 'Deployment' is not supported"),
        ("claimSeconds: soon", "claimSeconds: Expected float"),
        ("plugins: []\ntiers: []", "tiers: Forbidden"),
        ("tiers: [{plugins: [{name: gang, enabledJobOrder: 1}]}]", "tiers\\[0\\].plugins\\[0\\].enabledJobOrder"),
        ("- a", "a mapping with actions and plugins is wanted"),
    ],
)
def test_faults_are_named_with_file_and_path(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_configuration(text, "sky.yaml")
    assert caught.value.file == "sky.yaml"


def test_a_changed_file_takes_effect_and_a_bad_one_is_refused(tmp_path):
    path = tmp_path / "sky.yaml"
    path.write_text("plugins: [gang]")
    configuration = ConfigurationFile(path)
    first = configuration()
    assert configuration() is first
    path.write_text("plugins: [gang, priority]")
    second = configuration()
    assert names(second.plugins) == ["gang", "priority"]
    path.write_text("plugins: [nope, nope, nope]")
    assert configuration() is second
    assert "nope" in configuration.refusal
    path.unlink()
    assert configuration() is second
    path.write_text("plugins: [priority]")
    assert names(configuration().plugins) == ["priority"]
    assert configuration.refusal == ""
