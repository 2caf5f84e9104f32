"""What a deployment's plan may ask for. Each is carried out in order; the first that fails ends the pass."""

from collections.abc import Mapping
from dataclasses import dataclass

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.raw import Raw


@dataclass(frozen=True, slots=True)
class CreateReplicaSet:
    """Make the new replica set.

    Attributes:
        body: The whole object, template included.
        replicas: Its size.
    """

    body: Raw
    replicas: int

    @property
    def name(self) -> str:
        """The name it will have: the same for the same template, so that a repeated pass finds it."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class PatchReplicaSet:
    """Change a replica set (size, annotations, minReadySeconds), if it is still the version that was looked at.

    Attributes:
        replica_set: As it was read.
        patch: A merge patch that names the resource version.
        event: What to tell about it when it is done; empty for nothing.
    """

    replica_set: ReplicaSet
    patch: Raw
    event: str = ""


@dataclass(frozen=True, slots=True)
class DeleteReplicaSet:
    """Remove an empty set beyond the history limit."""

    replica_set: ReplicaSet


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Change the deployment's status and revision annotation: a merge patch for the status subresource."""

    patch: Raw


@dataclass(frozen=True, slots=True)
class RollBack:
    """Replace the template (None keeps it) and all annotations."""

    deployment: Deployment
    template: Raw | None
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell people."""

    type: str
    reason: str
    message: str


Action = CreateReplicaSet | PatchReplicaSet | DeleteReplicaSet | PatchStatus | RollBack | Emit


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one pass writes.

    Attributes:
        actions: In order.
        requeue_seconds: When to look again although nothing happened; None for never.
    """

    actions: tuple[Action, ...]
    requeue_seconds: float | None = None
