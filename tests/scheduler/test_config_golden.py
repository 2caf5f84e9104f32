"""Every recorded KubeSchedulerConfiguration resolves as kube-scheduler resolved it, or is refused as it was."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from skysail.api.errors import ConfigError
from skysail.scheduler.config.decode import from_document
from skysail.scheduler.config.defaults import EXTENSION_POINTS
from skysail.scheduler.config.resolve import ResolvedConfiguration, load_configuration, resolve
from skysail.scheduler.config.types import WIRE_POINTS
from skysail.scheduler.framework.feature_gates import DEFAULT_GATES
from skysail.scheduler.framework.sampling import num_feasible_nodes

FUNCTIONS = Path(__file__).parents[1] / "golden/scheduler/functions"
VECTORS = json.loads((FUNCTIONS / "config_resolution.json").read_text())
ACCEPTED = [vector for vector in VECTORS if "error" not in vector["output"]]
REFUSED = [vector for vector in VECTORS if "error" in vector["output"]]


def resolve_vector(document) -> ResolvedConfiguration:
    if document is None:
        return load_configuration(None, DEFAULT_GATES, EXTENSION_POINTS)
    return resolve(from_document(document), DEFAULT_GATES, EXTENSION_POINTS)


def as_recorded(config: ResolvedConfiguration) -> dict:
    profiles = []
    for source, profile in zip(config.source.profiles, config.profiles, strict=True):
        plugins = {WIRE_POINTS[point]: list(names) for point, names in profile.plugins.items()}
        if "score" in plugins:
            plugins["score"] = [{"name": name, "weight": profile.weights[name]} for name in plugins["score"]]
        profiles.append(
            {
                "args": {name: args for name, value in profile.args.items() if (args := shown(value)) is not None},
                "percentageOfNodesToScore": source.percentage_of_nodes_to_score,
                "plugins": plugins,
                "schedulerName": profile.scheduler_name,
            }
        )
    return {
        "parallelism": config.source.parallelism,
        "percentageOfNodesToScore": config.source.percentage_of_nodes_to_score or 0,
        "podInitialBackoffSeconds": config.source.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": config.source.pod_max_backoff_seconds,
        "profiles": profiles,
    }


def shown(value):
    """Only what differs from a zero value, as both sides leave out different zeros."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    return without_zeros(value)


def without_zeros(value):
    if isinstance(value, dict):
        return {
            key: without_zeros(item)
            for key, item in value.items()
            if item not in (None, "", 0, False, [], (), {}) and key not in ("apiVersion", "kind")
        }
    return [without_zeros(item) for item in value] if isinstance(value, (list, tuple)) else value


def reasons(text: str) -> list[str]:
    """The faults of a message, without values (Go prints them in its own way) and without what wraps them."""
    text = re.sub(r'(Invalid|Duplicate|Unsupported) value: ("[^"]*"|\[.*?\]|\{\}|-?\d+)', r"\1 value", text)
    return sorted(part.strip() for part in text.strip("[]").split(", profiles["))


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda v: str(v["input"])[:80])
def test_a_recorded_configuration_resolves_as_recorded(vector):
    assert as_recorded(resolve_vector(vector["input"])) == {
        **vector["output"],
        "profiles": [
            {**profile, "args": {name: without_zeros(args) for name, args in profile["args"].items()}}
            for profile in vector["output"]["profiles"]
        ],
    }


@pytest.mark.parametrize("vector", REFUSED, ids=lambda v: str(v["output"])[-80:])
def test_a_refused_configuration_is_refused_for_the_recorded_reason(vector):
    with pytest.raises(ConfigError) as caught:
        resolve_vector(vector["input"])
    error, recorded = caught.value, vector["output"]["error"]
    if "unknown field" in recorded:
        assert f'unknown field "{error.path}"' in recorded
    elif recorded.startswith("no kind"):
        assert error.path in ("kind", "apiVersion")
    elif recorded.startswith("initializing profiles"):
        wrapped = r".*scheduler name default-scheduler: (initializing plugin [^:]*: )?"
        assert re.sub(wrapped, "", recorded) in str(error).replace("profiles[0].pluginConfig[0].args.", "")
        assert "profiles[0]." in str(error)
    else:
        assert reasons(str(error)) == reasons(recorded)


def test_the_number_of_nodes_to_find_is_as_recorded():
    for vector in json.loads((FUNCTIONS / "num_feasible_nodes.json").read_text()):
        given = vector["input"]
        percentage = given["Global"] if given["Profile"] is None else given["Profile"]
        assert num_feasible_nodes(percentage, given["Nodes"]) == vector["output"]["nodes_to_find"], given
