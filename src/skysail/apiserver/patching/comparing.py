"""Which paths two objects differ in, which paths one object has, and what cannot be such an object at all.

Source: sigs.k8s.io/structured-merge-diff v6 `typed/{compare,tofieldset,validate,helpers}.go`.
"""

from collections.abc import Iterator, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.go_values import print_value, same
from skysail.apiserver.patching.field_set import SELF, FieldSet, Tree, key_element, path_text, value_element
from skysail.apiserver.patching.structure import Deduced, Leaf, Listing, Mapping, Node

Value = object


class _Absent:
    """Stands for what is not there; null is there."""


ABSENT = _Absent()
DEDUCED = Deduced()


class Comparison:
    """The paths that came, changed and went from one object to another."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.added, self.modified, self.removed = FieldSet(), FieldSet(), FieldSet()

    def attach(self, element: str, below: "Comparison") -> None:
        """Take over what differs under an element."""
        self.added.attach(element, below.added)
        self.modified.attach(element, below.modified)
        self.removed.attach(element, below.removed)


class ItemError(ValueError):
    """A list's item without a name."""


def item_element(item: Value, listing: Listing) -> str:
    """What names an item of a keyed list or a set.

    Raises:
        ItemError: Nothing does.
    """
    if not listing.keys:
        if isinstance(item, dict):
            raise ItemError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ItemError("not supported: associative list with lists as elements")
        if item is None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ItemError("associative list with keys may not have non-map elements")
    keys: Raw = {}
    for name in listing.keys:
        if name in item:
            keys[name] = item[name]
        elif isinstance(listing.items, Mapping) and (default := listing.items.default(name)) is not None:
            keys[name] = default
    if not keys:
        shown = "[" + " ".join(f'"{key}"' for key in listing.keys) + "]"
        raise ItemError(
            f"associative list with keys has an element that omits all key fields {shown} "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def items_by_element(items: Value, listing: Listing) -> dict[str, list[Value]]:
    """The items of a list by name; several under one name are duplicates. Items without a name are left out."""
    found: dict[str, list[Value]] = {}
    for item in items if isinstance(items, list) else ():
        try:
            found.setdefault(item_element(item, listing), []).append(item)
        except ItemError:
            continue
    return found


def compare(left: Value, right: Value, node: Node) -> Comparison:
    """How `right` differs from `left`; both are there, and are of the type."""
    out = Comparison()
    if isinstance(node, Listing):
        _compare_lists(left, right, node, out)
    else:
        _compare_maps(left, right, node, out)
    return out


def _compare_maps(left: Value, right: Value, node: Node, out: Comparison) -> None:
    lefts, rights = (side if isinstance(side, dict) else {} for side in (left, right))
    field = node.field if isinstance(node, Mapping) else _deduced
    for name, value in lefts.items():
        other = rights.get(name, ABSENT)
        if other is not value:
            _compare_member("f:" + name, value, other, field(name) or DEDUCED, out)
    for name, value in rights.items():
        if name not in lefts:
            _compare_member("f:" + name, ABSENT, value, field(name) or DEDUCED, out)


def _deduced(_: str) -> Node:
    return DEDUCED


def _compare_lists(left: Value, right: Value, node: Listing, out: Comparison) -> None:
    lefts, rights = items_by_element(left, node), items_by_element(right, node)
    for element in (*lefts, *(e for e in rights if e not in lefts)):
        ours, theirs = lefts.get(element, []), rights.get(element, [])
        if len(ours) <= 1 and len(theirs) <= 1:
            pair = (ours[0] if ours else ABSENT, theirs[0] if theirs else ABSENT)
            _compare_member(element, *pair, node.items, out)
        elif len(ours) >= 2 and len(theirs) >= 2:
            if not same(ours, theirs):
                out.modified.add(element)
        elif len(ours) >= 2:
            if theirs:
                _compare_member(element, ABSENT, theirs[0], node.items, out)
            out.removed.add(element)
        else:
            if ours:
                _compare_member(element, ours[0], ABSENT, node.items, out)
            out.added.add(element)


def _compare_member(element: str, left: Value, right: Value, node: Node, out: Comparison) -> None:
    if left is ABSENT:
        out.added.tree[element] = wholly(right, node)
    elif right is ABSENT:
        out.removed.tree[element] = wholly(left, node)
    elif left == right and (node is not DEDUCED or same(left, right)):
        return
    elif _is_leaf(left, right, node):
        out.modified.add(element)
    else:
        out.attach(element, compare(left, right, node))


def _is_leaf(left: Value, right: Value, node: Node) -> bool:
    """Whether two unequal values differ as a whole."""
    if isinstance(node, Leaf):
        return True
    if isinstance(node, Mapping | Listing):
        return node.atomic or (not left and not right)
    return not (isinstance(left, dict) and isinstance(right, dict))


def wholly(value: Value, node: Node) -> Tree:
    """A value that is wholly new, or wholly gone, as what stands under its element: itself and all paths below."""
    out: Tree = {}
    if isinstance(value, dict):
        if isinstance(node, Leaf | Listing) or not value or (isinstance(node, Mapping) and node.atomic):
            return out
        out[SELF] = {}
        field = node.field if isinstance(node, Mapping) else _deduced
        for name, item in value.items():
            out["f:" + name] = wholly(item, field(name) or DEDUCED) if isinstance(item, dict | list) else {}
    elif isinstance(value, list) and value and isinstance(node, Listing) and not node.atomic:
        out[SELF] = {}
        for element, items in items_by_element(value, node).items():
            out[element] = wholly(items[0], node.items) if len(items) == 1 else {}
    return out


def to_field_set(value: Value, node: Node) -> FieldSet:
    """The paths an applied configuration owns: its leaves, its lists' items and its maps' keys, not objects as such."""
    out = FieldSet()
    if isinstance(value, dict) and isinstance(node, Mapping | Deduced):
        for name, item in value.items():
            declared = isinstance(node, Mapping) and node.declares(name)
            below = (node.field(name) if isinstance(node, Mapping) else node) or DEDUCED
            _own(out, "f:" + name, item, below, itself=not declared or item is None or item == {})
    elif isinstance(value, list) and isinstance(node, Listing):
        for element, items in items_by_element(value, node).items():
            if len(items) > 1:
                out.add(element)
            else:
                _own(out, element, items[0], node.items, itself=True)
    return out


def _own(out: FieldSet, element: str, value: Value, node: Node, *, itself: bool) -> None:
    atomic = isinstance(node, Leaf) or (isinstance(node, Mapping | Listing) and node.atomic)
    if isinstance(node, Deduced):
        atomic = not isinstance(value, dict)
    if itself or atomic:
        out.add(element)
    if not atomic:
        out.attach(element, to_field_set(value, node))


def with_named_fields(paths: FieldSet, node: Node | None) -> FieldSet:
    """The same paths and every declared field on the way to them."""
    out = FieldSet()
    for element in paths.tree:
        if element == SELF:
            continue
        below = paths.below(element)
        declared = element.startswith("f:") and isinstance(node, Mapping) and node.declares(element[2:])
        if paths.holds(element) or (below is not None and declared):
            out.add(element)
        if below is not None:
            out.attach(element, with_named_fields(below, _child(element, node)))
    return out


def _child(element: str, node: Node | None) -> Node | None:
    if element.startswith("f:"):
        return node.field(element[2:]) if isinstance(node, Mapping) else node if isinstance(node, Deduced) else None
    return node.items if element.startswith("k:") and isinstance(node, Listing) else None


def mistakes(value: Value, node: Node, path: tuple[str, ...] = ()) -> Iterator[str]:
    """What keeps a configuration from being of its type, each as `.spec.frob: field not declared in schema`."""
    if value is None or isinstance(node, Deduced):
        return
    if isinstance(node, Leaf):
        if problem := _scalar_mistake(value, node.kind):
            yield _mistake(path, problem)
    elif isinstance(node, Mapping):
        if not isinstance(value, dict):
            yield _mistake(path, f"expected map, got {_shown(value)}")
            return
        for name, item in value.items():
            below = node.field(name)
            if below is None:
                yield _mistake((*path, "f:" + name), "field not declared in schema")
                return
            yield from mistakes(item, below, (*path, "f:" + name))
    elif not isinstance(value, list):
        yield _mistake(path, f"expected list, got {_shown(value)}")
    else:
        yield from _item_mistakes(value, node, path)


def _item_mistakes(items: Sequence[Value], node: Listing, path: tuple[str, ...]) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        element = f"i:{index}"
        if not node.atomic:
            try:
                element = item_element(item, node)
            except ItemError as error:
                yield _mistake(path, f"element {index}: {error}")
                return
            if element in seen:
                yield _mistake(path, f"duplicate entries for key {path_text((element,))}")
            seen.add(element)
        yield from mistakes(item, node.items, (*path, element))


def _scalar_mistake(value: Value, kind: str) -> str:
    if kind == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"expected numeric (int or float), got {_go_type(value)}"
    if kind == "string" and not isinstance(value, str):
        return f"expected string, got {_reflected(value)}"
    if kind == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got {_shown(value)}"
    return f"expected any scalar, got {_shown(value)}" if isinstance(value, dict | list) else ""


def _mistake(path: tuple[str, ...], problem: str) -> str:
    return f"{path_text(path)}: {problem}" if path else problem


def _shown(value: Value) -> str:
    return f"&{{{print_value(value)}}}"


def _reflected(value: Value) -> str:
    return f"&value.valueUnstructured{{Value:{print_value(value)}}}"


def _go_type(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    names = ((str, "string"), (dict, "map[string]interface {}"), (list, "[]interface {}"))
    return next((name for kind, name in names if isinstance(value, kind)), "<nil>")
