"""Feature gates that change scheduling, under upstream's names, with the defaults of 1.36.

A gate not listed here changes nothing in Skysail. Gates locked to their default are listed too: plugins ask.

Source: pkg/features/kube_features.go, v1.36.
"""

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_GATES: Mapping[str, bool] = MappingProxyType(
    {
        "ClearingNominatedNodeNameAfterBinding": True,
        "DRAAdminAccess": True,
        "DRAConsumableCapacity": True,
        "DRADeviceBindingConditions": True,
        "DRADeviceTaintRules": False,
        "DRADeviceTaints": True,
        "DRAExtendedResource": True,
        "DRAListTypeAttributes": False,
        "DRANodeAllocatableResources": False,
        "DRAPartitionableDevices": True,
        "DRAPrioritizedList": True,
        "DRAResourceClaimDeviceStatus": True,
        "DRASchedulerFilterTimeout": True,
        "DRAWorkloadResourceClaims": False,
        "DynamicResourceAllocation": True,
        "GangScheduling": False,
        "GenericWorkload": False,
        "InPlacePodLevelResourcesVerticalScaling": True,
        "InPlacePodVerticalScaling": True,
        "MatchLabelKeysInPodTopologySpread": True,
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": True,
        "MutableCSINodeAllocatableCount": True,
        "NodeDeclaredFeatures": True,
        "NodeInclusionPolicyInPodTopologySpread": True,
        "NominatedNodeNameForExpectation": True,
        "OpportunisticBatching": True,
        "PodLevelResources": True,
        "SchedulerAsyncAPICalls": False,
        "SchedulerAsyncPreemption": True,
        "SchedulerPopFromBackoffQ": True,
        "SchedulerQueueingHints": True,
        "SidecarContainers": True,
        "StorageCapacityScoring": False,
        "TaintTolerationComparisonOperators": False,
        "TopologyAwareWorkloadScheduling": False,
        "VolumeAttributesClass": True,
        "VolumeLimitScaling": False,
        "WorkloadAwarePreemption": False,
    }
)


def feature_gates(overrides: Mapping[str, bool]) -> Mapping[str, bool]:
    """The gates with some of them set; names Skysail does not know are kept, and change nothing."""
    return MappingProxyType({**DEFAULT_GATES, **overrides})
