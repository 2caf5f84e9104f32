"""Sets of paths into an object, and their wire form `fieldsV1`.

A path is a chain of elements, written as on the wire: `f:name` a field, `k:{"name":"c"}` an item of a keyed list,
`v:"x"` an item of a set. A `FieldSet` is a tree: an element may be a *member* (the path up to it is in the set), have
*children* (longer paths), or both; on the wire the member among children is `"."`.

Source: sigs.k8s.io/structured-merge-diff v6 `fieldpath`.
"""

import json
from collections.abc import Iterator

from skysail.api.raw import Raw

Path = tuple[str, ...]


class FieldSet:
    """A set of paths. Operations give new sets; `insert` alters."""

    __slots__ = ("children", "members")

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.children: dict[str, FieldSet] = {}

    @staticmethod
    def of(*paths: Path) -> "FieldSet":
        """A set of these paths."""
        made = FieldSet()
        for path in paths:
            made.insert(path)
        return made

    def insert(self, path: Path) -> None:
        """Add one path."""
        here = self
        for element in path[:-1]:
            here = here.children.setdefault(element, FieldSet())
        here.members.add(path[-1])

    def attach(self, element: str, below: "FieldSet") -> None:
        """Add longer paths under an element; nothing when there are none."""
        if not below.empty:
            self.children[element] = below

    @property
    def empty(self) -> bool:
        """Whether no path is in it."""
        return not self.members and not self.children

    def below(self, element: str) -> "FieldSet":
        """The paths that go on from an element."""
        return self.children.get(element) or FieldSet()

    def has(self, path: Path) -> bool:
        """Whether a path is in it."""
        here = self
        for element in path[:-1]:
            if element not in here.children:
                return False
            here = here.children[element]
        return path[-1] in here.members

    def union(self, other: "FieldSet") -> "FieldSet":
        """Paths in either."""
        out = FieldSet()
        out.members = self.members | other.members
        for element in (*self.children, *(e for e in other.children if e not in self.children)):
            left, right = self.children.get(element), other.children.get(element)
            out.children[element] = left.union(right) if left and right else left or right or FieldSet()
        return out

    def intersection(self, other: "FieldSet") -> "FieldSet":
        """Paths in both."""
        out = FieldSet()
        out.members = self.members & other.members
        for element, below in self.children.items():
            if element in other.children:
                out.attach(element, below.intersection(other.children[element]))
        return out

    def difference(self, other: "FieldSet") -> "FieldSet":
        """Paths of this one that are not in the other; a path stays when only a shorter one goes."""
        out = FieldSet()
        out.members = self.members - other.members
        for element, below in self.children.items():
            out.attach(element, below.difference(other.children[element]) if element in other.children else below)
        return out

    def paths(self) -> Iterator[Path]:
        """All paths, sorted, members of one level before what lies below."""
        for element in sorted(self.members, key=_order):
            yield (element,)
        for element in sorted(self.children, key=_order):
            for rest in self.children[element].paths():
                yield (element, *rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.members == other.members and self.children == other.children

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(path_text(path) for path in self.paths())})"

    def encode(self) -> Raw:
        """As `fieldsV1`."""
        out: Raw = {}
        for element in sorted({*self.members, *self.children}, key=_order):
            below = self.children.get(element)
            encoded = below.encode() if below is not None else {}
            out[element] = {".": {}, **encoded} if encoded and element in self.members else encoded
        return out

    @staticmethod
    def decode(fields: object) -> "FieldSet":
        """From `fieldsV1`.

        Raises:
            ValueError: It is none.
        """
        out = FieldSet()
        for element, below in fields.items() if isinstance(fields, dict) else ():
            if element == ".":
                continue
            if element[:2] not in ("f:", "k:", "v:", "i:"):
                raise ValueError(f"missing colon: {element}")
            if not isinstance(below, dict) or not below or "." in below:
                out.members.add(element)
            if isinstance(below, dict):
                out.attach(element, FieldSet.decode(below))
        return out


def _order(element: str) -> tuple[int, str]:
    return ("fkvi".find(element[0]), element[2:])


def field_element(name: str) -> str:
    """The element of a field or a map's key."""
    return f"f:{name}"


def key_element(keys: Raw) -> str:
    """The element of a keyed list's item."""
    return "k:" + json.dumps(keys, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def value_element(value: object) -> str:
    """The element of a set's item."""
    return "v:" + json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def path_text(path: Path) -> str:
    """As conflicts name it: `.spec.containers[name="c"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        keys: Raw = json.loads(text)
        return "[" + ",".join(f"{name}={json.dumps(keys[name])}" for name in sorted(keys)) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
