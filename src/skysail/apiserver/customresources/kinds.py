"""One custom kind in one version: its strategy, its views, and its row in the table of resources.

Source: apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy,etcd}.go, v1.36.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skysail.api.raw import Raw
from skysail.apiserver.contract import (
    FieldError,
    PrinterColumn,
    RequestContext,
    ResourceInfo,
    SubresourceInfo,
    View,
    invalid,
)
from skysail.apiserver.customresources.checking import BLOCKING, UNCHECKED, check_object
from skysail.apiserver.customresources.rules import check_rules, has_rules
from skysail.apiserver.customresources.structural import Schema, fill_defaults
from skysail.apiserver.strategies.generic import GenericStrategy, Rules, keep, text_at
from skysail.apiserver.validation.field import non_negative

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_READ_WRITE = frozenset({"get", "update", "patch"})
_MAY_CHANGE = ("metadata", "kind", "apiVersion")


@dataclass(frozen=True, slots=True)
class CustomKind:
    """What serves one custom kind in one version.

    Attributes:
        terminating: Its definition is under deletion: nothing more is created.
    """

    resource: ResourceInfo
    schema: Schema
    strategy: "CustomStrategy"
    views: Mapping[str, View]
    terminating: bool = False

    @property
    def root(self) -> str:
        """The name of its type."""
        resource = self.resource
        return f"{resource.group}/{resource.version}/{resource.kind}"


def make_kind(definition: Raw, version: Raw) -> CustomKind:
    """Build a kind out of a version of an accepted definition."""
    spec = definition["spec"]
    schema = Schema((version.get("schema") or {}).get("openAPIV3Schema") or {})
    subresources = version.get("subresources") or {}
    resource = _row(spec, definition["status"]["acceptedNames"], version, subresources)
    storage = next(each["name"] for each in spec["versions"] if each.get("storage"))
    strategy = CustomStrategy(
        resource, schema, storage, status="status" in subresources, selectable=_selectable(version)
    )
    views: dict[str, View] = {}
    if "status" in subresources:
        views["status"] = CustomStatusView(strategy)
    if subresources.get("scale"):
        views["scale"] = CustomScaleView(subresources["scale"])
    terminating = bool(definition["metadata"].get("deletionTimestamp"))
    return CustomKind(resource, schema, strategy, views, terminating)


def _row(spec: Raw, names: Raw, version: Raw, subresources: Raw) -> ResourceInfo:
    group, kind = spec["group"], names["kind"]
    known = {}
    if "status" in subresources:
        known["status"] = SubresourceInfo("status", group, version["name"], kind, ("get", "patch", "update"))
    if subresources.get("scale"):
        known["scale"] = SubresourceInfo("scale", "autoscaling", "v1", "Scale", ("get", "patch", "update"))
    return ResourceInfo(
        group=group,
        version=version["name"],
        resource=names["plural"],
        kind=kind,
        namespaced=spec["scope"] == "Namespaced",
        verbs=VERBS,
        subresources=known,
        short_names=tuple(names.get("shortNames") or ()),
        singular=names.get("singular") or "",
        categories=tuple(names.get("categories") or ()),
        custom=True,
        printer_columns=tuple(
            PrinterColumn(
                name=column["name"],
                type=column["type"],
                path=column["jsonPath"],
                format=column.get("format") or "",
                description=column.get("description") or "",
                priority=column.get("priority") or 0,
            )
            for column in version.get("additionalPrinterColumns") or ()
        ),
    )


def _selectable(version: Raw) -> Mapping[str, tuple[str, ...]]:
    paths = [each["jsonPath"].lstrip(".") for each in version.get("selectableFields") or ()]
    return {path: tuple(path.split(".")) for path in paths}


class CustomStrategy(GenericStrategy):
    """The life of a custom object."""

    def __init__(
        self,
        resource: ResourceInfo,
        schema: Schema,
        storage_version: str,
        *,
        status: bool,
        selectable: Mapping[str, tuple[str, ...]],
    ) -> None:
        super().__init__(Rules(status=status, unconditional_update=False, fields=selectable))
        self._resource, self._schema, self._status = resource, schema, status
        self._storage = f"{resource.group}/{storage_version}"
        self._has_rules = has_rules(schema)

    def default(self, obj: Raw) -> None:
        """The defaults that the schema declares."""
        fill_defaults(obj, self._schema, envelope=True)

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Without status where that is a subresource, at generation 1."""
        if self._status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status; any change beside metadata and status is a new generation."""
        if self._status:
            keep(new, old, "status")
        metadata = new["metadata"]
        metadata["generation"] = old["metadata"].get("generation", 1)
        if _substance(new) != _substance(old):
            metadata["generation"] += 1

    def validate_create(self, obj: Raw) -> Sequence[FieldError]:
        """Kind and version, the schema, then the rules."""
        return list(self._errors(obj, None))

    def validate_update(self, new: Raw, old: Raw) -> Sequence[FieldError]:
        """The same; what was broken before and has not changed is let through."""
        return list(self._errors(new, old))

    def _errors(self, new: Raw, old: Raw | None) -> Iterator[FieldError]:
        resource = self._resource
        if new.get("kind") != resource.kind:
            yield invalid("kind", new.get("kind"), f"must be {resource.kind}")
        errors = check_object(new, self._schema)
        if errors and old is not None:
            before = {(error.field, error.type, str(error.value)) for error in check_object(old, self._schema)}
            errors = [error for error in errors if (error.field, error.type, str(error.value)) not in before]
        yield from errors
        if not self._has_rules:
            return
        if any(error.type in BLOCKING for error in errors):
            yield UNCHECKED
        else:
            yield from check_rules(new, old, self._schema)

    def to_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Under the storage version; nothing else differs."""
        return obj if obj["apiVersion"] == self._storage else {**obj, "apiVersion": self._storage}

    def selectable_fields(self, obj: Raw) -> Mapping[str, str]:
        """The fields the definition lists."""
        return {name: text_at(obj, path) for name, path in self.rules.fields.items()}


