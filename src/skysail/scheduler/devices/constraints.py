"""What the devices of a claim must have in common, or must not.

Constraints are monotonic: once a device does not fit, adding others does not make it fit.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/constraint.go, v1.36.
"""

from collections.abc import Iterable
from typing import Protocol

from skysail.api.resource import Device, DeviceAttribute
from skysail.scheduler.devices.pools import Candidate


class Constraint(Protocol):
    """Watches a growing set of devices. For every `add` that succeeds there is one `remove`, last in first out."""

    def add(self, request: str, subrequest: str, candidate: Candidate) -> bool:
        """Take a device into the set; False when it does not fit."""
        ...

    def remove(self, request: str, subrequest: str, candidate: Candidate) -> None:
        """Take it out again."""
        ...


class _Concerning:
    """Knows which requests are meant; without a name, all are."""

    def __init__(self, requests: Iterable[str]) -> None:
        self._requests = frozenset(requests)

    def concerns(self, request: str, subrequest: str) -> bool:
        """Whether a request (or an alternative of it) is meant."""
        names = self._requests
        return not names or request in names or (bool(subrequest) and f"{request}/{subrequest}" in names)


class MatchAttribute(_Concerning):
    """All devices have the same value."""

    def __init__(self, requests: Iterable[str], attribute: str) -> None:
        super().__init__(requests)
        self._attribute = attribute
        self._value: DeviceAttribute | None = None
        self._devices = 0

    def add(self, request: str, subrequest: str, candidate: Candidate) -> bool:
        """Take a device into the set; the first sets the value."""
        if not self.concerns(request, subrequest):
            return True
        value = lookup_attribute(candidate.device, candidate.id[0], self._attribute)
        if value is None or (self._devices and not _same(value, self._value)):
            return False
        if not self._devices:
            self._value = value
        self._devices += 1
        return True

    def remove(self, request: str, subrequest: str, candidate: Candidate) -> None:
        """Take it out again."""
        if self.concerns(request, subrequest):
            self._devices -= 1


class DistinctAttribute(_Concerning):
    """No two devices have the same value.

    As in the original, one value is remembered for each request: of a request for several devices only the last one.
    """

    def __init__(self, requests: Iterable[str], attribute: str) -> None:
        super().__init__(requests)
        self._attribute = attribute
        self._values: dict[str, DeviceAttribute] = {}
        self._devices = 0

    def add(self, request: str, subrequest: str, candidate: Candidate) -> bool:
        """Take a device into the set."""
        if not self.concerns(request, subrequest):
            return True
        value = lookup_attribute(candidate.device, candidate.id[0], self._attribute)
        if value is None:
            return False
        if self._devices and any(_same(value, other) for other in self._values.values()):
            return False
        self._values[request] = value
        self._devices += 1
        return True

    def remove(self, request: str, subrequest: str, candidate: Candidate) -> None:
        """Take it out again."""
        if self.concerns(request, subrequest):
            self._values.pop(request, None)
            self._devices -= 1


def lookup_attribute(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """An attribute by its full name; the driver's own may be published without the domain."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return device.attributes.get(identifier) if slash and domain == driver else None


def _same(value: DeviceAttribute, other: DeviceAttribute | None) -> bool:
    return value == other and value != _NO_VALUE


_NO_VALUE = DeviceAttribute()
