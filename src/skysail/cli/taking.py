"""Taking a snapshot of a cluster: lists, one kind after another; kinds that are not served are left out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from skysail.api.kinds import Kind
    from skysail.api.ports import Clock
    from skysail.api.raw import Raw
    from skysail.client.api_client import ApiClient
    from skysail.diagnosis.snapshot import Snapshot

T = TypeVar("T")


async def take_snapshot(client: "ApiClient", clock: "Clock", scheduler_name: str) -> "Snapshot":
    """List everything the batch engine goes by.

    Args:
        client: Reads.
        clock: Says when.
        scheduler_name: Whose pods are ours.
    """
    from skysail.api.kinds import NODES, PODS, PRIORITY_CLASSES
    from skysail.batch.foreign.registry import GROUP_KINDS, QUEUE_KINDS
    from skysail.batch.kinds import JOB_QUEUES, POD_GROUPS, QUEUES, QUOTAS
    from skysail.diagnosis.snapshot import Snapshot

    queues: dict[str, Sequence[Raw]] = {}
    for versions in QUEUE_KINDS:
        for kind in versions:
            if found := await _listed(client, kind):
                queues[kind.resource] = found
                break
    groups: list[Any] = []
    for versions in GROUP_KINDS:
        groups += [(versions[0], raw) for raw in await _listed(client, versions[0])]
    return Snapshot(
        now=clock.now().timestamp(),
        pods=await _listed(client, PODS),
        nodes=await _listed(client, NODES),
        queues=await _listed(client, QUEUES),
        job_queues=await _listed(client, JOB_QUEUES),
        groups=await _listed(client, POD_GROUPS),
        quotas=await _listed(client, QUOTAS),
        priority_classes=await _listed(client, PRIORITY_CLASSES),
        foreign_queues=queues,
        foreign_groups=groups,
        scheduler_name=scheduler_name,
    )


async def _listed(client: "ApiClient", kind: "Kind[T]") -> Sequence[T]:
    from skysail.api.errors import NotFound

    try:
        return tuple((await client.list_all(kind)).items)
    except NotFound:
        return ()
