"""Kinds of one's own: a Struct that says where it lives, and the CustomResourceDefinition made of it.

    class Backup(ApiObject, frozen=True, gc=False):
        '''A backup that is made regularly.'''

        resource: ClassVar = CustomResource("example.com", "v1", "backups", short_names=("bk",))
        spec: BackupSpec = BackupSpec()
        status: BackupStatus = BackupStatus()

    BACKUPS = custom_kind(Backup)            # for watches and the client
    manifest = definition_of(Backup)         # what `skysail crd gen module:Backup` prints

The schema comes from the annotations (see `schema`); a `status` field makes the status subresource.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1, v1.36.
"""

from dataclasses import dataclass
from typing import TypeVar

from skysail.api.errors import ConfigError
from skysail.api.kinds import Kind
from skysail.api.meta import ApiObject
from skysail.api.raw import Raw
from skysail.controller.customresources.schema import schema_of_object

T = TypeVar("T", bound=ApiObject)


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`.

    Attributes:
        name: Its head.
        json_path: Where the value stands, e.g. `.spec.schedule`.
        type: `string`, `integer`, `number`, `boolean` or `date`.
        priority: 0 is always shown, higher ones with `-o wide`.
        description: For `kubectl explain`.
    """

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""

    def as_raw(self) -> Raw:
        """Wire form."""
        raw: Raw = {"name": self.name, "type": self.type, "jsonPath": self.json_path}
        if self.priority:
            raw["priority"] = self.priority
        if self.description:
            raw["description"] = self.description
        return raw


@dataclass(frozen=True)
class ScalePaths:
    """Where `kubectl scale` and autoscalers find the number of replicas.

    Attributes:
        spec_replicas: The wanted number.
        status_replicas: The number there is.
        selector: The label selector in wire form; empty for none.
    """

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""

    def as_raw(self) -> Raw:
        """Wire form."""
        raw: Raw = {"specReplicasPath": self.spec_replicas, "statusReplicasPath": self.status_replicas}
        if self.selector:
            raw["labelSelectorPath"] = self.selector
        return raw


@dataclass(frozen=True)
class CustomResource:
    """Where objects of a Struct live; the value of its class variable `resource`.

    Attributes:
        group: API group with a dot in it.
        version: API version.
        plural: The resource in URLs.
        namespaced: Whether objects live in namespaces.
        kind: The kind; the Struct's name when empty.
        singular: What people type for one; the kind in lower case when empty.
        short_names: What people type less.
        categories: Groups of resources, e.g. `all`.
        columns: Of `kubectl get`; its age is always the last.
        scale: The scale subresource.
    """

    group: str
    version: str
    plural: str
    namespaced: bool = True
    kind: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: ScalePaths | None = None


def resource_of(struct: type[ApiObject]) -> CustomResource:
    """Where a Struct's objects live.

    Raises:
        ConfigError: It does not say.
    """
    resource = getattr(struct, "resource", None)
    if not isinstance(resource, CustomResource):
        raise ConfigError(f"{struct.__name__} needs a class variable: resource: ClassVar = CustomResource(...)")
    if "." not in resource.group:
        raise ConfigError(f"{resource.group!r} is no group of custom resources: it needs a dot", path="group")
    return resource


def custom_kind(struct: type[T]) -> Kind[T]:
    """The kind descriptor of a Struct of one's own.

    Raises:
        ConfigError: The Struct does not say where it lives.
    """
    where = resource_of(struct)
    name = where.kind or struct.__name__
    return Kind(where.group, where.version, name, where.plural, where.namespaced, struct, _subresources(struct, where))


def definition_of(struct: type[ApiObject]) -> Raw:
    """The CustomResourceDefinition of a Struct.

    Raises:
        ConfigError: The Struct does not say where it lives, or has a field that no structural schema can describe.
    """
    where = resource_of(struct)
    kind = where.kind or struct.__name__
    names: Raw = {"kind": kind, "listKind": f"{kind}List", "plural": where.plural}
    names["singular"] = where.singular or kind.lower()
    if where.short_names:
        names["shortNames"] = list(where.short_names)
    if where.categories:
        names["categories"] = list(where.categories)
    version: Raw = {
        "name": where.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of_object(struct)},
    }
    subresources = _subresources(struct, where)
    if subresources:
        version["subresources"] = {name: {} for name in subresources}
        if where.scale is not None:
            version["subresources"]["scale"] = where.scale.as_raw()
    age = Column("Age", ".metadata.creationTimestamp", "date")
    version["additionalPrinterColumns"] = [column.as_raw() for column in (*where.columns, age)]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{where.plural}.{where.group}"},
        "spec": {
            "group": where.group,
            "names": names,
            "scope": "Namespaced" if where.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _subresources(struct: type[ApiObject], where: CustomResource) -> tuple[str, ...]:
    status = ("status",) if "status" in struct.__struct_fields__ else ()
    return (*status, "scale") if where.scale is not None else status
