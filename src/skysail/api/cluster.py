"""Kinds of the core group beside pods, nodes and volumes."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from skysail.api.meta import ApiObject, Struct, own_raw


class NamespaceSpec(Struct, frozen=True, gc=False):
    """Finalizers that hold the namespace."""

    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Struct, frozen=True, gc=False):
    """One condition of a namespace."""

    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class NamespaceStatus(Struct, frozen=True, gc=False):
    """Active or Terminating."""

    conditions: tuple[NamespaceCondition, ...] = ()
    phase: str = ""


class Namespace(ApiObject, frozen=True, gc=False):
    """A scope for names."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ServicePort(Struct, frozen=True, gc=False):
    """One port of a service."""

    app_protocol: str | None = None
    name: str = ""
    node_port: int = 0
    port: int = 0
    protocol: str = ""
    target_port: int | str | None = None


class ServiceSpec(Struct, frozen=True, gc=False):
    """Which pods, under which address."""

    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    cluster_ips: tuple[str, ...] = msgspec.field(default_factory=tuple, name="clusterIPs")
    ports: tuple[ServicePort, ...] = ()
    selector: Mapping[str, str] = {}
    type: str = ""
    external_name: str = ""
    session_affinity: str = ""


class Service(ApiObject, frozen=True, gc=False):
    """A stable address for a set of pods."""

    spec: ServiceSpec = ServiceSpec()


class ConfigMap(ApiObject, frozen=True, gc=False):
    """Configuration as data."""

    data: Mapping[str, str] = {}
    immutable: bool | None = None


class ServiceAccount(ApiObject, frozen=True, gc=False):
    """An identity for pods."""

    automount_service_account_token: bool | None = None


class ObjectReference(Struct, frozen=True, gc=False):
    """A reference to any object."""

    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class EventSource(Struct, frozen=True, gc=False):
    """Who reported a core event."""

    component: str = ""
    host: str = ""


class EventSeries(Struct, frozen=True, gc=False):
    """How often, and when last, an event came again."""

    count: int = 0
    last_observed_time: str | None = None


class Event(ApiObject, frozen=True, gc=False):
    """Something that happened, for people (core/v1 form)."""

    action: str = ""
    count: int = 0
    event_time: str | None = None
    first_timestamp: datetime | None = None
    involved_object: ObjectReference = ObjectReference()
    last_timestamp: datetime | None = None
    message: str = ""
    reason: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    source: EventSource | None = None
    type: str = ""


class ReplicationControllerSpec(Struct, frozen=True, gc=False):
    """The wanted number of pods, of the older kind."""

    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: Mapping[str, str] = {}
    template: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "template")


class ReplicationControllerCondition(Struct, frozen=True, gc=False):
    """One condition of a replication controller."""

    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ReplicationControllerStatus(Struct, frozen=True, gc=False):
    """What is there."""

    available_replicas: int = 0
    conditions: tuple[ReplicationControllerCondition, ...] = ()
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0


class ReplicationController(ApiObject, frozen=True, gc=False):
    """The older ReplicaSet."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


class ResourceQuotaSpec(Struct, frozen=True, gc=False):
    """Limits on what a namespace may use."""

    hard: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ()


class ResourceQuotaStatus(Struct, frozen=True, gc=False):
    """What it may use and what it uses."""

    hard: Mapping[str, str] = {}
    used: Mapping[str, str] = {}


class ResourceQuota(ApiObject, frozen=True, gc=False):
    """A limit on what a namespace may use."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
