"""A scenario read from a live cluster: what `skysail explain --pod` decides about. Reads only.

Objects are taken whole, as the recorded scenarios hold them, so that one piece of code explains both.
"""

from typing import Any, Final

from skysail.api.errors import NotFound
from skysail.api.kinds import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICASETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFULSETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Kind,
)
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient

READ: Final[tuple[Kind[Any], ...]] = (
    NODES, PODS, NAMESPACES, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS, POD_DISRUPTION_BUDGETS, SERVICES, REPLICATION_CONTROLLERS, REPLICASETS,
    STATEFULSETS, RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES,
)  # fmt: skip
"""What any plugin looks at."""


async def live_scenario(client: ApiClient, namespace: str, name: str) -> Raw:
    """The cluster as it is, and one of its pods.

    A pod that is bound is explained as if it were not: where would it go now?

    Raises:
        NotFound: No such pod.
    """
    pod = await client.get(_whole(PODS), name, namespace)
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    pod["spec"] = {key: value for key, value in pod.get("spec", {}).items() if key != "nodeName"}
    objects: list[Raw] = []
    for kind in READ:
        objects += await _objects(client, kind)
    uid = pod["metadata"].get("uid")
    others = [each for each in objects if each["metadata"].get("uid") != uid]
    return {"id": f"{namespace}/{name}", "objects": others, "pod": pod}


async def _objects(client: ApiClient, kind: Kind[Any]) -> list[Raw]:
    try:
        found = await client.list_all(_whole(kind))
    except NotFound:  # an older cluster without this kind has no objects of it
        return []
    return [{**each, "apiVersion": kind.api_version, "kind": kind.name} for each in found.items]


def _whole(kind: Kind[Any]) -> Kind[Raw]:
    return Kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced, dict, kind.subresources)
