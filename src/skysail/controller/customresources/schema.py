"""From annotated Structs to the structural schemas of CustomResourceDefinitions.

| annotation                                        | schema                                              |
| ------------------------------------------------- | --------------------------------------------------- |
| `str`, `int`, `float`, `bool`, `datetime`         | string, integer, number, boolean, date-time         |
| `tuple[T, ...]`, `list[T]`                        | array of T                                          |
| `Mapping[str, T]`                                 | object whose values are T                           |
| a Struct                                          | object; fields without a default are required       |
| `Literal[...]`, an `Enum`                         | enum                                                |
| `Optional[T]`                                     | T, optional                                         |
| `Union[int, str]`                                 | int-or-string                                       |
| `Raw`, `Any`, `msgspec.Raw`                       | anything; unknown fields are kept                   |
| `Annotated[T, msgspec.Meta(ge=1, pattern=...)]`   | T with minimum, pattern, ...                        |
| the same with `list_map`, `list_set`, `rule`      | Kubernetes' own markers                             |

Descriptions come from docstrings: the first paragraph for a Struct, the `Attributes:` section for its fields. Defaults
are those of the fields, as the server fills them in.
"""

import inspect
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec import inspect as types

from skysail.api.errors import ConfigError
from skysail.api.meta import ApiObject
from skysail.api.raw import Raw

_ANYTHING: Raw = {"x-kubernetes-preserve-unknown-fields": True}
_CONSTRAINTS = {"ge": "minimum", "le": "maximum", "multiple_of": "multipleOf", "pattern": "pattern"}
_LENGTHS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def list_map(*keys: str) -> msgspec.Meta:
    """A list whose items are told apart by these fields, so that appliers can own single items."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def list_set() -> msgspec.Meta:
    """A list in which no value occurs twice."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "set"})


def rule(expression: str, message: str = "") -> msgspec.Meta:
    """A CEL rule that the server checks, e.g. `rule("self == oldSelf", "is immutable")`."""
    found = {"rule": expression} | ({"message": message} if message else {})
    return msgspec.Meta(extra_json_schema={"x-kubernetes-validations": [found]})


def schema_of_object(struct: type[ApiObject]) -> Raw:
    """The schema of a whole object: its own fields beside apiVersion, kind and metadata.

    Raises:
        ConfigError: A field cannot be described by a structural schema.
    """
    schema = _of_struct(types.type_info(struct), (), skip=ApiObject.__struct_fields__)  # type: ignore[arg-type]
    common = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema["properties"] = common | schema.get("properties", {})
    for name in ("spec", "status"):
        schema["properties"].get(name, {}).pop("default", None)
    return schema


def summary_of(struct: type) -> str:
    """The first paragraph of a type's docstring, on one line."""
    return " ".join(inspect.cleandoc(struct.__doc__ or "").partition("\n\n")[0].split())


def _of_struct(info: types.StructType, path: tuple[str, ...], skip: tuple[str, ...] = ()) -> Raw:
    name = info.cls.__name__
    if name in path:
        raise ConfigError(f"{name} contains itself: a structural schema cannot", path=".".join((*path, name)))
    described = _attributes(info.cls)
    properties: Raw = {}
    required = []
    for field in info.fields:
        if field.name in skip:
            continue
        schema = _of(field.type, (*path, name, field.name))
        text = described.get(field.name)
        if text and "description" not in schema:
            schema = {"description": text} | schema
        if field.required:
            required.append(field.encode_name)
        else:
            _add_default(schema, field)
        properties[field.encode_name] = schema
    result: Raw = {"type": "object"}
    if summary := summary_of(info.cls):
        result = {"description": summary} | result
    if properties:
        result["properties"] = properties
    if required:
        result["required"] = required
    return result


def _add_default(schema: Raw, field: types.Field) -> None:
    """What the server fills in: the field's default, unless that is the zero value, which absence means anyway."""
    default = field.default
    if default is msgspec.NODEFAULT:
        default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else None
    if default is None or isinstance(default, msgspec.Raw):
        return
    raw = msgspec.to_builtins(default.value if isinstance(default, Enum) else default)
    nested = any("default" in each for each in schema.get("properties", {}).values())
    if raw or nested:
        schema["default"] = raw


