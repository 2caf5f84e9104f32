"""The namespace controller's shell: empties a namespace that is being deleted, and lets it go.

Source: pkg/controller/namespace, v1.36.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from skysail.api.cluster import Namespace
from skysail.api.core import Pod
from skysail.api.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from skysail.api.kinds import NAMESPACES, PODS, Kind
from skysail.api.meta import ObjectMeta
from skysail.api.raw import Raw
from skysail.controller.controller import Result
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.discovery import Discovery, MetadataKind, discover
from skysail.controllers.namespace.plan import (
    FINALIZER,
    GRACE_SECONDS,
    Remains,
    deletion_status,
    pod_grace_estimate,
    remains_of,
    retry_seconds,
    unexpected_remains,
)
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

_RAW_NAMESPACES: Kind[Raw] = Kind("", "v1", "Namespace", "namespaces", False, dict)


@dataclass(slots=True)
class _Progress:
    """What one pass found."""

    remains: list[Remains] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)

    @property
    def estimate(self) -> int:
        """How long the slowest kind may take."""
        return max((item.estimate_seconds for item in self.remains), default=0)

    def fail(self, step: str, message: str) -> None:
        """Note what went wrong."""
        self.errors.setdefault(step, []).append(message)


class NamespaceController(BuiltinController):
    """Empties namespaces that are being deleted: pods first, then everything else."""

    name = "namespace"
    workers = 10

    def setup(self) -> None:
        """Wait a little before the first pass: the API server may still be admitting what was under way."""
        self.informer(Namespace).add_handler(Handlers(add=self._seen, update=self._changed), name=self.name)

    def _changed(self, _: Namespace, namespace: Namespace) -> None:
        self._seen(namespace)

    def _seen(self, namespace: Namespace) -> None:
        if namespace.metadata.deletion_timestamp is not None:
            self.enqueue(Key("", namespace.name), GRACE_SECONDS)

    async def reconcile(self, key: Key) -> Result | None:
        """Empty one namespace as far as it goes."""
        try:
            namespace = await self.api.get(NAMESPACES, key.name)
        except NotFound:
            return None
        if namespace.metadata.deletion_timestamp is None or not namespace.spec.finalizers:
            return None
        progress = await self._empty(namespace)
        if progress.errors:
            first = next(iter(progress.errors.values()))[0]
            raise Conflict(f"namespace {key.name} is not empty yet: {first}")
        if progress.estimate:
            return Result(retry_seconds(progress.estimate))
        await self._finalize(namespace)
        return None

    async def _empty(self, namespace: Namespace) -> _Progress:
        progress = _Progress()
        discovery = await discover(self.api)
        if discovery.failed:
            progress.fail("discovery", _discovery_words(discovery))
        kinds = [resource.kind for resource in discovery.supporting("delete") if resource.kind.namespaced]
        pods = [kind for kind in kinds if (kind.group, kind.plural) == ("", PODS.plural)]
        for kind in pods:
            await self._empty_kind(namespace, kind, progress)
        if not any(item.count for item in progress.remains):
            for kind in kinds:
                if kind not in pods:
                    await self._empty_kind(namespace, kind, progress)
            reported: Sequence[Remains] = progress.remains
        else:
            reported = ()
        status = deletion_status(namespace, reported, progress.errors, self.written_now())
        await self.write_status(NAMESPACES, namespace, namespace.status, status)
        return progress

    async def _empty_kind(self, namespace: Namespace, kind: MetadataKind, progress: _Progress) -> None:
        try:
            grace = await self._grace_estimate(namespace) if kind.plural == PODS.plural and not kind.group else 0
            await self._delete_all(namespace.name, kind)
            left = (await self.api.list(kind, namespace.name)).items
        except ApiError as error:
            progress.fail("content", error.status.message)
            return
        found = remains_of(f"{kind.plural}.{kind.group}", [item.metadata for item in left], grace)
        progress.remains.append(found)
        if unexpected_remains(found):
            words = f"unexpected items still remain in namespace: {namespace.name} for gvr: {kind.resource}"
            progress.fail("content", words)

    async def _grace_estimate(self, namespace: Namespace) -> int:
        deleted_at = namespace.metadata.deletion_timestamp or self.now()
        pods: tuple[Pod, ...] = (await self.api.list(PODS, namespace.name)).items
        return pod_grace_estimate(pods, deleted_at, self.now())

    async def _delete_all(self, namespace: str, kind: MetadataKind) -> None:
        try:
            await self.api.delete_collection(kind, namespace, propagation="Background")
        except (MethodNotAllowed, NotFound):
            for item in (await self.api.list(kind, namespace)).items:
                await self._delete_one(namespace, kind, item.metadata)

    async def _delete_one(self, namespace: str, kind: MetadataKind, item: ObjectMeta) -> None:
        try:
            await self.api.delete(kind, item.name, namespace, propagation="Background")
        except (MethodNotAllowed, NotFound):
            return

    async def _finalize(self, namespace: Namespace) -> None:
        """Take our finalizer off; the server removes the namespace when it was the last.

        This subresource knows no patch, so the whole object goes back, read as it is and not through a Struct.
        """
        with suppress(NotFound):
            body = await self.api.get(_RAW_NAMESPACES, namespace.name)
            if body["metadata"]["uid"] == namespace.uid:
                body["spec"]["finalizers"] = [item for item in body["spec"]["finalizers"] if item != FINALIZER]
                await self.api.update(_RAW_NAMESPACES, body, subresource="finalize")


def _discovery_words(discovery: Discovery) -> str:
    parts = ", ".join(f"{name}: {message}" for name, message in sorted(discovery.failed.items()))
    return f"Discovery failed for some groups, {len(discovery.failed)} failing: {parts}"
