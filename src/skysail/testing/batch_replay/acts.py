"""What may happen in a scenario: one record for each act."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from skysail.api.raw import Raw
from skysail.simulator.hollow import HollowNode

DEFAULT_CAPACITY: Final[Mapping[str, str]] = {"cpu": "8", "memory": "32Gi", "pods": "110"}
"""What a hollow node has of what its scenario does not say."""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file."""


class Apply(Part, frozen=True, kw_only=True):
    """An object is made, or changed to what is said.

    Attributes:
        object: The object; a Node becomes a hollow node.
    """

    object: Raw


class Delete(Part, frozen=True, kw_only=True):
    """An object is deleted; one that is not there is left in peace.

    Attributes:
        kind: Its kind.
        name: Its name.
        namespace: Where; ignored for kinds without.
        api_version: Where several APIs have the kind; else the first that has such an object, ours before others'.
        propagation: What becomes of what it owns, as with kubectl.
        grace_period_seconds: How long a pod may take to end; 0 is at once.
    """

    kind: str
    name: str
    namespace: str = "default"
    api_version: str = ""
    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    grace_period_seconds: int | None = None


class Patch(Part, frozen=True, kw_only=True):
    """An object is changed.

    Attributes:
        kind: Its kind.
        name: Its name.
        namespace: Where; ignored for kinds without.
        api_version: As in `Delete`.
        patch: The change; `status` in it goes to the subresource.
        type: How it is to be read.
        subresource: Where it goes; empty for the object and its status.
    """

    kind: str
    name: str
    namespace: str = "default"
    api_version: str = ""
    patch: Raw | list[Raw]
    type: Literal["merge", "strategic", "json"] = "merge"
    subresource: str = ""


class DelayWatch(Part, frozen=True, kw_only=True):
    """The engine hears of a kind later from now on.

    Attributes:
        kind: Which; `*` is every kind.
        seconds: How much later; 0 ends it.
    """

    kind: str
    seconds: float


class PodMatch(Part, frozen=True, kw_only=True):
    """Which pods; all that is said must hold.

    Attributes:
        name: Their names, `*` stands for anything.
        namespace: Where they are, likewise.
        labels: What they bear.
    """

    name: str = "*"
    namespace: str = "*"
    labels: dict[str, str] = {}


class FailBind(Part, frozen=True, kw_only=True):
    """The next bindings of these pods are refused.

    Attributes:
        match: Which pods: their names or `namespace/name`, `*` stands for anything; or in full.
        times: How many bindings.
    """

    match: str | PodMatch = "*"
    times: Annotated[int, msgspec.Meta(ge=1)] = 1

    def pods(self) -> PodMatch:
        """Which pods, in full."""
        if isinstance(self.match, PodMatch):
            return self.match
        namespace, _, name = self.match.rpartition("/")
        return PodMatch(name=name, namespace=namespace or "*")


class FailNode(Part, frozen=True, kw_only=True):
    """A hollow node falls silent: no more leases, no more news of its pods.

    Attributes:
        name: Which.
    """

    name: str


class RecoverNode(Part, frozen=True, kw_only=True):
    """A silent node speaks again.

    Attributes:
        name: Which.
    """

    name: str


class AddNode(Part, frozen=True, kw_only=True):
    """A hollow node more.

    Attributes:
        name: Its name.
        capacity: Of what it has so much; the rest is as for every node.
        labels: Its labels.
        annotations: Its annotations.
        taints: Its taints.
        unschedulable: Whether it is cordoned.
        status: What else its status says.
    """

    name: str
    capacity: dict[str, int | float | str] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[Raw] = []
    unschedulable: bool = False
    status: Raw = {}

    def hollow(self) -> HollowNode:
        """As the simulator takes it."""
        capacity = {name: str(amount) for name, amount in self.capacity.items()}
        return HollowNode(
            self.name,
            capacity={**DEFAULT_CAPACITY, **capacity},
            labels=self.labels,
            taints=tuple(self.taints),
            annotations=self.annotations,
        )


class SetDevice(Part, frozen=True, kw_only=True):
    """A node offers another number of devices from now on.

    Attributes:
        node: Its name.
        resource: The devices' resource.
        count: How many there are.
        healthy: How many of them can be used; all when absent.
    """

    node: str
    resource: str = "nvidia.com/gpu"
    count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    healthy: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Crash(Part, frozen=True, kw_only=True):
    """A component is killed, and started anew.

    Attributes:
        component: Only the scheduler can crash: the batch engine.
        seconds: How long it is away.
    """

    component: Literal["scheduler"] = "scheduler"
    seconds: float = 0.0


Act = Apply | Delete | Patch | DelayWatch | FailBind | FailNode | RecoverNode | AddNode | SetDevice | Crash
