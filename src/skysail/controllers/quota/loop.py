"""The resource quota controller's shell: works usage out anew when something is gone, and every five minutes.

Source: pkg/controller/resourcequota/resource_quota_controller.go, v1.36.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import msgspec

from skysail.api.cluster import ConfigMap, ReplicationController, ResourceQuota, ResourceQuotaStatus, Service
from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import PODS, RESOURCE_QUOTAS, Kind
from skysail.api.meta import ObjectMeta
from skysail.api.quantity import Quantity
from skysail.api.raw import Raw
from skysail.api.storage import PersistentVolumeClaim
from skysail.controller.controller import Result
from skysail.controller.watches import Deleted, For, Watch, Watches
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.discovery import Discovery, discover
from skysail.controllers.pods import is_terminal
from skysail.controllers.quota.usage import (
    Usage,
    claim_usage,
    counted_resource,
    is_of_claims,
    is_of_pods,
    is_of_services,
    pods_usage,
    service_usage,
    used,
)
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key, key_of

RESYNC_SECONDS = 300.0
BATCH_SECONDS = 0.1
_RAW_QUOTAS: Kind[Raw] = Kind("", "v1", "ResourceQuota", "resourcequotas", True, dict)
_RAW_CLAIMS: Kind[Raw] = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, dict)
_RAW_SERVICES: Kind[Raw] = Kind("", "v1", "Service", "services", True, dict)
_REPLENISHED = (Service, ConfigMap, PersistentVolumeClaim, ReplicationController)


class ResourceQuotaController(BuiltinController):
    """Keeps what quotas say is used."""

    name = "resourcequota"
    workers = 5

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Quotas, and what frees something by going."""
        freed = (Watches(kind, on=(Deleted,), map=self._quotas_beside) for kind in _REPLENISHED)
        return (For(ResourceQuota), *freed)

    def setup(self) -> None:
        """Pods free something when they end, too."""
        self.informer(Pod).add_handler(Handlers(update=self._pod_changed, delete=self._pod_gone), name=self.name)

    def _quotas_beside(self, obj: object) -> Iterable[Key]:
        namespace = key_of(obj).namespace
        return [Key(quota.namespace, quota.name) for quota in self.lister(ResourceQuota).list(namespace)]

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if is_terminal(new) and not is_terminal(old):
            self._pod_gone(new)

    def _pod_gone(self, pod: Pod) -> None:
        for key in self._quotas_beside(pod):
            self.enqueue(key, BATCH_SECONDS)

    async def reconcile(self, key: Key) -> Result | None:
        """Work one quota's use out from what the server says now."""
        if self.lister(ResourceQuota).get(key) is None:
            return None
        try:
            quota = await self.api.get(_RAW_QUOTAS, key.name, key.namespace)
        except NotFound:
            return None
        hard = (quota.get("spec") or {}).get("hard") or {}
        usage = used(hard, *[part async for part in self._parts(quota, set(hard))])
        before = quota.get("status") or {}
        old = ResourceQuotaStatus(hard=before.get("hard") or {}, used=before.get("used") or {})
        new = ResourceQuotaStatus(hard=hard, used=usage)
        read = msgspec.convert(quota["metadata"], type=ObjectMeta)
        cached = ResourceQuota(metadata=read)
        await self.write_status(RESOURCE_QUOTAS, cached, old, new, optimistic=True)
        return Result(RESYNC_SECONDS)

    async def _parts(self, quota: Raw, names: set[str]) -> AsyncIterator[Usage]:
        namespace = quota["metadata"]["namespace"]
        if any(map(is_of_pods, names)):
            pods = (await self.api.list(PODS, namespace)).items
            yield pods_usage(pods, quota["spec"], self.now())
        if any(map(is_of_claims, names)):
            for claim in (await self.api.list(_RAW_CLAIMS, namespace)).items:
                yield claim_usage(claim)
        if any(map(is_of_services, names)):
            for service in (await self.api.list(_RAW_SERVICES, namespace)).items:
                yield service_usage(service)
        counted = {name: resource for name in names if (resource := counted_resource(name))}
        discovery = await discover(self.api) if counted else Discovery()
        for name, resource in counted.items():
            yield {name: Quantity.of(await self._count(discovery, resource, namespace))}

    async def _count(self, discovery: Discovery, resource: str, namespace: str) -> int:
        """How many objects of a resource there are; 0 of one that the server does not know."""
        for found in discovery.resources:
            if found.kind.resource == resource and found.kind.namespaced and "list" in found.verbs:
                return len((await self.api.list(found.kind, namespace)).items)
        return 0
