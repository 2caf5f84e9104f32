"""Which class each node belongs to, and what the cluster offers of each.

A node has the first flavor whose labels it bears: of most labels first, then by name; `default` when it bears none.
Totals are kept as nodes come and go; nodes that are not ready for anybody (cordoned, gone) still count: their pods are
in the ledger, too.
"""

from collections.abc import Iterable, Mapping

from skysail.api.node import Node
from skysail.api.resources import resource_amounts
from skysail.batch.model.resources import ANY, DEFAULT_FLAVOR, FlavorResource, ResourceVector
from skysail.batch.model.specs import FlavorSpec


class Flavors:
    """Flavors, and the flavor of each node.

    Attributes:
        by_node: Flavor by node name.
        version: Rises when any node's flavor changes, comes or goes.
    """

    def __init__(self) -> None:
        self._specs: dict[str, FlavorSpec] = {}
        self._offered: dict[str, ResourceVector] = {}
        self._nodes: dict[str, Node] = {}
        self.by_node: dict[str, str] = {}
        self.totals: dict[FlavorResource, int] = {}
        self.version = 0

    @property
    def names(self) -> tuple[str, ...]:
        """All flavors, by name, `default` last."""
        return (*sorted(name for name in self._specs if name != DEFAULT_FLAVOR), DEFAULT_FLAVOR)

    def spec(self, name: str) -> FlavorSpec | None:
        """A flavor's labels."""
        return self._specs.get(name)

    def of(self, node_name: str) -> str:
        """A node's flavor; `default` for one that is not known."""
        return self.by_node.get(node_name, DEFAULT_FLAVOR)

    def set_specs(self, specs: Iterable[FlavorSpec]) -> None:
        """Other flavors are defined now; every node is looked at again."""
        by_precision = sorted(specs, key=lambda spec: (-len(spec.node_labels), spec.name))
        self._specs = {spec.name: spec for spec in by_precision}
        for node in list(self._nodes.values()):
            self.set_node(node)

    def specs(self) -> tuple[FlavorSpec, ...]:
        """The flavors as defined."""
        return tuple(self._specs.values())

    def set_node(self, node: Node) -> bool:
        """A node came or changed; whether its flavor did."""
        name = node.metadata.name
        flavor = self._match(node.metadata.labels)
        before = self.by_node.get(name)
        offered = ResourceVector.of(resource_amounts(node.status.allocatable), flavor).over_all_flavors()
        self._count(self._offered.get(name, ResourceVector()), -1)
        self._count(offered, 1)
        self._nodes[name], self._offered[name], self.by_node[name] = node, offered, flavor
        if before != flavor:
            self.version += 1
        return before != flavor

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        self._count(self._offered.pop(name, ResourceVector()), -1)
        self._nodes.pop(name, None)
        self.by_node.pop(name, None)
        self.version += 1

    def _match(self, labels: Mapping[str, str]) -> str:
        for name, spec in self._specs.items():
            if name != DEFAULT_FLAVOR and all(labels.get(key) == value for key, value in spec.node_labels.items()):
                return name
        return DEFAULT_FLAVOR

    def _count(self, offered: ResourceVector, sign: int) -> None:
        for key, amount in offered.items():
            self.totals[key] = self.totals.get(key, 0) + sign * amount

    def total(self, key: FlavorResource) -> int:
        """What all nodes of a flavor (or all, under `ANY`) offer of a resource."""
        return self.totals.get(key, 0)

    def resources(self) -> list[str]:
        """Names of everything any node offers."""
        return sorted(resource for flavor, resource in self.totals if flavor == ANY and self.totals[flavor, resource])
