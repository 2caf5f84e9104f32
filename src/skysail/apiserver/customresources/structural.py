"""A structural schema, compiled once per version of a definition.

`Schema` is one node: what its value may be, and the nodes below. Pruning drops what no node names; defaulting fills in
what a node declares, deepest last; `type_table` gives the same knowledge to server-side apply.

Source: apiextensions-apiserver/pkg/apiserver/schema/{structural,pruning,defaulting}, v1.36.
"""

import copy
from collections.abc import Iterator, Mapping

from skysail.api.raw import Raw
from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_ENVELOPE = ("apiVersion", "kind", "metadata")
_NOTHING: Mapping[str, "Schema"] = {}


class Schema:
    """One node of a structural schema.

    Attributes:
        raw: The node as it stands in the definition.
        types: Allowed JSON types; two for int-or-string, none when anything goes.
        additional: The node of values under other keys; True when any value may stand there.
        preserve: Keys that no node names are kept.
        embedded: The value is a whole object: apiVersion, kind and metadata belong to it.
    """

    __slots__ = (
        "additional", "embedded", "has_default", "items", "nullable", "preserve", "properties", "raw", "required",
        "types",
    )  # fmt: skip

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        declared = raw.get("type", "")
        int_or_string = bool(raw.get("x-kubernetes-int-or-string"))
        self.types: tuple[str, ...] = ("integer", "string") if int_or_string else (declared,) if declared else ()
        self.nullable = bool(raw.get("nullable"))
        self.preserve = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        self.required: tuple[str, ...] = tuple(raw.get("required") or ())
        self.has_default = "default" in raw
        properties = raw.get("properties")
        self.properties = {name: Schema(node) for name, node in properties.items()} if properties else _NOTHING
        items, additional = raw.get("items"), raw.get("additionalProperties")
        self.items = Schema(items) if isinstance(items, dict) else None
        self.additional: Schema | bool = Schema(additional) if isinstance(additional, dict) else bool(additional)

    def child(self, key: str) -> "Schema | bool":
        """The node under a key; True when anything may stand there, False when nothing may."""
        return self.properties.get(key) or self.additional or self.preserve

    def walk(self, path: str = "") -> Iterator[tuple[str, "Schema"]]:
        """This node and all below, with their paths in the definition's own notation."""
        yield path, self
        for name, node in self.properties.items():
            yield from node.walk(f"{path}.properties[{name}]")
        if self.items is not None:
            yield from self.items.walk(f"{path}.items")
        if isinstance(self.additional, Schema):
            yield from self.additional.walk(f"{path}.additionalProperties")


def prune(obj: Raw, schema: Schema) -> list[str]:
    """Drop from a whole object what its schema does not name; the paths of what went, sorted."""
    unknown: list[str] = []
    _prune_object(obj, schema, "", unknown, envelope=True)
    return sorted(unknown)


def _prune(value: object, schema: Schema | bool, path: str, unknown: list[str]) -> None:
    if isinstance(schema, bool):
        return
    if isinstance(value, dict):
        _prune_object(value, schema, path, unknown, envelope=schema.embedded)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, schema.items or schema.preserve, f"{path}[{index}]", unknown)


def _prune_object(obj: Raw, schema: Schema, path: str, unknown: list[str], *, envelope: bool) -> None:
    for key in list(obj):
        if envelope and key in _ENVELOPE:
            continue
        below, node = f"{path}.{key}" if path else key, schema.child(key)
        if node is False:
            del obj[key]
            unknown.append(below)
        else:
            _prune(obj[key], node, below, unknown)


def fill_defaults(value: object, schema: Schema | bool, *, envelope: bool = False) -> None:
    """Fill in declared defaults; a null where none may stand gives way to the default, or goes."""
    if isinstance(schema, bool):
        return
    if isinstance(value, list):
        for item in value:
            fill_defaults(item, schema.items or False)
    if not isinstance(value, dict):
        return
    for name, node in schema.properties.items():
        if envelope and name in _ENVELOPE:
            continue
        if name in value and value[name] is None and not node.nullable:
            del value[name]
        if node.has_default and name not in value:
            value[name] = copy.deepcopy(node.raw["default"])
        if name in value:
            fill_defaults(value[name], node)
    if isinstance(schema.additional, Schema):
        for key, item in value.items():
            if key not in schema.properties:
                fill_defaults(item, schema.additional)


def type_table(schema: Schema, root: str, kind: tuple[str, str, str]) -> dict[str, TypeInfo]:
    """The types of a custom kind, for apply, managed fields and OpenAPI.

    Args:
        schema: Of the version.
        root: Name of the type of whole objects; those below are called `root/path`.
        kind: Group, version and kind.
    """
    table: dict[str, TypeInfo] = {}
    whole = _object_type(schema, root, table)
    whole.gvk = (kind,)
    whole.go = f"{kind[1]}.{kind[2]}"
    whole.json_schema = schema.raw
    for name in ("apiVersion", "kind"):
        whole.fields[name] = FieldInfo(type="string", go="string", omit="empty")
    whole.fields["metadata"] = FieldInfo(ref=OBJECT_META, go="v1.ObjectMeta", omit="empty")
    return table


def _object_type(schema: Schema, name: str, table: dict[str, TypeInfo]) -> TypeInfo:
    info = TypeInfo(
        name=name,
        go=name.rpartition("/")[2],
        custom=True,
        preserve_unknown=schema.preserve or schema.additional is True,
        map_type=schema.raw.get("x-kubernetes-map-type", "").replace("granular", ""),
    )
    table[name] = info
    for key, node in schema.properties.items():
        info.fields[key] = _field(node, f"{name}/{key}", key in schema.required, table)
    return info


def _field(schema: Schema, name: str, required: bool, table: dict[str, TypeInfo]) -> FieldInfo:
    shape = _shape(schema, name, table)
    raw = schema.raw
    return FieldInfo(
        type=shape.type,
        format=shape.format,
        ref=shape.ref,
        items=shape.items,
        map=shape.map,
        required=required,
        default=raw.get("default"),
        enum=tuple(raw.get("enum") or ()),
        list_type=raw.get("x-kubernetes-list-type", ""),
        list_map_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        map_type=raw.get("x-kubernetes-map-type", "").replace("granular", ""),
        pointer=True,
        omit="empty",
    )


def _shape(schema: Schema, name: str, table: dict[str, TypeInfo]) -> Shape:
    kind = schema.types[0] if len(schema.types) == 1 else ""
    if kind == "object" and isinstance(schema.additional, Schema):
        return Shape(type="object", map=_shape(schema.additional, f"{name}/*", table))
    if kind == "object" and (schema.properties or not schema.preserve) and schema.additional is False:
        _object_type(schema, name, table)
        return Shape(ref=name)
    if kind == "array" and schema.items is not None:
        return Shape(type="array", items=_shape(schema.items, f"{name}/[]", table))
    if kind in ("string", "boolean"):
        return Shape(type=kind)
    if kind in ("integer", "number"):
        return Shape(type=kind, format=schema.raw.get("format", ""))
    return Shape()
