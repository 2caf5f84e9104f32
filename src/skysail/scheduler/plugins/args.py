"""The arguments of every default plugin, as `kubescheduler.config.k8s.io/v1` names them, with its defaults.

Unknown fields are refused when decoded. Ranges are checked by `skysail.scheduler.config`, which knows file and path.

Source: k8s.io/kube-scheduler/config/v1/types_pluginargs.go, pkg/scheduler/apis/config/v1/defaults.go, v1.36.
"""

import re
from typing import ClassVar

import msgspec

from skysail.api.affinity import NodeAffinity, TopologySpreadConstraint


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of one plugin.

    Attributes:
        api_version: May be left out of a configuration.
        kind: Likewise; else it is the plugin's name and `Args`.
    """

    plugin: ClassVar[str] = ""
    api_version: str = ""
    kind: str = ""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of some plugin's arguments."""


class NoArgs(PluginArgs, frozen=True):
    """For plugins without arguments."""


class ResourceSpec(Part, frozen=True):
    """A resource and its weight among those scored; 0 means the default, 1."""

    name: str = ""
    weight: int = 1


class UtilizationShapePoint(Part, frozen=True):
    """A point of a scoring function: utilisation 0..100 (percent) to score 0..10."""

    utilization: int = 0
    score: int = 0


class RequestedToCapacityRatioParam(Part, frozen=True):
    """The scoring function, points in increasing order of utilisation."""

    shape: tuple[UtilizationShapePoint, ...] = ()


DEFAULT_RESOURCES = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


def weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """Upstream's defaults for a list of resources: cpu and memory when empty, weight 1 where it is 0."""
    if not resources:
        return DEFAULT_RESOURCES
    if all(resource.weight for resource in resources):
        return resources
    return tuple(resource if resource.weight else ResourceSpec(name=resource.name) for resource in resources)


class ScoringStrategy(Part, frozen=True):
    """How NodeResourcesFit scores. Types: LeastAllocated, MostAllocated, RequestedToCapacityRatio."""

    type: str = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        """Fill in upstream's defaults: an empty list is the default list, a zero weight is 1."""
        msgspec.structs.force_setattr(self, "resources", weighted(self.resources))


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    """Resources left out of the filter (not of scoring), and the scoring strategy."""

    plugin: ClassVar[str] = "NodeResourcesFit"
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """Resources whose shares should be alike; weights must be 1."""

    plugin: ClassVar[str] = "NodeResourcesBalancedAllocation"
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def __post_init__(self) -> None:
        """Fill in upstream's defaults."""
        msgspec.structs.force_setattr(self, "resources", weighted(self.resources))


class NodeAffinityArgs(PluginArgs, frozen=True):
    """An affinity that every pod of the profile gets besides its own."""

    plugin: ClassVar[str] = "NodeAffinity"
    added_affinity: NodeAffinity | None = None


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """Constraints for pods that have none: the system's (`System`), or those listed (`List`)."""

    plugin: ClassVar[str] = "PodTopologySpread"
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class InterPodAffinityArgs(PluginArgs, frozen=True):
    """The weight of existing pods' required affinity when scoring, 0..100."""

    plugin: ClassVar[str] = "InterPodAffinity"
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class VolumeBindingArgs(PluginArgs, frozen=True):
    """How long PreBind waits for volumes, in seconds; the shape needs the gate StorageCapacityScoring."""

    plugin: ClassVar[str] = "VolumeBinding"
    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] = ()


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """How many candidates are looked at: the larger of a percentage of all nodes and a number."""

    plugin: ClassVar[str] = "DefaultPreemption"
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """Deadlines as Go durations; None where the feature gate behind them is off."""

    plugin: ClassVar[str] = "DynamicResources"
    filter_timeout: str | None = "10s"
    binding_timeout: str | None = "10m0s"

    @property
    def filter_timeout_seconds(self) -> float:
        """How long a node's search may take; 0 is without end."""
        return go_seconds(self.filter_timeout or "0s")

    @property
    def binding_timeout_seconds(self) -> float:
        """How long devices may take to be prepared."""
        return go_seconds(self.binding_timeout or "10m0s")


_GO_DURATION = re.compile(r"([0-9.]+)(h|ms|m|s|us|µs|ns)")
_GO_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def go_seconds(text: str) -> float:
    """A Go duration that was checked when the configuration was read, in seconds."""
    return sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_DURATION.findall(text))


ARGS: dict[str, type[PluginArgs]] = {
    args.plugin: args
    for args in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
"""Plugins that take arguments."""
