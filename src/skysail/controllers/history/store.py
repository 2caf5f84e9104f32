"""A set's revisions in the API: found, adopted, made, renumbered, deleted."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from skysail.api.apps import ControllerRevision, DaemonSet, StatefulSet
from skysail.api.errors import AlreadyExists, NotFound
from skysail.api.kinds import CONTROLLER_REVISIONS, Kind
from skysail.api.labels import Selector
from skysail.client.api_client import ApiClient
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controllers.history.revisions import (
    HASH_LABEL,
    WantedRevision,
    in_order,
    new_revision,
    revision_hash,
    revision_template,
)
from skysail.controllers.pods import controller_of
from skysail.controllers.templates import controller_reference, whole_template

Owner = StatefulSet | DaemonSet


class RevisionStore:
    """The revisions of one set.

    Args:
        client: Writes.
        owner: The set.
        kind: Its kind.
        hash_label: The label that holds a revision's hash: stateful and daemon sets use different ones.
        hash_rule: The hash of a template and a collision count; different, too.
    """

    def __init__(
        self,
        client: ApiClient,
        owner: Owner,
        kind: Kind[Any],
        *,
        hash_label: str = HASH_LABEL,
        hash_rule: Callable[[msgspec.Raw, int], str] = revision_hash,
    ) -> None:
        self._client, self._owner, self._kind = client, owner, kind
        self._hash_label, self._hash_rule = hash_label, hash_rule

    async def claim(self, revisions: Iterable[ControllerRevision], selector: Selector) -> list[ControllerRevision]:
        """The set's own revisions in order; orphans that match its selector are adopted."""
        candidates = [
            item for item in revisions if (reference := controller_of(item)) is None or reference.uid == self._owner.uid
        ]
        manager = ControllerRefManager(self._client, self._owner, self._kind, CONTROLLER_REVISIONS, selector)
        return in_order(await manager.claim(candidates))

    async def label(self, revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
        """Give those without a hash their name for one."""
        return [item if self._hash_label in item.metadata.labels else await self._label(item) for item in revisions]

    async def _label(self, revision: ControllerRevision) -> ControllerRevision:
        patch = {"metadata": {"uid": revision.uid, "labels": {self._hash_label: revision.name}}}
        return await self._client.patch(CONTROLLER_REVISIONS, revision.name, revision.namespace, patch)

    async def sync(self, wanted: WantedRevision) -> tuple[ControllerRevision, int]:
        """The revision of the present template, made or renumbered as needed; and the collision count."""
        collisions = self._owner.status.collision_count or 0
        if wanted.existing is None:
            return await self._create(wanted.number, collisions)
        if not wanted.needs_renumbering:
            return wanted.existing, collisions
        patch = {
            "metadata": {"resourceVersion": wanted.existing.metadata.resource_version},
            "revision": wanted.number,
        }
        found = wanted.existing
        return await self._client.patch(CONTROLLER_REVISIONS, found.name, found.namespace, patch), collisions

    async def _create(self, number: int, collisions: int) -> tuple[ControllerRevision, int]:
        meta, template = self._owner.metadata, self._owner.spec.template
        owner = controller_reference(self._owner, self._kind.api_version, self._kind.name)
        while True:
            suffix = self._hash_rule(template, collisions)
            body = new_revision(meta.name, owner, template, meta.annotations, number, suffix, self._hash_label)
            try:
                return await self._client.create(CONTROLLER_REVISIONS, body, meta.namespace), collisions
            except AlreadyExists:
                found = await self._client.get(CONTROLLER_REVISIONS, body["metadata"]["name"], meta.namespace)
                if whole_template(revision_template(found)) == whole_template(template):
                    return found, collisions
                collisions += 1

    async def delete(self, revisions: Iterable[ControllerRevision]) -> None:
        """Delete revisions; those that are gone already do not matter."""
        for item in revisions:
            try:
                await self._client.delete(CONTROLLER_REVISIONS, item.name, item.namespace)
            except NotFound:
                continue
