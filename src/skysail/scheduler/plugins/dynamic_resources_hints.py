"""What wakes a pod that DynamicResources refused: nodes, claims, the pod's generated claims, classes, slices.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go `EventsToRegister`, v1.36.
"""

from collections.abc import Sequence

from skysail.api.core import Pod
from skysail.api.resource import ResourceClaim
from skysail.scheduler.framework.events import (
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from skysail.scheduler.plugins.device_account import DeviceAccount
from skysail.scheduler.plugins.pod_claims import ClaimError, pod_claims


def problem_with_claims(pod: Pod, account: DeviceAccount) -> str:
    """Why a pod's claims cannot be used yet; empty when all are there."""
    try:
        for _ in pod_claims(pod, account.claim):
            pass
    except ClaimError as error:
        return str(error)
    return ""


class ClaimHints:
    """The events and a closer look at them.

    Args:
        account: Knows the claims.
    """

    def __init__(self, account: DeviceAccount) -> None:
        self._account = account

    def events(self) -> Sequence[ClusterEventWithHint]:
        """What to be woken by."""
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        changed = ActionType.ADD | ActionType.UPDATE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            ClusterEventWithHint(ClusterEvent(NODE, nodes)),
            ClusterEventWithHint(ClusterEvent(RESOURCE_CLAIM, changed), self._after_claim_change),
            ClusterEventWithHint(ClusterEvent(POD, generated), self._after_pod_change),
            ClusterEventWithHint(ClusterEvent(DEVICE_CLASS, changed)),
            ClusterEventWithHint(ClusterEvent(RESOURCE_SLICE, changed)),
        )

    def _after_claim_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, ResourceClaim):
            return QueueingHint.QUEUE
        try:
            is_used = any(claim.uid == new.uid for claim in list(pod_claims(pod, self._account.claim)))
        except ClaimError:
            return QueueingHint.SKIP
        before = old.status if isinstance(old, ResourceClaim) else None
        if before is not None and before.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        return QueueingHint.QUEUE if is_used and before != new.status else QueueingHint.SKIP

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Pod):
            return QueueingHint.QUEUE
        has_problem = new.uid != pod.uid or problem_with_claims(new, self._account)
        return QueueingHint.SKIP if has_problem else QueueingHint.QUEUE
