"""Volumes, claims and classes."""

from collections.abc import Mapping

import msgspec

from skysail.api.affinity import NodeSelector
from skysail.api.cluster import ObjectReference
from skysail.api.core import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from skysail.api.meta import ApiObject, LabelSelector, Struct


class VolumeResourceRequirements(Struct, frozen=True, gc=False):
    """What a claim asks for."""

    limits: Mapping[str, str] = {}
    requests: Mapping[str, str] = {}


class TypedLocalObjectReference(Struct, frozen=True, gc=False):
    """A typed reference within the namespace."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class PersistentVolumeClaimSpec(Struct, frozen=True, gc=False):
    """What a claim asks for."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None
    data_source: TypedLocalObjectReference | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True, gc=False):
    """What the claim got."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Mapping[str, str] = {}


class PersistentVolumeClaim(ApiObject, frozen=True, gc=False):
    """A request for storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Struct, frozen=True, gc=False):
    """Where a volume can be used."""

    required: NodeSelector | None = None


class CSIPersistentVolumeSource(Struct, frozen=True, gc=False):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: Mapping[str, str] = {}


class LocalVolumeSource(Struct, frozen=True, gc=False):
    """A directory or disk of one node."""

    fs_type: str | None = None
    path: str = ""


class HostPathVolumeSource(Struct, frozen=True, gc=False):
    """A path of the host."""

    path: str = ""
    type: str | None = None


class PersistentVolumeSpec(Struct, frozen=True, gc=False):
    """A piece of storage."""

    access_modes: tuple[str, ...] = ()
    capacity: Mapping[str, str] = {}
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Struct, frozen=True, gc=False):
    """What has become of it."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class PersistentVolume(ApiObject, frozen=True, gc=False):
    """A piece of storage."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(Struct, frozen=True, gc=False):
    """Allowed values of one topology key."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True, gc=False):
    """Topology requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiObject, frozen=True, gc=False):
    """A way to make volumes."""

    allow_volume_expansion: bool | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    mount_options: tuple[str, ...] = ()
    parameters: Mapping[str, str] = {}
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


class VolumeNodeResources(Struct, frozen=True, gc=False):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class CSINodeDriver(Struct, frozen=True, gc=False):
    """A CSI driver on a node."""

    allocatable: VolumeNodeResources | None = None
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()


class CSINodeSpec(Struct, frozen=True, gc=False):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True, gc=False):
    """The CSI drivers of a node."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True, gc=False):
    """What a CSI driver can do."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None
    pod_info_on_mount: bool | None = None
    node_allocatable_update_period_seconds: int | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiObject, frozen=True, gc=False):
    """A CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True, gc=False):
    """How much storage a class has left in a topology."""

    capacity: str = ""
    maximum_volume_size: str = ""
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""


class VolumeAttachmentSource(Struct, frozen=True, gc=False):
    """The volume of an attachment."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True, gc=False):
    """Which volume at which node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject, frozen=True, gc=False):
    """A volume attached to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
