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
    from skysail.api.kinds import JOBS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES
    from skysail.batch.foreign.registry import GROUP_KINDS, QUEUE_KINDS, RESERVATIONS, WORKLOAD_PRIORITIES
    from skysail.batch.kinds import JOB_QUEUES, POD_GROUPS, QUEUES, QUOTAS
    from skysail.diagnosis.snapshot import Snapshot

    queues: dict[str, Sequence[Raw]] = {}
    for versions in QUEUE_KINDS:
        if found := await _first_listed(client, versions):
            queues[versions[0].resource] = found
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
        jobs=await _listed(client, JOBS),
        namespaces={each.name: each.metadata.labels for each in await _listed(client, NAMESPACES)},
        reservations=await _listed(client, RESERVATIONS[0]),
        workload_priorities=await _first_listed(client, WORKLOAD_PRIORITIES),
        others={kind.resource: await _listed(client, kind) for kind in _plugins_kinds()},
    )


def _plugins_kinds() -> "tuple[Kind[Any], ...]":
    """What pod plugins look at beside pods and nodes."""
    from skysail.api import kinds

    return (
        kinds.PERSISTENT_VOLUME_CLAIMS, kinds.PERSISTENT_VOLUMES, kinds.STORAGE_CLASSES, kinds.CSI_NODES,
        kinds.CSI_DRIVERS, kinds.CSI_STORAGE_CAPACITIES, kinds.VOLUME_ATTACHMENTS, kinds.RESOURCE_CLAIMS,
        kinds.RESOURCE_SLICES, kinds.DEVICE_CLASSES,
    )  # fmt: skip


async def _first_listed(client: "ApiClient", versions: "tuple[Kind[T], ...]") -> Sequence[T]:
    """Objects of the first version that is served and has any."""
    for kind in versions:
        if found := await _listed(client, kind):
            return found
    return ()


async def _listed(client: "ApiClient", kind: "Kind[T]") -> Sequence[T]:
    from skysail.api.errors import Forbidden, NotFound

    try:
        return tuple((await client.list_all(kind)).items)
    except NotFound:
        return ()
    except Forbidden:
        if kind.resource in ("pods", "nodes"):
            raise
        return ()
