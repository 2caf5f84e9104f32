"""Which addresses and node ports the Services hold.

Differs: found by looking at the other Services instead of a bitmap of their own, so nothing can leak; the search starts
    at a place drawn from the request's random generator. No IPAddress objects are made.

Source: pkg/registry/core/service/{ipallocator,portallocator}, v1.36.
"""

import ipaddress
from collections.abc import Iterator

from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource, RequestContext

SERVICES = GroupResource("", "services")
DEFAULT_RANGE = "10.0.0.0/24"
NODE_PORTS = range(30000, 32768)
_STATIC_PORTS = 86
"""As many node ports at the low end are left to those who ask for one by number, as long as others are free."""


class Taken:
    """What the Services but one hold."""

    def __init__(self, obj: Raw, ctx: RequestContext) -> None:
        self._rng = ctx.rng
        self.network = ipaddress.ip_network(ctx.options.get("service-cidr") or DEFAULT_RANGE)
        self.addresses: set[str] = set()
        self.ports: set[int] = set()
        meta = obj["metadata"]
        own = (meta.get("namespace") or ctx.namespace, meta.get("name"))
        for other in ctx.reader.list(SERVICES):
            if (other["metadata"]["namespace"], other["metadata"]["name"]) != own:
                self._note(other.get("spec") or {})

    def _note(self, spec: Raw) -> None:
        self.addresses.update(ip for ip in spec.get("clusterIPs") or () if ip != "None")
        self.ports.update(port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort"))
        if spec.get("healthCheckNodePort"):
            self.ports.add(spec["healthCheckNodePort"])

    def free_address(self) -> str | None:
        """An address nobody holds; None when there is none left."""
        size = self.network.num_addresses
        reserved = min(max(16, size // 16), 256)
        for offsets in (range(reserved + 1, size - 1), range(1, min(reserved + 1, size - 1))):
            for offset in self._from_anywhere(offsets):
                address = str(self.network[offset])
                if address not in self.addresses:
                    return address
        return None

    def free_port(self, also_taken: set[int]) -> int | None:
        """A node port nobody holds; None when there is none left."""
        first = NODE_PORTS.start + _STATIC_PORTS
        for ports in (range(first, NODE_PORTS.stop), range(NODE_PORTS.start, first)):
            for port in self._from_anywhere(ports):
                if port not in self.ports and port not in also_taken:
                    return port
        return None

    def _from_anywhere(self, numbers: range) -> Iterator[int]:
        """All the numbers, beginning at a random one."""
        if numbers:
            start = self._rng.randrange(len(numbers))
            for step in range(len(numbers)):
                yield numbers[(start + step) % len(numbers)]

    def address_fault(self, wanted: str) -> str:
        """Why an address cannot be had; "" when it can."""
        address = ipaddress.ip_address(wanted)
        if address not in self.network:
            return "the provided network does not match the current range"
        if address in (self.network.network_address, self.network.broadcast_address):
            return (
                f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {self.network}"
            )  # fmt: skip
        return "provided IP is already allocated" if wanted in self.addresses else ""

    def port_fault(self, wanted: int) -> str:
        """Why a node port cannot be had; "" when it can."""
        if wanted not in NODE_PORTS:
            bounds = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            return f"provided port is not in the valid range. The range of valid ports is {bounds}"
        return "provided port is already allocated" if wanted in self.ports else ""
