"""The table of in-tree plugins that exist. Adding one adds a row; nothing registers itself.

Which of them run by default, and where, is `skysail.scheduler.config.defaults`'s to say: it also knows the plugins that
are not built yet.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import Plugin
from skysail.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from skysail.scheduler.plugins.default_bind import DefaultBinder
from skysail.scheduler.plugins.dynamic_resources import DynamicResources
from skysail.scheduler.plugins.gang_scheduling import GangScheduling
from skysail.scheduler.plugins.image_locality import ImageLocality
from skysail.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from skysail.scheduler.plugins.node_affinity import NodeAffinity
from skysail.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from skysail.scheduler.plugins.node_name import NodeName
from skysail.scheduler.plugins.node_ports import NodePorts
from skysail.scheduler.plugins.node_resources_fit import NodeResourcesFit
from skysail.scheduler.plugins.node_unschedulable import NodeUnschedulable
from skysail.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from skysail.scheduler.plugins.pod_topology_spread import PodTopologySpread
from skysail.scheduler.plugins.priority_sort import PrioritySort
from skysail.scheduler.plugins.scheduling_gates import SchedulingGates
from skysail.scheduler.plugins.taint_toleration import TaintToleration
from skysail.scheduler.plugins.volume_binding import VolumeBinding
from skysail.scheduler.plugins.volume_restrictions import VolumeRestrictions
from skysail.scheduler.plugins.volume_zone import VolumeZone
from skysail.scheduler.preemption.default_preemption import DefaultPreemption

PluginFactory = Callable[[Any, Handle], Plugin]
"""`(args, handle) -> plugin`; the args are of the type that `skysail.scheduler.plugins.args` names, else `NoArgs`."""

REGISTRY: Mapping[str, PluginFactory] = MappingProxyType(
    {
        "DefaultBinder": DefaultBinder,
        "DefaultPreemption": DefaultPreemption,
        "DynamicResources": DynamicResources,
        "GangScheduling": GangScheduling,
        "ImageLocality": ImageLocality,
        "InterPodAffinity": InterPodAffinity,
        "NodeAffinity": NodeAffinity,
        "NodeDeclaredFeatures": NodeDeclaredFeatures,
        "NodeName": NodeName,
        "NodePorts": NodePorts,
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
        "NodeResourcesFit": NodeResourcesFit,
        "NodeUnschedulable": NodeUnschedulable,
        "NodeVolumeLimits": NodeVolumeLimits,
        "PodTopologySpread": PodTopologySpread,
        "PrioritySort": PrioritySort,
        "SchedulingGates": SchedulingGates,
        "TaintToleration": TaintToleration,
        "VolumeBinding": VolumeBinding,
        "VolumeRestrictions": VolumeRestrictions,
        "VolumeZone": VolumeZone,
    }
)
