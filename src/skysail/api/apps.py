"""Workloads of the apps group. Templates are raw bytes: no field of a pod may be lost on its way through."""

from datetime import datetime

import msgspec

from skysail.api.meta import ApiObject, LabelSelector, Struct, own_raw
from skysail.api.raw import Raw


class ReplicaSetSpec(Struct, frozen=True, gc=False):
    """How many pods of which template."""

    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "template")


class ReplicaSetCondition(Struct, frozen=True, gc=False):
    """One condition of a replica set."""

    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ReplicaSetStatus(Struct, frozen=True, gc=False):
    """What is there."""

    available_replicas: int = 0
    conditions: tuple[ReplicaSetCondition, ...] = ()
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    terminating_replicas: int | None = None


class ReplicaSet(ApiObject, frozen=True, gc=False):
    """Keeps a number of equal pods."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdateDeployment(Struct, frozen=True, gc=False):
    """How far a roll-out may go beyond and below the wanted number."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(Struct, frozen=True, gc=False):
    """RollingUpdate or Recreate."""

    rolling_update: RollingUpdateDeployment | None = None
    type: str = ""


class DeploymentSpec(Struct, frozen=True, gc=False):
    """The wanted state of a deployment."""

    min_ready_seconds: int = 0
    paused: bool = False
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    strategy: DeploymentStrategy = DeploymentStrategy()
    template: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "template")


class DeploymentCondition(Struct, frozen=True, gc=False):
    """One condition of a deployment."""

    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DeploymentStatus(Struct, frozen=True, gc=False):
    """What is there."""

    available_replicas: int = 0
    collision_count: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    terminating_replicas: int | None = None
    unavailable_replicas: int = 0
    updated_replicas: int = 0


class Deployment(ApiObject, frozen=True, gc=False):
    """Rolls replica sets over from template to template."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class RollingUpdateStatefulSetStrategy(Struct, frozen=True, gc=False):
    """Partitioned updates."""

    max_unavailable: int | str | None = None
    partition: int | None = None


class StatefulSetUpdateStrategy(Struct, frozen=True, gc=False):
    """RollingUpdate or OnDelete."""

    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str = ""


class StatefulSetOrdinals(Struct, frozen=True, gc=False):
    """The first ordinal."""

    start: int = 0


class StatefulSetPersistentVolumeClaimRetentionPolicy(Struct, frozen=True, gc=False):
    """What becomes of claims."""

    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetSpec(Struct, frozen=True, gc=False):
    """The wanted state of a stateful set."""

    min_ready_seconds: int = 0
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str = ""
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""
    template: msgspec.Raw = msgspec.Raw()
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    volume_claim_templates: tuple[Raw, ...] = ()

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "template")


class StatefulSetCondition(Struct, frozen=True, gc=False):
    """One condition of a stateful set."""

    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class StatefulSetStatus(Struct, frozen=True, gc=False):
    """What is there."""

    available_replicas: int = 0
    collision_count: int | None = None
    conditions: tuple[StatefulSetCondition, ...] = ()
    current_replicas: int = 0
    current_revision: str = ""
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    update_revision: str = ""
    updated_replicas: int = 0


class StatefulSet(ApiObject, frozen=True, gc=False):
    """Pods with names and volumes of their own."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class RollingUpdateDaemonSet(Struct, frozen=True, gc=False):
    """How a daemon set rolls."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DaemonSetUpdateStrategy(Struct, frozen=True, gc=False):
    """RollingUpdate or OnDelete."""

    rolling_update: RollingUpdateDaemonSet | None = None
    type: str = ""


class DaemonSetSpec(Struct, frozen=True, gc=False):
    """The wanted state of a daemon set."""

    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    template: msgspec.Raw = msgspec.Raw()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "template")


class DaemonSetCondition(Struct, frozen=True, gc=False):
    """One condition of a daemon set."""

    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DaemonSetStatus(Struct, frozen=True, gc=False):
    """What is there."""

    collision_count: int | None = None
    conditions: tuple[DaemonSetCondition, ...] = ()
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_unavailable: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(ApiObject, frozen=True, gc=False):
    """One pod on every fitting node."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(ApiObject, frozen=True, gc=False):
    """A remembered state of a controller's template."""

    data: msgspec.Raw = msgspec.Raw()
    revision: int = 0

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "data")
