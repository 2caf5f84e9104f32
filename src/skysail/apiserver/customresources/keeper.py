"""Makes the server follow its definitions: accepts names, serves and withdraws resources, cleans up behind them.

    created ──▶ names accepted, established (conditions) ──▶ served: routes, discovery, OpenAPI
    changed ──▶ served as it is now
    deleted ──▶ instances deleted ──▶ finalizer taken off ──▶ withdrawn

Everything is derived from the stored definitions, so running `sync` again changes nothing.

Source: apiextensions-apiserver/pkg/controller/{status,establish,finalizer}, v1.36.
"""

from collections.abc import Mapping, Sequence
from random import Random

from skysail.api.ports import Clock, User
from skysail.api.raw import Raw
from skysail.apiserver import lifecycle
from skysail.apiserver.catalogue import DEFINITIONS
from skysail.apiserver.contract import DeleteOptions, GroupResource, RequestContext, ResourceInfo
from skysail.apiserver.customresources.definitions import CLEANUP
from skysail.apiserver.customresources.kinds import CustomKind, make_kind
from skysail.apiserver.customresources.structural import type_table
from skysail.apiserver.registry import Registry
from skysail.apiserver.schema import TypeInfo

_KEEPER = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
_NAMES = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


class Keeper:
    """Follows the definitions of one server."""

    def __init__(self, registry: Registry, clock: Clock, rng: Random) -> None:
        self._registry, self._clock, self._rng = registry, clock, rng
        self._served: dict[str, tuple[str, tuple[ResourceInfo, ...]]] = {}

    def sync(self) -> bool:
        """Bring everything up to date; whether a deleted definition still waits for instances to go."""
        waiting = False
        definitions = self._registry.list(DEFINITIONS)
        for definition in definitions:
            if definition["metadata"].get("deletionTimestamp"):
                waiting = self._clean_up(definition) or waiting
            else:
                self._accept(definition, definitions)
        self.serve()
        return waiting

    def serve(self) -> None:
        """Serve what is established, withdraw what is gone."""
        present = {}
        for definition in self._registry.list(DEFINITIONS):
            metadata = definition["metadata"]
            present[metadata["name"]] = definition
            known = self._served.get(metadata["name"])
            if known is not None and known[0] == metadata["resourceVersion"]:
                continue
            if _is_true(definition, "Established"):
                self._serve_definition(definition, known[1] if known else ())
        for name in [name for name in self._served if name not in present]:
            self._withdraw(self._served.pop(name)[1])

    def _serve_definition(self, definition: Raw, before: Sequence[ResourceInfo]) -> None:
        kinds = [make_kind(definition, version) for version in definition["spec"]["versions"] if version.get("served")]
        now = {(kind.resource.group, kind.resource.version) for kind in kinds}
        self._withdraw([row for row in before if (row.group, row.version) not in now])
        for kind in kinds:
            self._registry.add_custom(kind, _types(kind), kind.root)
        metadata = definition["metadata"]
        self._served[metadata["name"]] = (metadata["resourceVersion"], tuple(kind.resource for kind in kinds))

    def _withdraw(self, rows: Sequence[ResourceInfo]) -> None:
        for row in rows:
            self._registry.remove_custom(row)

    def _accept(self, definition: Raw, definitions: Sequence[Raw]) -> None:
        accepted = _conflict(definition, definitions)
        names, spec_names = definition["status"].get("acceptedNames") or {}, definition["spec"]["names"]
        status = dict(definition["status"])
        conditions = list(status.get("conditions") or ())
        now = lifecycle.timestamp(self._clock.now())
        if accepted:
            _set(conditions, "NamesAccepted", "False", accepted[0], accepted[1], now)
            if not _is_true(definition, "Established"):
                _set(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
        else:
            names = {key: spec_names[key] for key in _NAMES if spec_names.get(key)}
            _set(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            if not _is_true(definition, "Established"):
                message = "the initial names have been accepted"
                _set(conditions, "Established", "True", "InitialNamesAccepted", message, now)
        status.update(conditions=conditions, acceptedNames=names)
        if status != definition["status"]:
            self._write(definition, {**definition, "status": status}, "status")

    def _clean_up(self, definition: Raw) -> bool:
        """Delete the instances of a definition under deletion; whether some remain."""
        if CLEANUP not in (definition["metadata"].get("finalizers") or ()):
            return False
        resource = GroupResource(definition["spec"]["group"], definition["spec"]["names"]["plural"])
        name = definition["metadata"]["name"]
        if name in self._served and self._delete_instances(resource):
            self._say_in_progress(definition)
            return True
        metadata = dict(definition["metadata"])
        metadata["finalizers"] = [each for each in metadata["finalizers"] if each != CLEANUP]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        self._write(definition, {**definition, "metadata": metadata}, "")
        return False

    def _say_in_progress(self, definition: Raw) -> None:
        conditions, now = list(definition["status"]["conditions"]), lifecycle.timestamp(self._clock.now())
        message = "CustomResource deletion is in progress"
        _set(conditions, "Terminating", "True", "InstanceDeletionInProgress", message, now)
        if conditions != definition["status"]["conditions"]:
            self._write(
                definition, {**definition, "status": {**definition["status"], "conditions": conditions}}, "status"
            )

    def _delete_instances(self, resource: GroupResource) -> bool:
        handle = self._registry.handle_of(resource)
        for instance in self._registry.list(resource):
            metadata = instance["metadata"]
            if not metadata.get("deletionTimestamp"):
                namespace, name = metadata.get("namespace", ""), metadata["name"]
                ctx = self._context(handle.resource, namespace, name, "")
                self._registry.delete_object(handle, namespace, name, DeleteOptions(), ctx)
        return bool(self._registry.list(resource))

    def _write(self, old: Raw, new: Raw, subresource: str) -> None:
        handle, name = self._registry.handle_of(DEFINITIONS), old["metadata"]["name"]
        ctx = self._context(handle.resource, "", name, subresource)
        record = self._registry.latest(handle, "", name)
        new = {**new, "metadata": dict(new["metadata"])}
        if subresource:
            self._registry.track_fields(handle, old, new, ctx)
        self._registry.store_update(handle, record, new, old, ctx)

    def _context(self, resource: ResourceInfo, namespace: str, name: str, subresource: str) -> RequestContext:
        return RequestContext(
            user=_KEEPER,
            now=self._clock.now(),
            rng=self._rng,
            reader=self._registry,
            resource=resource,
            verb="update",
            namespace=namespace,
            name=name,
            subresource=subresource,
            field_manager="kube-apiserver",
        )


def _types(kind: CustomKind) -> Mapping[str, TypeInfo]:
    row = kind.resource
    return type_table(kind.schema, kind.root, (row.group, row.version, row.kind))


def _is_true(definition: Raw, kind: str) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _conflict(definition: Raw, definitions: Sequence[Raw]) -> tuple[str, str] | None:
    """Why the names of a definition cannot be accepted: another of its group has one of them."""
    taken: set[str] = set()
    kinds: set[str] = set()
    for other in definitions:
        if other["metadata"]["name"] == definition["metadata"]["name"]:
            continue
        if other["spec"]["group"] != definition["spec"]["group"]:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        taken |= {names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())}
        kinds |= {names.get("kind") or "", names.get("listKind") or ""}
    names = definition["spec"]["names"]
    for key, reason in (("plural", "PluralConflict"), ("singular", "SingularConflict")):
        if names.get(key) and names[key] in taken:
            return reason, f'"{names[key]}" is already in use'
    for short in names.get("shortNames") or ():
        if short in taken:
            return "ShortNamesConflict", f'"{short}" is already in use'
    for key, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        if names.get(key) and names[key] in kinds:
            return reason, f'"{names[key]}" is already in use'
    return None


def _set(conditions: list[Raw], kind: str, status: str, reason: str, message: str, now: str) -> None:
    made = {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
    for index, known in enumerate(conditions):
        if known["type"] == kind:
            if known["status"] == status:
                made["lastTransitionTime"] = known["lastTransitionTime"]
            conditions[index] = made
            return
    conditions.append(made)
