"""What must be true of a claim's requests before any node is looked at.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreFilter), v1.36.
"""

from skysail.api.resource import DeviceRequest, ResourceClaim
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.device_account import DeviceAccount


def check_requests(claim: ResourceClaim, account: DeviceAccount) -> Status:
    """Success, or why the claim cannot be allocated anywhere."""
    for request in claim.spec.devices.requests:
        status = _check(claim, request, account)
        if not status.is_success:
            return status
    return SUCCESS


def _check(claim: ResourceClaim, request: DeviceRequest, account: DeviceAccount) -> Status:
    where = f"resource claim {claim.key}, request {request.name}"
    if request.exactly is not None:
        return _check_class(request.exactly.device_class_name, request.name, account)
    if not request.first_available:
        return Status.unresolvable(f"{where}: unknown request type")
    if not account.features.prioritized_list:
        return Status.unresolvable(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
    for each in request.first_available:
        status = _check_class(each.device_class_name, f"{request.name}/{each.name}", account)
        if not status.is_success:
            return status
    return SUCCESS


def _check_class(name: str, request: str, account: DeviceAccount) -> Status:
    if not name:
        return Status.error(f"request {request}: unsupported request type")
    if account.classes.get("", name) is None:
        return Status.unresolvable(f"request {request}: device class {name} does not exist")
    return SUCCESS
