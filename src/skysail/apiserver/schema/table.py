"""The table of built-in resources and types, and what CRDs add to it while the server runs."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from skysail.apiserver.contract import ResourceInfo, SubresourceInfo
from skysail.apiserver.schema.types import TypeInfo, TypeTable

DATA = "kubernetes-1.36.json"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

# Kinds that every group version knows.
_META_KINDS = frozenset({"DeleteOptions", "Status"})

# The versions under which a few resources are stored when it is not the version asked for.
_STORED_AS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("autoscaling", "horizontalpodautoscalers"): ("autoscaling", "v2"),
    ("events.k8s.io", "events"): ("", "v1"),
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("apiextensions.k8s.io", "v1beta1"),
}


class _SubresourceRow(msgspec.Struct):
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class _ResourceRow(msgspec.Struct):
    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    singular: str
    subresources: dict[str, _SubresourceRow] = {}
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    served: bool = False

    def info(self) -> ResourceInfo:
        return ResourceInfo(
            group=self.group,
            version=self.version,
            resource=self.resource,
            kind=self.kind,
            namespaced=self.namespaced,
            verbs=self.verbs,
            subresources={
                name: SubresourceInfo(name=name, group=row.group, version=row.version, kind=row.kind, verbs=row.verbs)
                for name, row in self.subresources.items()
            },
            short_names=self.short_names,
            singular=self.singular,
            categories=self.categories,
        )


class _Data(msgspec.Struct):
    groups: tuple[tuple[str, str], ...]
    resources: tuple[_ResourceRow, ...]
    types: dict[str, TypeInfo]


class Schema:
    """Every resource and type the server knows.

    The built-in part never changes. `add` and `remove` keep the resources of CRDs; `generation` counts these changes,
    so that what is made from the table (discovery, OpenAPI) knows when to be made anew.

    Attributes:
        generation: Goes up with every `add` and `remove`.
        types: By definition name.
        builtin_versions: `(group, version)` in the order in which discovery lists them; ("", "v1") first.
        digest: Of the packaged data.
    """

    def __init__(self, data: _Data, digest: str = "") -> None:
        self.generation = 0
        self.digest = digest
        self.types = TypeTable(data.types)
        self.builtin_versions = data.groups
        self._known = {(row.group, row.version, row.resource): row for row in data.resources}
        self._resources = {key: row.info() for key, row in self._known.items() if row.served}
        self._custom: dict[tuple[str, str, str], ResourceInfo] = {}
        self._by_kind: dict[tuple[str, str, str], TypeInfo] = {}
        for info in self.types.values():
            for gvk in info.gvk:
                self._by_kind[gvk] = info
        for resource in self._resources.values():
            self._note_status(resource)

    def _note_status(self, resource: ResourceInfo) -> None:
        info = self._by_kind.get((resource.group, resource.version, resource.kind))
        if info is not None:
            info.status_apart = "status" in resource.subresources

    @property
    def resources(self) -> tuple[ResourceInfo, ...]:
        """Every served resource, the built-in ones first, then those of CRDs in the order they came."""
        return (*self._resources.values(), *self._custom.values())

    @property
    def builtin(self) -> tuple[ResourceInfo, ...]:
        """The built-in served resources."""
        return tuple(self._resources.values())

    @property
    def custom(self) -> tuple[ResourceInfo, ...]:
        """The resources that CRDs define."""
        return tuple(self._custom.values())

    def resource(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        """The served resource of that name, or None."""
        key = (group, version, plural)
        return self._resources.get(key) or self._custom.get(key)

    def serves(self, group: str, version: str) -> bool:
        """Whether any resource is served under that group version."""
        return (group, version) in self.builtin_versions or any(key[:2] == (group, version) for key in self._custom)

    def type_of(self, group: str, version: str, kind: str) -> TypeInfo | None:
        """The type of a kind's body, or None when no such kind is known."""
        if kind in _META_KINDS and version:
            return self.types[META + kind]
        return self._by_kind.get((group, version, kind))

    def versions_of_kind(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions under which a kind is known."""
        return tuple(v for g, v, k in self._by_kind if (g, k) == (group, kind))

    def add(self, resource: ResourceInfo, types: Mapping[str, TypeInfo], root: str) -> None:
        """Serve a CRD's resource in one version.

        Args:
            resource: Its row; replaces a former one of the same group, version and plural.
            types: The types of its body by name; merged into the table.
            root: Which of them is the body.
        """
        self.remove(resource)
        self._custom[resource.group, resource.version, resource.resource] = resource
        for name, info in types.items():
            info.name, info.types = name, self.types
            self.types[name] = info
        self._by_kind[resource.group, resource.version, resource.kind] = self.types[root]
        self._note_status(resource)
        self.types.forget()
        self.generation += 1

    def remove(self, resource: ResourceInfo) -> None:
        """Serve a CRD's resource no longer; nothing happens when it was not served."""
        known = self._custom.pop((resource.group, resource.version, resource.resource), None)
        if known is None:
            return
        root = self._by_kind.pop((known.group, known.version, known.kind), None)
        if root is not None:
            for name in [name for name in self.types if name == root.name or name.startswith(root.name + "/")]:
                del self.types[name]
        self.types.forget()
        self.generation += 1


def storage_version_hash(resource: ResourceInfo) -> str:
    """What legacy discovery shows so that clients notice a change of the stored version; "" for virtual resources."""
    if "list" not in resource.verbs or "update" not in resource.verbs:
        return ""
    group, version = _STORED_AS.get((resource.group, resource.resource), (resource.group, resource.version))
    digest = hashlib.sha256(f"{group}/{version}/{resource.kind}".encode()).digest()
    return base64.standard_b64encode(digest[:8]).decode()


@cache
def _packaged() -> tuple[bytes, str]:
    """The data, and its digest."""
    data = files("skysail.apiserver.schema").joinpath("data", DATA).read_bytes()
    return data, hashlib.sha256(data).hexdigest()


def load(enable: Iterable[tuple[str, str]] = ()) -> Schema:
    """The table of Kubernetes 1.36, fresh for one server.

    Args:
        enable: Group versions to serve beyond the default ones, e.g. `("resource.k8s.io", "v1beta1")`.

    Cost: about 10 ms.
    """
    text, digest = _packaged()
    data = msgspec.json.decode(text, type=_Data)
    wanted = set(enable)
    for row in data.resources:
        row.served = row.served or (row.group, row.version) in wanted
    extra = tuple(
        dict.fromkeys((row.group, row.version) for row in data.resources if (row.group, row.version) in wanted)
    )
    data.groups = (*data.groups, *(pair for pair in extra if pair not in data.groups))
    return Schema(data, digest)
