"""The order in which the server writes fields, for where a whole document is shown."""

from typing import cast

from skysail.api.raw import Raw
from skysail.apiserver.schema import Shape, TypeInfo

Value = object


def canonical(obj: Raw, info: TypeInfo) -> Raw:
    """The same object with its fields in the order in which the server writes them; unknown ones sorted behind."""
    return cast("Raw", _ordered(obj, info))


def _ordered(value: Value, info: TypeInfo) -> Value:
    if not isinstance(value, dict) or info.form not in ("", "empty"):
        return value
    known = {name: _ordered_field(value[name], field, info) for name, field in info.fields.items() if name in value}
    return known | {name: value[name] for name in sorted(value) if name not in known}


def _ordered_field(value: Value, shape: Shape, owner: TypeInfo) -> Value:
    target = owner.target(shape)
    if target is not None:
        return _ordered(value, target)
    if shape.items is not None and isinstance(value, list):
        return [_ordered_field(item, shape.items, owner) for item in value]
    if shape.map is not None and isinstance(value, dict):
        return {name: _ordered_field(value[name], shape.map, owner) for name in sorted(value)}
    return value
