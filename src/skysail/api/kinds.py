"""Kind descriptors: where objects of a kind live on the API server, and which Struct reads them.

A built-in kind is a row of the table below; a custom one is made the same way: `Kind("example.com", "v1", "Widget",
"widgets", True, Widget)`, or with `struct=dict` when its shape is known only at run time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from skysail.api.apps import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from skysail.api.batch import CronJob, Job
from skysail.api.cluster import (
    ConfigMap,
    Event,
    Namespace,
    ReplicationController,
    ResourceQuota,
    Service,
    ServiceAccount,
)
from skysail.api.coordination import Lease
from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.policy import PodDisruptionBudget
from skysail.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from skysail.api.scheduling import PodGroup, PriorityClass
from skysail.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of object.

    Attributes:
        group: API group; empty for the core group.
        version: API version, e.g. `v1`.
        name: The kind itself, e.g. `Pod`.
        plural: The resource in URLs, e.g. `pods`.
        namespaced: Whether objects live in namespaces.
        struct: What its objects are decoded to: a frozen Struct, or `dict`.
        subresources: Names below the object, e.g. `status`, `scale`.
    """

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool
    struct: type[T]
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`pods`, or `deployments.apps`: the form people write."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of one object, of a collection, or of a subresource (not percent-encoded)."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


_STATUS = ("status",)
_SCALABLE = ("status", "scale")

PODS = Kind("", "v1", "Pod", "pods", True, Pod, ("status", "binding", "eviction"))
NODES = Kind("", "v1", "Node", "nodes", False, Node, _STATUS)
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", False, Namespace, ("status", "finalize"))
SERVICES = Kind("", "v1", "Service", "services", True, Service, _STATUS)
CONFIGMAPS = Kind("", "v1", "ConfigMap", "configmaps", True, ConfigMap)
SERVICE_ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts", True, ServiceAccount, ("token",))
EVENTS = Kind("", "v1", "Event", "events", True, Event)
RESOURCE_QUOTAS = Kind("", "v1", "ResourceQuota", "resourcequotas", True, ResourceQuota, _STATUS)
REPLICATION_CONTROLLERS = Kind(
    "", "v1", "ReplicationController", "replicationcontrollers", True, ReplicationController, _SCALABLE
)
PERSISTENT_VOLUMES = Kind("", "v1", "PersistentVolume", "persistentvolumes", False, PersistentVolume, _STATUS)
PERSISTENT_VOLUME_CLAIMS = Kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, PersistentVolumeClaim, _STATUS
)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", True, Deployment, _SCALABLE)
REPLICASETS = Kind("apps", "v1", "ReplicaSet", "replicasets", True, ReplicaSet, _SCALABLE)
STATEFULSETS = Kind("apps", "v1", "StatefulSet", "statefulsets", True, StatefulSet, _SCALABLE)
DAEMONSETS = Kind("apps", "v1", "DaemonSet", "daemonsets", True, DaemonSet, _STATUS)
CONTROLLER_REVISIONS = Kind("apps", "v1", "ControllerRevision", "controllerrevisions", True, ControllerRevision)
JOBS = Kind("batch", "v1", "Job", "jobs", True, Job, _STATUS)
CRONJOBS = Kind("batch", "v1", "CronJob", "cronjobs", True, CronJob, _STATUS)
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, PriorityClass)
POD_DISRUPTION_BUDGETS = Kind(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, PodDisruptionBudget, _STATUS
)
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases", True, Lease)
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, StorageClass)
CSI_NODES = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", False, CSINode)
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False, CSIDriver)
CSI_STORAGE_CAPACITIES = Kind(
    "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", True, CSIStorageCapacity
)
VOLUME_ATTACHMENTS = Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", False, VolumeAttachment)
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", True, ResourceClaim, _STATUS)
RESOURCE_CLAIM_TEMPLATES = Kind(
    "resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", True, ResourceClaimTemplate
)
RESOURCE_SLICES = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False, ResourceSlice)
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", False, DeviceClass)
POD_GROUPS = Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups", True, PodGroup, _STATUS)

KINDS: tuple[Kind[Any], ...] = (
    PODS, NODES, NAMESPACES, SERVICES, CONFIGMAPS, SERVICE_ACCOUNTS, EVENTS, RESOURCE_QUOTAS, REPLICATION_CONTROLLERS,
    PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS,
    CONTROLLER_REVISIONS, JOBS, CRONJOBS, PRIORITY_CLASSES, POD_DISRUPTION_BUDGETS, LEASES, STORAGE_CLASSES, CSI_NODES,
    CSI_DRIVERS, CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES,
    DEVICE_CLASSES, POD_GROUPS,
)  # fmt: skip
"""Every kind that Skysail reads as a Struct."""

_BY_STRUCT: Mapping[type, Kind[Any]] = {kind.struct: kind for kind in KINDS}


def kind_of(struct: type[T]) -> Kind[T]:
    """The built-in kind a Struct reads.

    Raises:
        KeyError: No built-in kind has that Struct; make a `Kind` for it.
    """
    return _BY_STRUCT[struct]
