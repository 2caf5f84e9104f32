"""A resolved configuration, written out: what `--write-config-to` leaves and `/configz` shows.

Every plugin stands at its point, with its weight and its arguments; reading the document again resolves to the same.
"""

import msgspec
import yaml

from skysail.api.raw import Raw
from skysail.scheduler.config.resolve import ResolvedConfiguration, ResolvedProfile
from skysail.scheduler.config.types import API_VERSION, KIND, POINTS, WIRE_POINTS


def to_document(config: ResolvedConfiguration) -> Raw:
    """The configuration as a KubeSchedulerConfiguration that says everything."""
    document: Raw = msgspec.to_builtins(config.source)
    document |= {"apiVersion": API_VERSION, "kind": KIND}
    document["profiles"] = [_profile(profile) for profile in config.profiles]
    cleaned = _without_unset(document)
    assert isinstance(cleaned, dict)
    return cleaned


def to_yaml(config: ResolvedConfiguration) -> str:
    """The same as YAML, for people."""
    return yaml.safe_dump(to_document(config), sort_keys=False)


def _profile(profile: ResolvedProfile) -> Raw:
    everything = [{"name": "*"}]
    plugins: Raw = {"multiPoint": {"disabled": everything}}
    for point in POINTS:
        enabled = [
            {"name": name} | ({"weight": profile.weights[name]} if point == "score" else {})
            for name in profile.plugins.get(point, ())
        ]
        plugins[WIRE_POINTS[point]] = {"enabled": enabled, "disabled": everything}
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": plugins,
        "pluginConfig": [
            {"name": name, "args": msgspec.to_builtins(args)} for name, args in sorted(profile.args.items())
        ],
    }


def _without_unset(value: object) -> object:
    """Neither nulls nor empty texts and lists: they mean "unset" wherever they occur."""
    if isinstance(value, dict):
        return {key: _without_unset(item) for key, item in value.items() if item not in (None, "", (), [])}
    return [_without_unset(item) for item in value] if isinstance(value, (list, tuple)) else value