def _of(info: types.Type, path: tuple[str, ...]) -> Raw:
    match info:
        case types.Metadata():
            return _marked(_of(info.type, path), info.extra_json_schema or {})
        case types.StructType():
            return _of_struct(info, path[:-1])
        case types.UnionType():
            return _of_union(info, path)
        case types.ListType() | types.VarTupleType() | types.SetType() | types.FrozenSetType():
            return _bounded({"type": "array", "items": _of(info.item_type, path)}, info)
        case types.DictType():
            return _of_mapping(info, path)
        case types.LiteralType():
            return _of_values(info.values)
        case types.EnumType():
            return _of_values(tuple(member.value for member in info.cls))
        case types.AnyType() | types.RawType():
            return dict(_ANYTHING)
        case _:
            return _of_scalar(info, path)


def _marked(schema: Raw, extra: Raw) -> Raw:
    """Add what `msgspec.Meta` says beside constraints; the keys of a list map must be there in every item."""
    keys = extra.get("x-kubernetes-list-map-keys", [])
    if keys:
        items = schema["items"]
        items["required"] = [*items.get("required", []), *(key for key in keys if key not in items.get("required", []))]
    return schema | extra


def _of_scalar(info: types.Type, path: tuple[str, ...]) -> Raw:
    match info:
        case types.BoolType():
            return {"type": "boolean"}
        case types.IntType():
            return _bounded({"type": "integer", "format": "int64"}, info)
        case types.FloatType():
            return _bounded({"type": "number"}, info)
        case types.StrType():
            return _bounded({"type": "string"}, info)
        case types.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case types.BytesType():
            return {"type": "string", "format": "byte"}
    raise ConfigError(f"no structural schema can describe {type(info).__name__}", path=".".join(path))


def _of_mapping(info: types.DictType, path: tuple[str, ...]) -> Raw:
    if isinstance(info.value_type, types.AnyType):
        return {"type": "object"} | _ANYTHING
    return _bounded({"type": "object", "additionalProperties": _of(info.value_type, path)}, info)


def _of_union(info: types.UnionType, path: tuple[str, ...]) -> Raw:
    members = [each for each in info.types if not isinstance(each, types.NoneType)]
    if len(members) == 1:
        return _of(members[0], path)
    if {type(each) for each in members} == {types.IntType, types.StrType}:
        return {"x-kubernetes-int-or-string": True}
    raise ConfigError("a field may have one type, or be int | str", path=".".join(path))


def _of_values(values: tuple[Any, ...]) -> Raw:
    kind = "string" if all(isinstance(value, str) for value in values) else "integer"
    return {"type": kind, "enum": list(values)}


def _bounded(schema: Raw, info: types.Type) -> Raw:
    """Add the constraints of `msgspec.Meta`."""
    for attribute, name in _CONSTRAINTS.items():
        if (value := getattr(info, attribute, None)) is not None:
            schema[name] = value
    for attribute, name in (("gt", "minimum"), ("lt", "maximum")):
        if (value := getattr(info, attribute, None)) is not None:
            schema[name] = value
            schema[f"exclusive{name.capitalize()}"] = True
    for attribute, name in zip(("min_length", "max_length"), _LENGTHS.get(schema["type"], ()), strict=False):
        if (value := getattr(info, attribute, None)) is not None:
            schema[name] = value
    return schema


def _attributes(struct: type) -> Mapping[str, str]:
    """The `Attributes:` section of a Google docstring, by field."""
    found: dict[str, str] = {}
    name = ""
    _, _, section = inspect.cleandoc(struct.__doc__ or "").partition("Attributes:\n")
    for line in section.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or indent == 0:
            break
        if indent == 4 and ":" in line:
            name, _, text = line.strip().partition(":")
            found[name] = text.strip()
        elif name:
            found[name] += f" {line.strip()}"
    return found
