"""What a pod asks of a node: its containers, init containers and sidecars, pod-level resources, overhead, resizes.

    main       = sum of containers, plus sidecars (init containers that always restart)
    starting   = for each init container: itself plus the sidecars started before it
    the pod    = max(main, the largest starting), or its pod-level requests where set, plus overhead

While a resize in place is under way a container counts with the largest of what its spec wants, what it has, and what
the kubelet promised it; an infeasible resize leaves the spec out.

Amounts here are whole numbers: thousandths for `cpu`, units (bytes, pieces) for everything else, rounded up.

Source: k8s.io/component-helpers/resource `PodRequests`, pkg/scheduler/framework `CalculateResource`, v1.36 with default
    feature gates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from skysail.api.core import Container, ContainerStatus, Pod, ResourceRequirements
from skysail.api.labelsyntax import label_key_errors
from skysail.api.quantity import Quantity, parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGE_PAGES_PREFIX: Final = "hugepages-"

DEFAULT_MILLI_CPU: Final = 100
"""What a container without a CPU request counts as when nodes are scored."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""What a container without a memory request counts as when nodes are scored."""

ResourceList = dict[str, Quantity]
_ZERO: Final = Quantity(0)
_SCORING_DEFAULTS: Final = {CPU: Quantity.of_milli(DEFAULT_MILLI_CPU), MEMORY: Quantity.of(DEFAULT_MEMORY)}


@dataclass(frozen=True, slots=True, eq=False)
class PodResources:
    """What a pod adds to the account of its node. Pods of one template share one, so it compares by identity.

    Attributes:
        requests: Amounts by resource name; only those the scheduler accounts for (CPU, memory, ephemeral storage and
            scalar resources).
        nonzero_milli_cpu: CPU for scoring, where a container without a request counts as `DEFAULT_MILLI_CPU`.
        nonzero_memory: Memory for scoring, likewise, in bytes.
    """

    requests: Mapping[str, int]
    nonzero_milli_cpu: int
    nonzero_memory: int


def pod_requests(pod: Pod) -> dict[str, int]:
    """What the pod asks for, as the scheduler counts it: `cpu` in thousandths, everything else in units."""
    return to_amounts(request_quantities(pod))


def pod_nonzero_requests(pod: Pod) -> tuple[int, int]:
    """CPU (in thousandths) and memory (in bytes) for scoring: a missing request counts as a small default."""
    resources = pod_resources(pod)
    return resources.nonzero_milli_cpu, resources.nonzero_memory


def pod_resources(pod: Pod) -> PodResources:
    """Everything the pod adds to the account of its node."""
    exact = request_quantities(pod)
    pod_level = _has_pod_level_requests(pod)
    defaults = {name: amount for name, amount in _SCORING_DEFAULTS.items() if not pod_level or name not in exact}
    scoring = request_quantities(pod, defaults=defaults) if _is_missing_in_a_container(pod, defaults) else exact
    counted = {name: amount for name, amount in to_amounts(exact).items() if is_accounted(name)}
    return PodResources(counted, scoring.get(CPU, _ZERO).milli_value(), scoring.get(MEMORY, _ZERO).value())


