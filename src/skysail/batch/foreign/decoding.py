"""Reading objects whose schema is somebody else's: only what is needed, and never an exception."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from skysail.api.raw import Raw
from skysail.batch.kinds.reading import Notes, Problem
from skysail.batch.model import specs

T = TypeVar("T", bound=msgspec.Struct)
Amount: TypeAlias = int | float | str
GroupReading: TypeAlias = tuple[specs.PodGroupSpec | None, list[Problem]]
"""A gang, or None when the object cannot be read, and what is wrong with it."""


def about(raw: Raw) -> str:
    """`Kind namespace/name` of an object, whatever else is wrong with it."""
    metadata = raw.get("metadata") or {}
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "?")
    return f"{raw.get('kind', 'object')} {namespace + '/' if namespace else ''}{name}"


def decode(raw: Raw, struct: type[T]) -> T | Problem:
    """The object, or what keeps it from being read."""
    try:
        return msgspec.convert(raw, struct, strict=False)
    except msgspec.ValidationError as error:
        return Problem(about(raw), str(error))


def read_one(raw: Raw, struct: type[T], read: Callable[[T, Notes], specs.PodGroupSpec]) -> GroupReading:
    """Decode and convert one gang."""
    obj = decode(raw, struct)
    if isinstance(obj, Problem):
        return None, [obj]
    notes = Notes(about(raw))
    return read(obj, notes), notes.problems
