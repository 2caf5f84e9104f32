"""What the volume plugins' queueing hints ask alike.

Source: pkg/scheduler/framework/plugins/{volumebinding,volumezone,nodevolumelimits,volumerestrictions}, v1.36.
"""

from skysail.api.core import Pod
from skysail.api.storage import PersistentVolumeClaim
from skysail.api.volumes import pod_claims
from skysail.scheduler.framework.events import QueueingHint


def after_claim_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """A claim that the pod mounts, ephemeral ones included, came or changed."""
    return _hint(pod, new, ephemeral=True)


def after_named_claim_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """A claim that the pod mounts by name came or changed."""
    return _hint(pod, new, ephemeral=False)


def _hint(pod: Pod, new: object | None, *, ephemeral: bool) -> QueueingHint:
    if not isinstance(new, PersistentVolumeClaim) or new.metadata.namespace != pod.metadata.namespace:
        return QueueingHint.SKIP
    names = {name for name, is_ephemeral in pod_claims(pod) if ephemeral or not is_ephemeral}
    return QueueingHint.QUEUE if new.metadata.name in names else QueueingHint.SKIP
