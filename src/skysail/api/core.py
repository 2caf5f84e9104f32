"""Pods, and all that a pod is made of."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from skysail.api.affinity import Affinity, TopologySpreadConstraint
from skysail.api.meta import ApiObject, Struct, own_raw


class ContainerResourceClaim(Struct, frozen=True, gc=False):
    """A reference from a container to an entry of `spec.resource_claims`."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Struct, frozen=True, gc=False):
    """Requests and limits; quantities in wire form."""

    claims: tuple[ContainerResourceClaim, ...] = ()
    limits: Mapping[str, str] = {}
    requests: Mapping[str, str] = {}


class ContainerPort(Struct, frozen=True, gc=False):
    """One port of a container."""

    container_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    host_port: int = 0
    name: str = ""
    protocol: str = ""


class ContainerRestartRule(Struct, frozen=True, gc=False):
    """What happens when a container ends in a certain way; only the action matters here."""

    action: str = ""


class Container(Struct, frozen=True, gc=False):
    """One container of a pod: what scheduling and the hollow kubelet read of it."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class LocalObjectReference(Struct, frozen=True, gc=False):
    """The name of an object in the same namespace."""

    name: str = ""


class Toleration(Struct, frozen=True, gc=False):
    """A taint this pod puts up with."""

    effect: str = ""
    key: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class PodSchedulingGate(Struct, frozen=True, gc=False):
    """A named reason not to schedule the pod yet."""

    name: str = ""


class PodResourceClaim(Struct, frozen=True, gc=False):
    """A device claim, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Struct, frozen=True, gc=False):
    """The pod group a pod belongs to."""

    pod_group_name: str | None = None


class PersistentVolumeClaimVolumeSource(Struct, frozen=True, gc=False):
    """A claim mounted as a volume."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Struct, frozen=True, gc=False):
    """A claim made for, and owned by, this pod; only its presence matters here."""

    volume_claim_template: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "volume_claim_template")


class GCEPersistentDiskVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree disk of Google Compute Engine."""

    fs_type: str = ""
    partition: int = 0
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree disk of AWS."""

    fs_type: str = ""
    partition: int = 0
    read_only: bool = False
    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureDiskVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree disk of Azure."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool | None = None


class AzureFileVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree file share of Azure; only its presence matters here."""

    share_name: str = ""


class CinderVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree disk of OpenStack."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree disk of Portworx."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVirtualDiskVolumeSource(Struct, frozen=True, gc=False):
    """An in-tree disk of vSphere; only its presence matters here."""

    volume_path: str = ""


class ISCSIVolumeSource(Struct, frozen=True, gc=False):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RBDVolumeSource(Struct, frozen=True, gc=False):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class CSIVolumeSource(Struct, frozen=True, gc=False):
    """An inline volume of a CSI driver."""

    driver: str = ""
    read_only: bool | None = None


class ImageVolumeSource(Struct, frozen=True, gc=False):
    """An image mounted as a volume."""

    pull_policy: str = ""
    reference: str = ""


class Volume(Struct, frozen=True, gc=False):
    """One volume; only the sources that influence placement."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None


class PodSpec(Struct, frozen=True, gc=False):
    """What the pod asks for."""

    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    node_name: str = ""
    node_selector: Mapping[str, str] = {}
    overhead: Mapping[str, str] = {}
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    service_account_name: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()


class PodCondition(Struct, frozen=True, gc=False):
    """One condition of a pod."""

    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str = ""
    type: str = ""


class PodIP(Struct, frozen=True, gc=False):
    """An address of the pod."""

    ip: str = ""


class ContainerStateWaiting(Struct, frozen=True, gc=False):
    """A container that has not started."""

    message: str = ""
    reason: str = ""


class ContainerStateRunning(Struct, frozen=True, gc=False):
    """A running container."""

    started_at: datetime | None = None


class ContainerStateTerminated(Struct, frozen=True, gc=False):
    """A container that has ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    signal: int = 0


class ContainerState(Struct, frozen=True, gc=False):
    """What a container does at the moment: one of the three."""

    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(Struct, frozen=True, gc=False):
    """What the kubelet says of one container."""

    name: str = ""
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    ready: bool = False
    restart_count: int = 0
    started: bool | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources: Mapping[str, str] = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Struct, frozen=True, gc=False):
    """The claim made for an entry of `spec.resource_claims`."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Struct, frozen=True, gc=False):
    """Which device request answers a container's extended resource."""

    container_name: str = ""
    request_name: str = ""
    resource_name: str = ""


class PodExtendedResourceClaimStatus(Struct, frozen=True, gc=False):
    """The claim made for the pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Struct, frozen=True, gc=False):
    """What is known of the pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = msgspec.field(default_factory=tuple, name="podIPs")
    start_time: datetime | None = None
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    observed_generation: int = 0
    resize: str = ""
    allocated_resources: Mapping[str, str] = {}
    resources: ResourceRequirements | None = None


class Pod(ApiObject, frozen=True, gc=False):
    """The unit of scheduling."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