def _substance(obj: Raw) -> Raw:
    return {key: value for key, value in obj.items() if key not in _MAY_CHANGE}


class CustomStatusView:
    """`/status`: takes the status and nothing else."""

    body_kind: tuple[str, str, str] | None = None
    verbs = _READ_WRITE

    def __init__(self, strategy: CustomStrategy) -> None:
        self._strategy = strategy

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The whole object."""
        return parent

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The stored object with the body's status."""
        keep(parent, body, "status")
        if "managedFields" in body["metadata"]:
            parent["metadata"]["managedFields"] = body["metadata"]["managedFields"]
        return parent

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """The whole object against its schema."""
        return self._strategy.validate_update(new, old)


class CustomScaleView:
    """`/scale`: the replicas that a definition points at."""

    body_kind: tuple[str, str, str] | None = ("autoscaling", "v1", "Scale")
    verbs = _READ_WRITE

    def __init__(self, scale: Raw) -> None:
        self._spec = _path(scale["specReplicasPath"])
        self._status = _path(scale["statusReplicasPath"])
        self._selector = _path(scale.get("labelSelectorPath") or "")

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The Scale of an object."""
        metadata = parent["metadata"]
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        replicas, selector = _at(parent, self._spec), _at(parent, self._selector) if self._selector else None
        status: Raw = {"replicas": _at(parent, self._status) or 0}
        if selector:
            status["selector"] = selector
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": {"replicas": replicas} if replicas else {},
            "status": status,
        }

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The object with the Scale's replicas."""
        replicas = (body.get("spec") or {}).get("replicas") or 0
        if _at(parent, self._spec) != replicas:
            parent["metadata"]["generation"] = parent["metadata"].get("generation", 0) + 1
            place = parent
            for key in self._spec[:-1]:
                place = place.setdefault(key, {})
            place[self._spec[-1]] = replicas
        return parent

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """No negative replicas."""
        return non_negative((body.get("spec") or {}).get("replicas") or 0, "spec.replicas")


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.lstrip(".").split(".")) if text else ()


def _at(obj: object, path: tuple[str, ...]) -> object:
    for key in path:
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj
