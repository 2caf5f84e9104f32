"""Every kind the server knows, built in and custom, and what a request needs to know of one: the `Handle`.

Also: filling the store with what a former life left on disk, since only the kinds know what selectors may ask.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from skysail.api.errors import InvariantBroken
from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource, ResourceInfo, Strategy
from skysail.apiserver.customresources.definitions import DefinitionStrategy
from skysail.apiserver.customresources.kinds import CustomKind
from skysail.apiserver.schema import Schema, TypeInfo
from skysail.apiserver.status import unknown_resource
from skysail.apiserver.store import Record, Store, StoredObject, restored_record
from skysail.apiserver.strategies import for_resource

STORED_ELSEWHERE: Mapping[GroupResource, GroupResource] = {
    GroupResource("events.k8s.io", "events"): GroupResource("", "events"),
}
DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_DEFINITION_STRATEGY = DefinitionStrategy()
_decode = msgspec.json.Decoder().decode
_decode_selectors = msgspec.json.Decoder(tuple[dict[str, str], dict[str, str]]).decode


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """Everything about one resource in one version.

    Attributes:
        storage: Where its objects lie; other versions and groups may share it.
        type_info: The shape of its body.
        head: How a stored body begins that needs no conversion to be shown in this version.
    """

    resource: ResourceInfo
    storage: GroupResource
    strategy: Strategy
    type_info: TypeInfo
    head: bytes

    def shown(self, body: bytes) -> bytes:
        """A stored object in this version."""
        if body.startswith(self.head):
            return body
        return msgspec.json.encode(self.as_document(body))

    def as_document(self, body: bytes) -> Raw:
        """A stored object in this version, decoded; the caller's own."""
        document: Raw = _decode(body)
        if body.startswith(self.head):
            return document
        return self.strategy.from_storage(document, self.resource.group, self.resource.version)


class Catalogue:
    """All kinds of one server."""

    def __init__(self, store: Store, schema: Schema) -> None:
        self.store = store
        self.schema = schema
        self._custom: dict[ResourceInfo, CustomKind] = {}
        self._handles: dict[ResourceInfo, Handle] = {}
        self._preferred: dict[GroupResource, Handle] = {}
        self._generation = -1

    def handle(self, resource: ResourceInfo) -> Handle:
        """The handle of a resource in one version."""
        if self._generation != self.schema.generation:
            self._handles.clear()
            self._preferred.clear()
            self._generation = self.schema.generation
        handle = self._handles.get(resource)
        if handle is None:
            handle = self._handles[resource] = self._make_handle(resource)
        return handle

    def _make_handle(self, resource: ResourceInfo) -> Handle:
        type_info = self.schema.type_of(resource.group, resource.version, resource.kind)
        if type_info is None:
            raise InvariantBroken(f"the table has no type for {resource.kind} in {resource.api_version}")
        head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'
        return Handle(
            resource=resource,
            storage=STORED_ELSEWHERE.get(resource.group_resource, resource.group_resource),
            strategy=self._strategy_of(resource),
            type_info=type_info,
            head=head.encode(),
        )

    def _strategy_of(self, resource: ResourceInfo) -> Strategy:
        if resource.group_resource == DEFINITIONS:
            return _DEFINITION_STRATEGY
        if resource.custom:
            return self._custom[resource].strategy
        return for_resource(resource.group, resource.resource)

    def add_custom(self, kind: CustomKind, types: Mapping[str, TypeInfo], root: str) -> None:
        """Serve a custom kind in one version, in place of what was served there."""
        self.remove_custom(kind.resource)
        self._custom[kind.resource] = kind
        self.schema.add(kind.resource, types, root)

    def remove_custom(self, resource: ResourceInfo) -> None:
        """Serve a custom resource no longer."""
        for row in [row for row in self._custom if _same_endpoint(row, resource)]:
            del self._custom[row]
            self.schema.remove(row)

    def custom_kind(self, resource: ResourceInfo) -> CustomKind | None:
        """What serves a custom resource; None for built-in ones."""
        return self._custom.get(resource)

    def handle_of(self, resource: GroupResource) -> Handle:
        """The handle of a resource in its first served version.

        Raises:
            NotFound: No such resource is served.
        """
        handle = self._preferred.get(resource)
        if handle is None or self._generation != self.schema.generation:
            info = next((info for info in self.schema.resources if info.group_resource == resource), None)
            if info is None:
                raise unknown_resource()
            handle = self._preferred[resource] = self.handle(info)
        return handle

    def restore(self, objects: Iterable[StoredObject]) -> None:
        """Fill the store with what a previous life left on disk."""
        by_resource: dict[GroupResource, list[StoredObject]] = {}
        for stored in objects:
            by_resource.setdefault(stored.resource, []).append(stored)
        for resource, found in by_resource.items():
            self.store.restore(resource, list(self._restored(resource, found)))

    def _restored(self, resource: GroupResource, objects: Sequence[StoredObject]) -> Iterator[Record]:
        expected = self._fields_of(resource, _decode(objects[0].body)).keys()
        known: dict[bytes, tuple[Mapping[str, str], Mapping[str, str]]] = {}
        for stored in objects:
            selectors = known.get(stored.selectors)
            if selectors is None:
                selectors = known[stored.selectors] = _decode_selectors(stored.selectors)
            labels, fields = selectors
            if fields.keys() != expected:
                # The kind has got other selectable fields since: only the body knows their values.
                fields = self._fields_of(resource, _decode(stored.body))
            yield restored_record(stored.key, stored.revision, stored.body, labels, fields)

    def _fields_of(self, resource: GroupResource, document: Raw) -> Mapping[str, str]:
        custom = next((kind for row, kind in self._custom.items() if row.group_resource == resource), None)
        strategy: Strategy = custom.strategy if custom else for_resource(*resource)
        return strategy.selectable_fields(document)


def _same_endpoint(one: ResourceInfo, other: ResourceInfo) -> bool:
    return one.group_resource == other.group_resource and one.version == other.version
