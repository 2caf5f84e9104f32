"""An applied configuration merged into a live object, and paths taken out of an object.

The order of a merged list: the configuration's items in its order; items that only the live object has keep their place
before the next shared one.

Source: sigs.k8s.io/structured-merge-diff v6 `typed/{merge,remove}.go`.
"""

from skysail.apiserver.patching.comparing import ABSENT, ItemError, item_element
from skysail.apiserver.patching.field_set import FieldSet
from skysail.apiserver.patching.structure import Deduced, Leaf, Listing, Mapping, Node

Value = object


def merge(live: Value, applied: Value, node: Node) -> Value:
    """The live value with the configuration's laid over it; either may be ABSENT, and so may the result."""
    if applied is ABSENT or live is ABSENT:
        return live if applied is ABSENT else applied
    if isinstance(node, Leaf) or (isinstance(node, Mapping | Listing) and (node.atomic or not (live or applied))):
        return applied
    if isinstance(node, Deduced) and not (isinstance(live, dict) and isinstance(applied, dict)):
        return applied
    if isinstance(node, Listing):
        return _merge_lists(live or [], applied or [], node)
    return _merge_maps(live or {}, applied or {}, node)


def _merge_maps(live: Value, applied: Value, node: Node) -> Value:
    if not isinstance(live, dict) or not isinstance(applied, dict):
        return applied
    out: dict[str, Value] = {}
    for name in (*live, *(name for name in applied if name not in live)):
        below = (node.field(name) if isinstance(node, Mapping) else node) or Deduced()
        merged = merge(live.get(name, ABSENT), applied.get(name, ABSENT), below)
        if merged is not ABSENT:
            out[name] = merged
    return out or ABSENT


def _merge_lists(live: Value, applied: Value, node: Listing) -> Value:
    if not isinstance(live, list) or not isinstance(applied, list):
        return applied
    lefts, rights = _elements(live, node), _elements(applied, node)
    left_of, right_of = dict(zip(reversed(lefts), reversed(live), strict=True)), dict(zip(rights, applied, strict=True))
    repeated = {element for element in lefts if lefts.count(element) > 1}
    out: list[Value] = []
    done: set[str] = set()

    def place(element: str) -> None:
        done.add(element)
        old = ABSENT if element in repeated else left_of.get(element, ABSENT)
        merged = merge(old, right_of[element], node.items)
        if merged is not ABSENT:
            out.append(merged)

    shared = [element for element in rights if element in left_of]
    left = right = 0
    while left < len(lefts) or right < len(rights):
        upcoming = shared[0] if shared else None
        if left < len(lefts) and right < len(rights):
            element = lefts[left]
            if element == rights[right]:
                place(element)
                left, right = left + 1, right + 1
                shared = shared[1:]
                continue
            if element in right_of and upcoming is not None and upcoming != element:
                left += 1
                continue
        if left < len(lefts):
            element = lefts[left]
            if element not in right_of:
                out.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(rights):
            place(rights[right])
            if upcoming == rights[right]:
                shared = shared[1:]
            right += 1
    return out or ABSENT


def _elements(items: list[Value], node: Listing) -> list[str]:
    found: list[str] = []
    for index, item in enumerate(items):
        try:
            found.append(item_element(item, node))
        except ItemError:
            found.append(f"i:{index}")
    return found


def remove(value: Value, paths: FieldSet, node: Node) -> Value:
    """The value without some paths; ABSENT when nothing is left of an object or a list."""
    if isinstance(node, Leaf) or (isinstance(node, Mapping | Listing) and node.atomic and not value):
        return value
    if isinstance(node, Deduced) and not isinstance(value, dict):
        return value
    if getattr(node, "atomic", False):
        return value
    if isinstance(node, Listing):
        return _remove_items(value, paths, node)
    if not isinstance(value, dict) or not value:
        return value
    out: dict[str, Value] = {}
    for name, item in value.items():
        element = "f:" + name
        if paths.holds(element):
            continue
        longer = paths.below(element)
        if longer is not None:
            below = (node.field(name) if isinstance(node, Mapping) else node) or Deduced()
            item = remove(item, longer, below)
        out[name] = None if item is ABSENT else item
    return out or ABSENT


def _remove_items(value: Value, paths: FieldSet, node: Listing) -> Value:
    if not isinstance(value, list) or not value:
        return value
    kept: list[Value] = []
    for element, item in zip(_elements(value, node), value, strict=True):
        if paths.holds(element):
            continue
        longer = paths.below(element)
        left = remove(item, longer, node.items) if longer is not None else item
        kept.append(None if left is ABSENT else left)
    return kept or ABSENT
