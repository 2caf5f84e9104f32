"""A slot's unused room, as a pod that is none: it stands in the cluster cache so that no engine gives it away."""

from skysail.api.core import Container, Pod, PodSpec, ResourceRequirements
from skysail.api.meta import ObjectMeta
from skysail.batch.model.resources import PODS
from skysail.batch.model.slot import Slot
from skysail.scheduler.cache.pod_info import PodInfo


def placeholder(slot: Slot) -> PodInfo:
    """A pod that asks for what the slot's holders leave."""
    left = {name: amount - slot.used.get(name, 0) for name, amount in slot.size.items() if name != PODS}
    requests = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in left.items() if amount > 0}
    container = Container(name="room", resources=ResourceRequirements(requests=requests))
    metadata = ObjectMeta(name=slot.key.rpartition("/")[2], namespace=slot.spec.namespace, uid=f"slot:{slot.key}")
    return PodInfo(Pod(metadata=metadata, spec=PodSpec(containers=(container,))))
