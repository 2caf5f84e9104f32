"""The plugins that run when nothing else is said, and the points each in-tree plugin extends.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, the `var _ fwk.*Plugin` lines of
pkg/scheduler/framework/plugins, v1.36.
"""

from collections.abc import Mapping
from typing import Final

from skysail.scheduler.config.types import PluginRef

_PLAIN: Final = (
    PluginRef(name="SchedulingGates"),
    PluginRef(name="PrioritySort"),
    PluginRef(name="NodeUnschedulable"),
    PluginRef(name="NodeName"),
    PluginRef(name="TaintToleration", weight=3),
    PluginRef(name="NodeAffinity", weight=2),
    PluginRef(name="NodePorts"),
    PluginRef(name="NodeResourcesFit", weight=1),
    PluginRef(name="VolumeRestrictions"),
    PluginRef(name="NodeVolumeLimits"),
    PluginRef(name="VolumeBinding"),
    PluginRef(name="VolumeZone"),
    PluginRef(name="PodTopologySpread", weight=2),
    PluginRef(name="InterPodAffinity", weight=2),
    PluginRef(name="DefaultPreemption"),
    PluginRef(name="NodeResourcesBalancedAllocation", weight=1),
    PluginRef(name="ImageLocality", weight=1),
    PluginRef(name="DefaultBinder"),
)

EXTENSION_POINTS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(points.split())
    for name, points in {
        "DefaultBinder": "bind",
        "DefaultPreemption": "post_filter pre_enqueue",
        "DynamicResources": "pre_enqueue pre_filter filter post_filter score reserve pre_bind",
        "GangScheduling": "pre_enqueue permit",
        "ImageLocality": "score",
        "InterPodAffinity": "pre_filter filter pre_score score",
        "NodeAffinity": "pre_filter filter pre_score score",
        "NodeDeclaredFeatures": "pre_filter filter",
        "NodeName": "filter",
        "NodePorts": "pre_filter filter",
        "NodeResourcesBalancedAllocation": "pre_score score",
        "NodeResourcesFit": "pre_filter filter pre_score score",
        "NodeUnschedulable": "filter",
        "NodeVolumeLimits": "pre_filter filter",
        "PodGroupPodsCount": "placement_score",
        "PodTopologySpread": "pre_filter filter pre_score score",
        "PrioritySort": "queue_sort",
        "SchedulingGates": "pre_enqueue",
        "TaintToleration": "filter pre_score score",
        "TopologyPlacementGenerator": "placement_generate",
        "VolumeBinding": "pre_filter filter reserve pre_bind pre_score score",
        "VolumeRestrictions": "pre_filter filter",
        "VolumeZone": "pre_filter filter",
    }.items()
}
"""In-tree plugins. Tests compare the built ones with it; the rest are here so that a configuration can be resolved."""


def default_plugins(gates: Mapping[str, bool]) -> tuple[PluginRef, ...]:
    """The default plugins, as `multiPoint` would list them, under these feature gates."""
    plugins = list(_PLAIN)
    if gates.get("NodeDeclaredFeatures"):
        plugins.append(PluginRef(name="NodeDeclaredFeatures"))
    if gates.get("DynamicResourceAllocation"):
        place = next(index for index, plugin in enumerate(plugins) if plugin.name == "DefaultPreemption")
        plugins.insert(place, PluginRef(name="DynamicResources", weight=2))
    if gates.get("GangScheduling"):
        plugins.append(PluginRef(name="GangScheduling"))
    if gates.get("TopologyAwareWorkloadScheduling"):
        plugins.append(PluginRef(name="TopologyPlacementGenerator"))
        plugins.append(PluginRef(name="PodGroupPodsCount", weight=1))
    return tuple(plugins)
