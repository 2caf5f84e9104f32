"""Does what a scenario's acts say: to the cluster's objects and nodes, and to the engine's connection."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from skysail.api.errors import AlreadyExists, ApiError, ConfigError, NotFound
from skysail.api.kinds import NAMESPACES, NODES, PODS, Kind
from skysail.api.raw import Raw
from skysail.client.bodies import JSON, MERGE, STRATEGIC
from skysail.controller.customresources.installing import install
from skysail.simulator.hollow import HollowSettings
from skysail.testing.batch_replay.acts import (
    DEFAULT_CAPACITY,
    Act,
    AddNode,
    Apply,
    Delete,
    FailNode,
    Patch,
    RecoverNode,
    SetDevice,
)
from skysail.testing.batch_replay.kinds import DEFINITION, KnownKinds
from skysail.testing.batch_replay.reading import Place, node_of
from skysail.testing.cluster import Cluster

_SETTINGS: Final = HollowSettings(capacity=dict(DEFAULT_CAPACITY))
_PATCH_TYPES: Final = {"merge": MERGE, "strategic": STRATEGIC, "json": JSON}
_ENDED: Final = ("Succeeded", "Failed")


class Doing:
    """What happens to the cluster; what happens to the engine is the player's.

    Args:
        cluster: Where.
        kinds: All that can be spoken of.
    """

    def __init__(self, cluster: Cluster, kinds: KnownKinds) -> None:
        self._cluster, self._client, self._kinds = cluster, cluster.client, kinds
        self._acts: Mapping[type, Callable[[Any], Awaitable[None]]] = {
            Apply: lambda act: self.apply(act.object),
            Delete: self._delete,
            Patch: self._patch,
            AddNode: lambda act: self.add_nodes([act]),
            FailNode: self._fail_node,
            RecoverNode: self._recover_node,
            SetDevice: self._set_device,
        }

    async def do(self, act: Act, place: Place) -> bool:
        """Do one act; whether it is one of ours.

        Raises:
            ConfigError: The server refuses it; with the place of the act.
        """
        doing = self._acts.get(type(act))
        if doing is None:
            return False
        try:
            await doing(act)
        except ApiError as error:
            raise ConfigError(str(error), file=place.file, path=place.path) from error
        return True

    # -- objects ---------------------------------------------------------------------------------------------------

    async def apply(self, obj: Raw) -> None:
        """Make an object, or change it to this."""
        if obj["kind"] == DEFINITION:
            await install(self._client, (obj,))
            return
        kind = self._kinds.named(obj["kind"], obj["apiVersion"])
        assert kind is not None, "checked when the scenario was read"
        if kind is NODES:
            await self._apply_node(obj)
            return
        metadata = obj["metadata"]
        namespace = str(metadata.get("namespace") or "default") if kind.namespaced else ""
        if namespace not in ("", "default"):
            await self._make_namespace(namespace)
        try:
            await self._client.create(kind, obj, namespace)
        except AlreadyExists:
            body = {key: value for key, value in obj.items() if key != "status"}
            await self._client.patch(kind, metadata["name"], namespace, body)
        status = obj.get("status")
        if status and (kind is not PODS or status.get("phase") in _ENDED):
            await self._client.patch(kind, metadata["name"], namespace, {"status": status}, subresource="status")

    async def _make_namespace(self, name: str) -> None:
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": name}})
        except AlreadyExists:
            return

    async def _delete(self, act: Delete) -> None:
        for kind in self._kinds.find(act.kind, act.api_version):
            namespace = act.namespace if kind.namespaced else ""
            try:
                await self._client.delete(
                    kind,
                    act.name,
                    namespace,
                    propagation=act.propagation,
                    grace_period_seconds=act.grace_period_seconds,
                )
            except NotFound:
                continue
            return

    async def _patch(self, act: Patch) -> None:
        patch_type = _PATCH_TYPES[act.type]
        kind, namespace = await self._find(act.kind, act.api_version, act.name, act.namespace)
        change, status = act.patch, None
        if isinstance(change, dict) and not act.subresource and "status" in change and "status" in kind.subresources:
            change, status = {key: value for key, value in change.items() if key != "status"}, change["status"]
        if change:
            await self._client.patch(
                kind, act.name, namespace, change, patch_type=patch_type, subresource=act.subresource
            )
        if status is not None:
            body = {"status": status}
            await self._client.patch(kind, act.name, namespace, body, patch_type=patch_type, subresource="status")

    async def _find(self, name: str, api_version: str, obj: str, namespace: str) -> tuple[Kind[Any], str]:
        """Of several kinds of one name the first that has such an object, and where that is."""
        found = self._kinds.find(name, api_version)
        for kind in found:
            where = namespace if kind.namespaced else ""
            try:
                await self._client.get(kind, obj, where)
            except NotFound:
                continue
            return kind, where
        return found[0], namespace if found[0].namespaced else ""

    # -- nodes -----------------------------------------------------------------------------------------------------

    async def add_nodes(self, nodes: list[AddNode]) -> None:
        """Hollow nodes more, and wait until they are registered."""
        await self._cluster.add_nodes([each.hollow() for each in nodes], _SETTINGS)
        for node in nodes:
            if node.unschedulable:
                await self._client.patch(NODES, node.name, "", {"spec": {"unschedulable": True}})
            if node.status:
                await self._client.patch(NODES, node.name, "", {"status": node.status}, subresource="status")

    async def _apply_node(self, obj: Raw) -> None:
        name = obj["metadata"]["name"]
        try:
            await self._client.get(NODES, name)
        except NotFound:
            await self.add_nodes([node_of(obj, Place("", "", self._kinds))])
            return
        body = {key: value for key, value in obj.items() if key != "status"}
        await self._client.patch(NODES, name, "", body)
        if status := dict(obj.get("status") or {}):
            status.setdefault("allocatable", status.get("capacity"))
            status.setdefault("capacity", status["allocatable"])
            await self._client.patch(NODES, name, "", {"status": status}, subresource="status")

    async def _fail_node(self, act: FailNode) -> None:
        self._cluster.fail_node(act.name)

    async def _recover_node(self, act: RecoverNode) -> None:
        self._cluster.recover_node(act.name)

    async def _set_device(self, act: SetDevice) -> None:
        usable = act.count if act.healthy is None else act.healthy
        status: Raw = {"allocatable": {act.resource: str(usable)}}
        if act.count is not None:
            status["capacity"] = {act.resource: str(act.count)}
        await self._client.patch(NODES, act.node, "", {"status": status}, subresource="status")
