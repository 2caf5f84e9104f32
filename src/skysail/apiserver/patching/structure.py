"""A type as structured merging sees it: what is one atom, what merges field by field, and what names a list's items.

    Leaf       a scalar; owned whole
    Mapping    an object or a map: `fields` by name, then `values` for other keys; atomic ones are owned whole
    Listing    a list: atomic, a set of scalars, or keyed by fields of its items
    Deduced    any JSON (RawExtension, unknown fields of custom resources): maps merge by key, lists are atomic

Source: sigs.k8s.io/structured-merge-diff v6 `schema`; kube-openapi `schemaconv`.
"""

from dataclasses import dataclass
from typing import Union

from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo, made_from

Node = Union["Leaf", "Mapping", "Listing", "Deduced"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar.

    Attributes:
        kind: string, numeric, boolean, or untyped for any scalar.
    """

    kind: str = "untyped"


@dataclass(frozen=True, slots=True)
class Deduced:
    """Any JSON value; its own shape says how it merges."""


class Mapping:
    """An object of fields, or a map of values."""

    __slots__ = ("_fields", "_made", "_nodes", "_owner", "atomic", "values")

    def __init__(self, nodes: "Structure", owner: TypeInfo, *, atomic: bool, values: Node | None) -> None:
        self._nodes, self._owner = nodes, owner
        self._fields = owner.fields if values is None or isinstance(values, Deduced) else {}
        self._made: dict[str, Node] = {}
        self.atomic, self.values = atomic, values

    def declares(self, name: str) -> bool:
        """Whether it is a field, and not just a key of a map."""
        return name in self._fields

    def field(self, name: str) -> Node | None:
        """What lies under a name; None when it may not be there."""
        node = self._made.get(name)
        if node is None:
            if name not in self._fields:
                return self.values
            node = self._made[name] = self._nodes.of_field(self._fields[name], self._owner)
        return node

    def default(self, name: str) -> object:
        """The declared default of a field."""
        field = self._fields.get(name)
        return None if field is None else field.default


@dataclass(frozen=True, slots=True)
class Listing:
    """A list.

    Attributes:
        items: What its items are.
        keys: Which fields name an item; empty for a set.
        atomic: Owned whole.
    """

    items: Node
    keys: tuple[str, ...] = ()
    atomic: bool = True


class Structure:
    """The nodes of one table of types, made when first met."""

    def __init__(self) -> None:
        self._types: dict[str, Node] = {}

    def of_type(self, info: TypeInfo) -> Node:
        """The node of a named type."""
        node = self._types.get(info.name)
        if node is None:
            node = self._types[info.name] = self._make(info)
        return node

    def _make(self, info: TypeInfo) -> Node:
        if info.form in ("quantity", "time", "microtime", "intstr"):
            return Leaf()
        if info.form not in ("", "empty"):
            return Deduced()
        values: Node | None = Deduced() if info.preserve_unknown or info.form == "empty" else None
        return Mapping(self, info, atomic=info.map_type == "atomic", values=values)

    def of_field(self, field: FieldInfo, owner: TypeInfo) -> Node:
        """The node of a field: its own list and map rules first, then those of the type it refers to."""
        if field.items is not None:
            items = self.of_shape(field.items, owner)
            if field.list_type == "map":
                return Listing(items, field.list_map_keys, atomic=False)
            return Listing(items, atomic=field.list_type != "set")
        if field.map is not None:
            return Mapping(self, owner, atomic=field.map_type == "atomic", values=self.of_shape(field.map, owner))
        target = owner.target(field)
        if target is not None and field.map_type == "atomic" and target.form in ("", "empty"):
            return Mapping(self, target, atomic=True, values=None)
        return self.of_shape(field, owner)

    def of_shape(self, shape: Shape, owner: TypeInfo) -> Node:
        """The node of an item, of a map's value, or of a plain field."""
        target = owner.target(shape)
        if target is not None:
            return self.of_type(target)
        if isinstance(shape, FieldInfo) and (shape.items is not None or shape.map is not None):
            return self.of_field(shape, owner)
        if shape.items is not None:
            return Listing(self.of_shape(shape.items, owner))
        if shape.map is not None:
            return Mapping(self, owner, atomic=False, values=self.of_shape(shape.map, owner))
        kinds = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
        if shape.type in kinds:
            return Leaf(kinds[shape.type])
        return Leaf() if shape.type == "int-or-string" else Deduced()


def structure_of(info: TypeInfo) -> Node:
    """The node of a type, kept with its table."""
    return made_from(info, "structure", Structure).of_type(info)
