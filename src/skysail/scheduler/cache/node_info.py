"""A node with the account of its pods.

Persistent objects with plain attributes: a simple plugin reads them a thousand times for each time they change.

Source: pkg/scheduler/framework/types.go `NodeInfo`, v1.36.
"""

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.resources import PODS, is_accounted, resource_amounts
from skysail.scheduler.cache.pod_info import PodInfo

NO_NODE = Node()


class NodeInfo:
    """One node's account. Snapshots share it: whoever changes it after that changes a clone.

    Attributes:
        name: The node's name.
        node: The API object; `NO_NODE` while only pods are known of it (see `exists`).
        pods: By uid, in the order they came.
        pods_with_affinity: Those with any pod (anti-)affinity.
        pods_with_required_anti_affinity: Those with required anti-affinity.
        requested: Sum of the pods' requests: `cpu` in milli, bytes, counts.
        nonzero_cpu: Like requested cpu, pods without a request counting 100m.
        nonzero_memory: Like requested memory, pods without a request counting 200 MiB.
        allocatable: What the node offers, same units, `pods` included.
        used_ports: `(host_ip, protocol, port)` to the number of users.
        pvc_ref_counts: `namespace/name` of claims to the number of pods on the node that use them.
        generation: Rises with every change.
        node_generation: The generation at which the Node object last changed.
        shared: Whether a snapshot holds this very object; whoever wants to change it changes a clone.
    """

    __slots__ = (
        "allocatable",
        "generation",
        "name",
        "node",
        "node_generation",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pvc_ref_counts",
        "requested",
        "shared",
        "used_ports",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node = NO_NODE
        self.pods: dict[str, PodInfo] = {}
        self.pods_with_affinity: dict[str, PodInfo] = {}
        self.pods_with_required_anti_affinity: dict[str, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.allocatable: dict[str, int] = {}
        self.used_ports: dict[tuple[str, str, int], int] = {}
        self.pvc_ref_counts: dict[str, int] = {}
        self.generation = 0
        self.node_generation = 0
        self.shared = False

    @property
    def exists(self) -> bool:
        """Whether the Node object is known; False for a name that only pods mention."""
        return self.node is not NO_NODE

    def set_node(self, node: Node) -> None:
        """Take a new version of the Node object."""
        self.node = node
        self.allocatable = {
            name: amount
            for name, amount in resource_amounts(node.status.allocatable).items()
            if name == PODS or is_accounted(name)
        }

    def remove_node(self) -> None:
        """The Node object is gone; pods may still be there."""
        self.node = NO_NODE
        self.allocatable = {}

    def add_pod(self, info: PodInfo) -> None:
        """Put a pod on the node."""
        self.pods[info.key] = info
        if info.has_affinity:
            self.pods_with_affinity[info.key] = info
            if info.required_anti_affinity:
                self.pods_with_required_anti_affinity[info.key] = info
        self._account(info, 1)

    def remove_pod(self, pod: Pod) -> PodInfo | None:
        """Take a pod off the node, as it was when it was added; None when it is not there."""
        info = self.pods.pop(pod.metadata.uid, None)
        if info is None:
            return None
        self.pods_with_affinity.pop(info.key, None)
        self.pods_with_required_anti_affinity.pop(info.key, None)
        self._account(info, -1)
        return info

    def _account(self, info: PodInfo, sign: int) -> None:
        requested, resources = self.requested, info.resources
        for name, amount in resources.requests.items():
            requested[name] = requested.get(name, 0) + sign * amount
        self.nonzero_cpu += sign * resources.nonzero_milli_cpu
        self.nonzero_memory += sign * resources.nonzero_memory
        for port in info.host_ports:
            _count(self.used_ports, port, sign)
        for claim in info.claims:
            _count(self.pvc_ref_counts, claim, sign)

    def clone(self) -> "NodeInfo":
        """An independent account of the same node; pods and the Node object are shared."""
        copy = NodeInfo(self.name)
        copy.node, copy.allocatable = self.node, self.allocatable
        copy.pods = self.pods.copy()
        copy.pods_with_affinity = self.pods_with_affinity.copy()
        copy.pods_with_required_anti_affinity = self.pods_with_required_anti_affinity.copy()
        copy.requested = self.requested.copy()
        copy.nonzero_cpu, copy.nonzero_memory = self.nonzero_cpu, self.nonzero_memory
        copy.used_ports = self.used_ports.copy()
        copy.pvc_ref_counts = self.pvc_ref_counts.copy()
        copy.generation, copy.node_generation = self.generation, self.node_generation
        return copy

    def __repr__(self) -> str:
        return f"NodeInfo({self.name}, {len(self.pods)} pods, generation {self.generation})"


def _count(counts: dict[tuple[str, str, int], int] | dict[str, int], key: object, sign: int) -> None:
    total = counts.get(key, 0) + sign  # type: ignore[call-overload]
    if total > 0:
        counts[key] = total  # type: ignore[index]
    else:
        counts.pop(key, None)  # type: ignore[call-overload]
