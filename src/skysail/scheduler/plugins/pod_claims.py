"""The device claims of a pod: their names, whether they are its own, who they are reserved for.

Source: k8s.io/dynamic-resource-allocation/resourceclaim, v1.36.
"""

from collections.abc import Callable, Iterator

from skysail.api.core import Pod, PodResourceClaim
from skysail.api.resource import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

GetClaim = Callable[[str, str], ResourceClaim | None]
"""`(namespace, name) -> claim`."""


class ClaimError(Exception):
    """A claim of the pod is not as it must be; the pod has to wait."""


def pod_claims(pod: Pod, get: GetClaim) -> Iterator[ResourceClaim]:
    """The pod's claims, in order.

    Raises:
        ClaimError: One is missing, not made yet, somebody else's, or being deleted.
    """
    for reference in pod.spec.resource_claims:
        name, is_generated = _claim_name(pod, reference)
        if name is None:
            continue  # deliberately not made
        claim = get(pod.namespace, name)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{claim.name}" is being deleted')
        if is_generated and not is_controlled_by(claim, pod):
            raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        yield claim


def _claim_name(pod: Pod, reference: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim's name, and whether it was made for the pod."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name, False
    if reference.resource_claim_template_name is None:
        where = f'pod "{pod.key}", spec.resourceClaim "{reference.name}"'
        raise ClaimError(f"{where}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name, True
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod is the claim's controlling owner."""
    controller = next((each for each in claim.metadata.owner_references if each.controller), None)
    return controller is not None and controller.uid == pod.uid


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod is among those who may use the claim."""
    return any(each.uid == pod.uid for each in claim.status.reserved_for)


def is_for_extended_resources(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a scheduler made the claim for the pod's extended resources."""
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return False
    owners = claim.metadata.owner_references
    return any(each.name == pod.name and each.controller and each.uid == pod.uid for each in owners)


class BindingFailed(Exception):
    """A device cannot be prepared; the message says which claim, and why."""


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all of an allocated claim's devices are prepared, as far as they have conditions for that.

    Raises:
        BindingFailed: One says that it cannot be.
    """
    if claim.status.allocation is None:
        return False
    return all(
        _is_device_ready(claim, result)
        for result in claim.status.allocation.devices.results
        if result.binding_conditions
    )


def _is_device_ready(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> bool:
    status = _device_status(claim, result)
    if status is None:
        return False
    for condition in status.conditions:
        if condition.type in result.binding_failure_conditions and condition.status == "True":
            problem = f'claim={claim.name}, reason={condition.reason}, message="{condition.message}"'
            raise BindingFailed(f"device binding failed: {problem}")
    true = {condition.type for condition in status.conditions if condition.status == "True"}
    return true.issuperset(result.binding_conditions)


def _device_status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted), None)


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Whether some device of the claim must be prepared first."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Whether devices with binding conditions had their time since they were allocated; `now` is a Unix time."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_binding_conditions(claim):
        return False
    return allocation.allocation_timestamp.timestamp() + timeout_seconds < now
