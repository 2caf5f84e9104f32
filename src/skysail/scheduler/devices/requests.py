"""The requests of a claim, in one shape, whether they ask for exactly this or for the first of several alternatives."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from skysail.api.resource import (
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
)
from skysail.scheduler.devices.pools import Candidate

ALL, EXACT_COUNT = "All", "ExactCount"
_PREVENTING = ("NoExecute", "NoSchedule")


@dataclass(slots=True, eq=False)
class Wanted:
    """One request, or one alternative.

    Attributes:
        name: Its own name.
        parent: The request it is an alternative of; empty when it is none.
        device_class: Which devices.
        selectors: And which of them.
        count: How many.
        every: The devices when all are wanted; None when a number is.
        answers: Which candidates qualify, by identity, as far as asked.
    """

    name: str
    parent: str
    class_name: str
    mode: str
    count: int
    admin_access: bool
    has_admin_access: bool
    selectors: Sequence[DeviceSelector]
    tolerations: Sequence[DeviceToleration]
    capacity: CapacityRequirements | None
    device_class: DeviceClass = field(default_factory=DeviceClass)
    every: list[Candidate] | None = None

    @property
    def full_name(self) -> str:
        """As results name it: `request`, or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        """The name of the request, without the alternative."""
        return self.parent or self.name

    @property
    def alternative(self) -> str:
        """The name of the alternative; empty when it is none."""
        return self.name if self.parent else ""

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Whether a taint does not keep the request away; unknown effects never do."""
        if taint.effect not in _PREVENTING:
            return True
        return any(tolerates_taint(toleration, taint) for toleration in self.tolerations)


def wanted_of(request: DeviceRequest) -> list[Wanted]:
    """The alternatives of a request, in order; just one when it asks for exactly this."""
    if request.first_available:
        return [_wanted(each.name, request.name, each) for each in request.first_available]
    if request.exactly is not None:
        return [_wanted(request.name, "", request.exactly)]
    return []


def _wanted(name: str, parent: str, body: ExactDeviceRequest | DeviceSubRequest) -> Wanted:
    admin = body.admin_access if isinstance(body, ExactDeviceRequest) else None
    return Wanted(
        name, parent, body.device_class_name, body.allocation_mode, body.count, bool(admin), admin is not None,
        body.selectors, body.tolerations, body.capacity,
    )  # fmt: skip


def tolerates_taint(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration matches a taint.

    Source: k8s.io/dynamic-resource-allocation/resourceclaim/devicetoleration.go, v1.36.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
