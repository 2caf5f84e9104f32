"""Zero values as the server writes them: what an object holds before anybody set anything.

Go's structs are never absent: a Pod always has a `status`, a condition a `lastTransitionTime` (null), a container its
`resources`. `always_written` says which fields those are, `zero_of` what stands in them.
"""

from collections.abc import Callable, Iterator
from typing import cast

from skysail.api.raw import Raw
from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo, made_from

Value = object


def always_written(field: FieldInfo, owner: TypeInfo) -> bool:
    """Whether the server writes a field out even when nobody set it."""
    if field.omit == "zero" or field.pointer:
        return field.omit == ""
    if field.omit == "empty":
        return owner.target(field) is not None and not _is_nilable(owner.target(field))
    return True


def _is_nilable(target: TypeInfo | None) -> bool:
    """FieldsV1 and the like are always behind pointers; only they are left out when absent."""
    return target is not None and target.name.endswith((".FieldsV1", ".Patch"))


def zero_of(shape: Shape, owner: TypeInfo, *, nil: bool = False) -> Callable[[], Value]:
    """A maker of Go's zero value as JSON: `""`, 0, `{}`, `null` for a slice or a map (or a pointer when `nil`)."""
    if nil and isinstance(shape, FieldInfo) and shape.pointer:
        return _none
    target = owner.target(shape)
    if target is not None:
        return _zero_of_type(target)
    if shape.items is not None or shape.map is not None or shape.format == "byte":
        return _none
    return {"string": str, "integer": int, "number": int, "boolean": bool}.get(shape.type, _none)


def _zero_of_type(info: TypeInfo) -> Callable[[], Value]:
    if info.form == "quantity":
        return lambda: "0"
    if info.form == "intstr":
        return int
    if info.form not in ("", "empty"):
        return _none
    made: list[tuple[str, Callable[[], Value]]] | None = None

    def make() -> Value:
        nonlocal made
        if made is None:
            made = [(n, zero_of(f, info, nil=True)) for n, f in info.fields.items() if always_written(f, info)]
        return {name: zero() for name, zero in made}

    return make


def _none() -> None:
    return None


def zero_object(info: TypeInfo) -> Raw:
    """The empty object of a type as the server holds it: `{"metadata": {}, "spec": {...}, "status": {}}`."""
    return cast("Raw", _zero_of_type(info)())


def forget_empty_lists(obj: Raw, info: TypeInfo) -> None:
    """What storing does to required lists that are there but empty: they come back as null. Alters in place.

    Lists inside other lists' items are left as they are.
    """
    for path in made_from(info, "empty lists", _RequiredLists).of_type(info):
        here: object = obj
        for name in path[:-1]:
            here = here.get(name) if isinstance(here, dict) else None
        if isinstance(here, dict) and path[-1] in here and not here[path[-1]]:
            here[path[-1]] = None


class _RequiredLists:
    """The paths of always-written lists and maps of each type, through structs alone."""

    def __init__(self) -> None:
        self._paths: dict[str, tuple[tuple[str, ...], ...]] = {}

    def of_type(self, info: TypeInfo) -> tuple[tuple[str, ...], ...]:
        if info.name not in self._paths:
            self._paths[info.name] = ()
            self._paths[info.name] = tuple(self._find(info))
        return self._paths[info.name]

    def _find(self, info: TypeInfo) -> Iterator[tuple[str, ...]]:
        for name, field in () if info.custom else info.fields.items():
            target = info.target(field)
            if target is not None and not field.pointer:
                yield from ((name, *rest) for rest in self.of_type(target))
            elif field.type in ("array", "object") and not field.pointer and field.omit == "":
                yield (name,)
