"""What a kind's wire form looks like: fields, their types, and every rule that hangs on a field.

A `TypeInfo` is one named message (Pod, PodSpec, ...). A `FieldInfo` is one of its fields: a `Shape` (what values look
like) with the rules of strategic merge (`patch_*`), of server-side apply (`list_*`, `map_type`), of encoding (`omit`,
`pointer`) and its protobuf number. Shapes name other types by `ref`; `TypeInfo.target` follows it.

A type's `form` says when a value is not an ordinary object of fields:

    ""                 fields as listed
    quantity, time, microtime, intstr      scalars with a spelling of their own
    raw                any JSON value, kept as it is (RawExtension, FieldsV1, ...)
    empty              an object without fields
    schema-or-array, schema-or-bool, schema-or-strings     the unions inside a CRD's JSON schema
"""

from collections.abc import Callable
from typing import Literal, TypeVar, cast

import msgspec

Form = Literal[
    "", "quantity", "time", "microtime", "intstr", "raw", "empty", "schema-or-array", "schema-or-bool",
    "schema-or-strings",
]  # fmt: skip
Omit = Literal["", "empty", "zero"]
Made = TypeVar("Made")


class Shape(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What values look like.

    Attributes:
        type: A JSON type (`string integer number boolean object array`), or "" when `ref` says it all.
        format: Of integers and numbers the width, of strings `byte`.
        ref: The name of another type.
        items: The shape of a list's items.
        map: The shape of a string-keyed map's values.
    """

    type: str = ""
    format: str = ""
    ref: str = ""
    items: "Shape | None" = None
    map: "Shape | None" = None


class FieldInfo(Shape, omit_defaults=True, kw_only=True):
    """One field of a type.

    Attributes:
        required: The schema says it must be there.
        default: What the schema declares (None: nothing); used for the keys of list items.
        enum: Allowed values, where the schema lists them.
        patch_strategy: Of `merge`, `replace`, `retainKeys`.
        patch_merge_key: By which key strategic merge pairs the items of a list.
        list_type: `atomic`, `set`, `map` or "" (atomic).
        list_map_keys: Which keys together name an item of a `map` list.
        map_type: `atomic` or "" (granular).
        go: The Go type without its pointer, as decoding errors print it.
        pointer: Absent differs from zero.
        omit: When the server leaves the field out: never (""), when `empty`, or when `zero` (structs too).
        number: In protobuf; 0 when the field lies in an inline message (see `TypeInfo.inline`).
    """

    required: bool = False
    default: object = None
    enum: tuple[object, ...] = ()
    patch_strategy: tuple[str, ...] = ()
    patch_merge_key: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    go: str = ""
    pointer: bool = False
    omit: Omit = ""
    number: int = 0


class TypeInfo(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One named type.

    Attributes:
        name: As in the published OpenAPI: `io.k8s.api.core.v1.Pod`.
        go: As Go prints it: `v1.Pod`.
        fields: By wire name, in the order in which the server writes them.
        form: See the module.
        map_type: `atomic` when apply must own it whole.
        gvk: The kinds of which this is the body.
        inline: Protobuf numbers of messages whose fields belong to this one.
        message_only: Exists only in protobuf.
        preserve_unknown: Fields beyond `fields` are kept (custom types).
        custom: Made from a CRD's schema: absent and empty are told apart, nothing is left out on output.
        status_apart: The kind's objects have a status subresource, so the object itself does not take `status`.
        json_schema: Of a custom kind's root: the schema as the CRD states it, for OpenAPI.
        types: The table this type belongs to.
    """

    name: str = ""
    go: str = ""
    fields: dict[str, FieldInfo] = {}
    form: Form = ""
    map_type: str = ""
    gvk: tuple[tuple[str, str, str], ...] = ()
    inline: dict[str, str] = {}
    message_only: bool = False
    preserve_unknown: bool = False
    custom: bool = False
    status_apart: bool = False
    json_schema: dict[str, object] = {}
    types: dict[str, "TypeInfo"] = {}

    def target(self, shape: Shape | None) -> "TypeInfo | None":
        """The type that a shape refers to, or None when it refers to none."""
        return self.types.get(shape.ref) if shape is not None and shape.ref else None


class TypeTable(dict[str, TypeInfo]):
    """All types by name, and what was compiled from them.

    `made` keeps one thing a key (the readers, the apply schemas, ...) until `forget` is called because types changed.
    """

    def __init__(self, types: dict[str, TypeInfo]) -> None:
        super().__init__(types)
        self._made: dict[str, object] = {}
        for name, info in types.items():
            info.name, info.types = name, self

    def made(self, key: str, make: Callable[[], Made]) -> Made:
        """What `make` made under that key, made now if it was not yet."""
        if key not in self._made:
            self._made[key] = make()
        return cast("Made", self._made[key])

    def forget(self) -> None:
        """Types changed: everything is made anew when next asked for."""
        self._made.clear()


def made_from(info: TypeInfo, key: str, make: Callable[[], Made]) -> Made:
    """What is kept under a key with the table that a type belongs to; for a type without a table, made each time."""
    return info.types.made(key, make) if isinstance(info.types, TypeTable) else make()
