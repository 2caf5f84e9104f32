"""Pods and nodes with all their fields, for services that read more of them than we do. Shell, not core.

The scheduler's own informers keep slim Structs. Only where an extender must be sent objects, a second pair of
informers keeps them whole, as bytes, without `managedFields`. What these have not seen yet is read from the server.
"""

from random import Random
from typing import Any, Final

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import Kind
from skysail.api.node import Node
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.informer.factory import InformerFactory
from skysail.informer.keys import Key
from skysail.informer.lister import Lister

PENDING: Final = "spec.nodeName="
_WHOLE_PODS: Final[Kind[Raw]] = Kind("", "v1", "Pod", "pods", True, dict)
_WHOLE_NODES: Final[Kind[Raw]] = Kind("", "v1", "Node", "nodes", False, dict)


class WholeObjects:
    """The objects.

    Args:
        client: Reads them.
        clock: For the informers.
        rng: For the informers.
        nodes: Whether nodes will be asked for.
        assigned: Whether pods on nodes will be asked for, and not only pending ones.
    """

    def __init__(self, client: ApiClient, clock: Clock, rng: Random, *, nodes: bool, assigned: bool) -> None:
        self._client = client
        self._informers = InformerFactory(client, clock=clock, rng=rng)
        self._listers: dict[type, Lister[Raw]] = {Pod: self._lister(_WHOLE_PODS, "" if assigned else PENDING)}
        if nodes:
            self._listers[Node] = self._lister(_WHOLE_NODES, "")

    def _lister(self, kind: Kind[Raw], field_selector: str) -> Lister[Raw]:
        informer = self._informers.informer(kind, field_selector=field_selector)
        informer.set_transform(_packed)
        return informer.lister

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        await self._informers.run()

    async def wait_synced(self) -> None:
        """Wait until everything has been seen once."""
        await self._informers.wait_for_sync()

    async def read(self, obj: Pod | Node) -> object:
        """The object with all its fields, ready to be encoded; what we know of it when it cannot be had."""
        lister = self._listers.get(type(obj))
        kept = lister.get(Key(obj.namespace, obj.name)) if lister is not None else None
        if kept is not None and kept["metadata"].get("uid", "") == obj.uid:
            return kept["whole"]
        kind: Kind[Any] = _WHOLE_PODS if isinstance(obj, Pod) else _WHOLE_NODES
        try:
            found = await self._client.get(kind, obj.name, obj.namespace)
        except (ApiError, Unreachable):
            return obj
        return _packed(found)["whole"]


def _packed(raw: Raw) -> Raw:
    """What is kept of an object: what informers look at, and the rest as bytes."""
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    whole = {**raw, "metadata": metadata}
    whole.pop("kind", None)
    whole.pop("apiVersion", None)
    names = ("namespace", "name", "uid", "resourceVersion")
    slim = {name: metadata[name] for name in names if name in metadata}
    return {"metadata": slim, "whole": msgspec.Raw(msgspec.json.encode(whole))}
