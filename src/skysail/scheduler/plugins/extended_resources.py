"""Extended resources backed by device classes: which device requests stand for what the containers ask for.

Containers that live long (main containers and sidecars) get a request each. Init containers run one after the other,
before the later ones: they use the devices of those that come later, and what is missing then is asked for once, as
much as the hungriest of them needs.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.36.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from skysail.api.core import Container, ContainerExtendedResourceRequest, Pod
from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.api.quantity import parse_quantity
from skysail.api.resource import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)

SPECIAL_NAME = "<extended-resources>"
"""The name of the claim while it is only in memory; no valid one, on purpose."""
_NANO = 10**9


def special_claim(pod: Pod, uid: str) -> ResourceClaim:
    """The claim that will stand for a pod's extended resources; its requests depend on the node.

    Args:
        pod: Its owner.
        uid: A name for it until it is written.
    """
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=pod.namespace,
            name=SPECIAL_NAME,
            uid=uid,
            generate_name=f"{pod.name}-extended-resources-",
            owner_references=(owner,),
            annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        )
    )


@dataclass
class _Requests:
    """What is made of one resource.

    Attributes:
        requests: By container index; None where a container asks for none.
        mappings: Of long-lived containers.
        short: The largest request of a short-lived container.
        short_names: All requests of short-lived ones.
        short_mappings: Of short-lived containers.
    """

    requests: list[DeviceRequest | None]
    mappings: list[ContainerExtendedResourceRequest] = field(default_factory=list)
    short: DeviceRequest | None = None
    short_names: set[str] = field(default_factory=set)
    short_mappings: list[ContainerExtendedResourceRequest] = field(default_factory=list)


def requests_and_mappings(
    pod: Pod, resources: Iterable[str], class_of: Callable[[str], DeviceClass | None]
) -> tuple[tuple[DeviceRequest, ...], tuple[ContainerExtendedResourceRequest, ...]]:
    """Device requests for extended resources, and which container's resource each one answers.

    Args:
        pod: Whose containers.
        resources: Those that a node does not offer itself.
        class_of: The class behind a resource.
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = class_of(resource)
        if device_class is None:
            continue
        made = _for_resource(pod, resource, device_class.name)
        requests += [each for each in (made.short, *made.requests) if each is not None]
        mappings += [*made.mappings, *made.short_mappings]
    return tuple(sorted(requests, key=lambda each: each.name)), tuple(mappings)


def _for_resource(pod: Pod, resource: str, class_name: str) -> _Requests:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    first_main = len(pod.spec.init_containers)
    made = _Requests([None] * len(containers))
    for index, container in enumerate(containers):
        if index >= first_main or container.restart_policy == "Always":
            made.requests[index], mappings = _request(index, container, resource, class_name, ())
            made.mappings += mappings
    for index, container in enumerate(containers[:first_main]):
        if container.restart_policy == "Always":
            continue
        request, mappings = _request(index, container, resource, class_name, made.requests[index:])
        made.short_mappings += mappings
        if request is not None:
            made.short_names.add(request.name)
            if made.short is None or _count(made.short) < _count(request):
                made.short = request
    _merge_short(made)
    return made


def _merge_short(made: _Requests) -> None:
    """Let all short-lived containers use the one request that is kept of theirs."""
    if made.short is None:
        return
    kept = made.short.name
    made.short_mappings = [
        ContainerExtendedResourceRequest(
            container_name=each.container_name, resource_name=each.resource_name, request_name=kept
        )
        if each.request_name in made.short_names
        else each
        for each in made.short_mappings
    ]


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _request(
    index: int, container: Container, resource: str, class_name: str, reusable: Sequence[DeviceRequest | None]
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    wanted = container.resources.requests if container.resources is not None else {}
    text = wanted.get(resource)
    nano = parse_quantity(text).nano if text is not None else 0
    if not nano or nano % _NANO:
        return None, []
    count, covered = nano // _NANO, 0
    mappings = []
    for other in reusable:
        if other is None:
            continue
        covered += _count(other)
        mappings.append(_mapping(container, resource, other.name))
        if covered >= count:
            return None, mappings
    name = f"container-{index}-request-{sorted(wanted).index(resource)}"
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode="ExactCount", count=count - covered)
    return DeviceRequest(name=name, exactly=exactly), [*mappings, _mapping(container, resource, name)]


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)
