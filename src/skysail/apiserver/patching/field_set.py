"""Sets of paths into an object, in their wire form `fieldsV1`.

A path is a chain of elements: `f:name` a field, `k:{"name":"c"}` an item of a keyed list, `v:"x"` an item of a set.
The set is a tree of dictionaries, the very ones that go over the wire. An element is a *member* (the path up to it is
in the set) when nothing follows, or when `"."` stands beside what follows:

    {"f:spec": {"f:replicas": {}}}                         .spec.replicas
    {"f:labels": {".": {}, "f:app": {}}}                   .labels and .labels.app

Trees are never altered once they are shared; an operation copies what it changes and shares the rest, so its cost is
that of the smaller operand.

Source: sigs.k8s.io/structured-merge-diff v6 `fieldpath`.
"""

import json
from collections.abc import Iterator
from functools import lru_cache

Path = tuple[str, ...]
Tree = dict[str, "Tree"]

SELF = "."
EMPTY: Tree = {}


class FieldSet:
    """A set of paths. Operations give new sets; `insert`, `add` and `attach` alter a set that is being made.

    Attributes:
        tree: The wire form.
    """

    __slots__ = ("tree",)

    def __init__(self, tree: Tree | None = None) -> None:
        self.tree: Tree = {} if tree is None else tree

    @staticmethod
    def of(*paths: Path) -> "FieldSet":
        """A set of these paths."""
        made = FieldSet()
        for path in paths:
            made.insert(path)
        return made

    def insert(self, path: Path) -> None:
        """Add one path, copying what lies on the way."""
        self.tree = union(self.tree, _single(path))

    def add(self, element: str) -> None:
        """Make an element a member."""
        below = self.tree.get(element)
        if below is None:
            self.tree[element] = {}
        elif below and SELF not in below:
            self.tree[element] = {SELF: {}, **below}

    def attach(self, element: str, below: "FieldSet") -> None:
        """Add longer paths under an element; nothing when there are none."""
        if below.tree:
            self.tree[element] = {SELF: {}, **below.tree} if self.holds(element) else below.tree

    @property
    def empty(self) -> bool:
        """Whether no path is in it."""
        return not self.tree

    def holds(self, element: str) -> bool:
        """Whether an element is a member."""
        below = self.tree.get(element)
        return below is not None and (not below or SELF in below)

    def below(self, element: str) -> "FieldSet | None":
        """The paths that go on from an element; None when none does."""
        below = self.tree.get(element)
        if not below:
            return None
        longer = {key: value for key, value in below.items() if key != SELF} if SELF in below else below
        return FieldSet(longer) if longer else None

    def has(self, path: Path) -> bool:
        """Whether a path is in it."""
        here = self.tree
        for element in path[:-1]:
            if element not in here:
                return False
            here = here[element]
        return FieldSet(here).holds(path[-1])

    def union(self, other: "FieldSet") -> "FieldSet":
        """Paths in either."""
        return FieldSet(union(self.tree, other.tree))

    def intersection(self, other: "FieldSet") -> "FieldSet":
        """Paths in both."""
        return FieldSet(intersection(self.tree, other.tree))

    def difference(self, other: "FieldSet") -> "FieldSet":
        """Paths of this one that are not in the other; a path stays when only a shorter one goes."""
        return FieldSet(difference(self.tree, other.tree))

    def paths(self) -> Iterator[Path]:
        """All paths, sorted, members of one level before what lies below."""
        elements = sorted((e for e in self.tree if e != SELF), key=_order)
        yield from ((element,) for element in elements if self.holds(element))
        for element in elements:
            below = self.below(element)
            if below is not None:
                yield from ((element, *rest) for rest in below.paths())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.tree == other.tree

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(path_text(path) for path in self.paths())})"

    @staticmethod
    def decode(fields: object) -> "FieldSet":
        """From `fieldsV1`, which is not copied.

        Raises:
            ValueError: It is none.
        """
        if not isinstance(fields, dict):
            return FieldSet()
        _check(fields)
        return FieldSet(fields)


def _check(fields: dict[str, object]) -> None:
    for element, below in fields.items():
        if element != SELF and element[:2] not in ("f:", "k:", "v:", "i:"):
            raise ValueError(f"missing colon: {element}")
        if not isinstance(below, dict):
            raise ValueError(f"not an object: {element}")  # noqa: TRY004 - a wrong text, not a wrong argument
        if below:
            _check(below)


def _single(path: Path) -> Tree:
    tree: Tree = {}
    for element in reversed(path):
        tree = {element: tree}
    return tree


def union(left: Tree, right: Tree) -> Tree:
    """Paths in either tree."""
    if not left or not right:
        return left or right
    out = dict(left)
    for element, theirs in right.items():
        ours = left.get(element)
        if ours is None or ours is theirs:
            out[element] = theirs
        elif not theirs:
            out[element] = ours if not ours or SELF in ours else {SELF: EMPTY, **ours}
        elif not ours:
            out[element] = theirs if SELF in theirs else {SELF: EMPTY, **theirs}
        else:
            out[element] = union(ours, theirs)
    return out


def intersection(left: Tree, right: Tree) -> Tree:
    """Paths in both trees."""
    if len(right) < len(left):
        left, right = right, left
    out: Tree = {}
    for element, ours in left.items():
        theirs = right.get(element)
        if theirs is None:
            continue
        if not ours or not theirs:
            other = ours or theirs
            if not other or SELF in other:
                out[element] = {}
            continue
        both = intersection(ours, theirs)
        if both:
            out[element] = {} if len(both) == 1 and SELF in both else both
    return out


def difference(left: Tree, right: Tree) -> Tree:
    """Paths of the left tree that are not in the right one; the left tree itself when none is."""
    out = left
    for element, theirs in right.items():
        ours = left.get(element)
        if ours is None:
            continue
        rest = _rest(ours, theirs)
        if rest is ours:
            continue
        if out is left:
            out = dict(left)
        if rest is None:
            del out[element]
        else:
            out[element] = rest
    return out


def _rest(ours: Tree, theirs: Tree) -> Tree | None:
    """What is left of one element; None when nothing is."""
    if not ours:
        return None if not theirs or SELF in theirs else ours
    if not theirs:
        return {key: value for key, value in ours.items() if key != SELF} if SELF in ours else ours
    rest = difference(ours, theirs)
    if not rest:
        return None
    return {} if len(rest) == 1 and SELF in rest else rest


def _order(element: str) -> tuple[int, str]:
    return ("fkvi".find(element[0]), element[2:])


def key_element(keys: dict[str, object]) -> str:
    """The element of a keyed list's item."""
    if len(keys) == 1:
        ((name, value),) = keys.items()
        if type(value) is str:
            return _string_key(name, value)
    return "k:" + json.dumps(keys, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=4096)
def _string_key(name: str, value: str) -> str:
    return "k:" + json.dumps({name: value}, separators=(",", ":"), ensure_ascii=False)


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
        keys: dict[str, object] = json.loads(text)
        return "[" + ",".join(f"{name}={json.dumps(keys[name])}" for name in sorted(keys)) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