def to_amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Whole numbers: `cpu` in thousandths, everything else in units, rounded up."""
    return {name: amount.milli_value() if name == CPU else amount.value() for name, amount in quantities.items()}


def resource_amounts(resources: Mapping[str, str]) -> dict[str, int]:
    """The whole numbers of a resource list as it stands in an object, e.g. `node.status.allocatable`.

    Raises:
        ValueError: A value is no quantity.
    """
    return to_amounts({name: parse_quantity(text) for name, text in resources.items()})


def request_quantities(
    pod: Pod, *, use_status: bool = True, defaults: Mapping[str, Quantity] | None = None
) -> ResourceList:
    """What the pod asks for, exactly.

    Args:
        pod: The pod.
        use_status: Whether a resize under way counts, as it does for the scheduler.
        defaults: What a container counts as for resources it does not mention.

    Raises:
        ValueError: A request is no quantity.
    """
    requests = _container_requests(pod, use_status, defaults)
    if _has_pod_level_requests(pod):
        requests.update(_pod_level_requests(pod, use_status))
    _add(requests, _parse(pod.spec.overhead))
    return requests


def _container_requests(pod: Pod, use_status: bool, defaults: Mapping[str, Quantity] | None) -> ResourceList:
    statuses: dict[str, ContainerStatus] = {}
    if use_status:
        statuses = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    infeasible = bool(statuses) and _resize_is_infeasible(pod)

    def requests_of(container: Container) -> ResourceList:
        requests = _effective(container, statuses.get(container.name), infeasible)
        return {**defaults, **requests} if defaults else requests

    main: ResourceList = {}
    for container in pod.spec.containers:
        _add(main, requests_of(container))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            requests = requests_of(container)
            _add(main, requests)
            _add(sidecars, requests)
            _raise_to(starting, sidecars)
        else:
            statuses.pop(container.name, None)  # a plain init container is never resized
            requests = requests_of(container)
            _add(requests, sidecars)
            _raise_to(starting, requests)
    _raise_to(main, starting)
    return main


def _effective(container: Container, status: ContainerStatus | None, infeasible: bool) -> ResourceList:
    """A container's requests in the light of what it has at the moment."""
    wanted = _requests(container.resources)
    if status is None or status.resources is None:
        return wanted
    return _largest(wanted, _requests(status.resources), _parse(status.allocated_resources), infeasible)


def _pod_level_requests(pod: Pod, use_status: bool) -> ResourceList:
    wanted = _requests(pod.spec.resources)
    effective = wanted
    if use_status and pod.status.resources is not None:
        actual, promised = _requests(pod.status.resources), _parse(pod.status.allocated_resources)
        effective = _largest(wanted, actual, promised, _resize_is_infeasible(pod))
    return {name: effective.get(name, _ZERO) for name in wanted if is_pod_level_resource(name)}


def _largest(wanted: ResourceList, actual: ResourceList, promised: ResourceList, infeasible: bool) -> ResourceList:
    result = {} if infeasible else dict(wanted)
    _raise_to(result, actual)
    _raise_to(result, promised)
    return result


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests))


def _requests(resources: ResourceRequirements | None) -> ResourceList:
    return _parse(resources.requests) if resources is not None else {}


def _is_missing_in_a_container(pod: Pod, names: Mapping[str, Quantity]) -> bool:
    """Whether a container may count with none of a resource; an infeasible resize leaves out what its spec asks for."""
    if _resize_is_infeasible(pod):
        return True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for name in names:
            if container.resources is None or name not in container.resources.requests:
                return True
    return False


def _parse(resources: Mapping[str, str]) -> ResourceList:
    return {name: parse_quantity(text) for name, text in resources.items()}


def _add(total: ResourceList, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount


def _raise_to(total: ResourceList, floor: Mapping[str, Quantity]) -> None:
    for name, amount in floor.items():
        known = total.get(name)
        if known is None or amount.nano > known.nano:
            total[name] = amount


def is_pod_level_resource(name: str) -> bool:
    """Whether a resource may be requested for the pod as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def is_accounted(name: str) -> bool:
    """Whether the scheduler keeps account of a resource that a pod requests."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def is_native_resource(name: str) -> bool:
    """Whether a name belongs to Kubernetes itself: without a prefix, or under `kubernetes.io/`."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=1_024)
def is_extended_resource(name: str) -> bool:
    """Whether a name is that of an extended resource, such as `nvidia.com/gpu`."""
    return (
        not is_native_resource(name) and not name.startswith("requests.") and not label_key_errors(f"requests.{name}")
    )


@lru_cache(maxsize=1_024)
def is_scalar_resource(name: str) -> bool:
    """Whether a resource is counted in pieces or bytes beside CPU, memory and ephemeral storage."""
    return (
        is_extended_resource(name)
        or name.startswith((HUGE_PAGES_PREFIX, "attachable-volumes-"))
        or "kubernetes.io/" in name
    )
