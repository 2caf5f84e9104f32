"""Quantities that were written as numbers, given back as text: `cpu: 0.10` is read by its spelling, not as a float."""

from skysail.apiserver.decoding.diagnosis import spelling
from skysail.apiserver.schema import Shape, TypeInfo


def respell(value: object, info: TypeInfo) -> object:
    """A carefully parsed value in which every quantity is a string.

    Args:
        value: As `json_text.parse_careful` gives it; the type has been checked.
        info: Its type.
    """
    if info.form == "quantity":
        return value if value is None else spelling(value)
    if info.form != "" or not isinstance(value, dict):
        return value
    return {name: _field(item, info.fields.get(name), info) for name, item in value.items()}


def _field(value: object, shape: Shape | None, owner: TypeInfo) -> object:
    if shape is None or value is None:
        return value
    target = owner.target(shape)
    if target is not None:
        return respell(value, target)
    if shape.items is not None and isinstance(value, list):
        return [_field(item, shape.items, owner) for item in value]
    if shape.map is not None and isinstance(value, dict):
        return {name: _field(item, shape.map, owner) for name, item in value.items()}
    return value
