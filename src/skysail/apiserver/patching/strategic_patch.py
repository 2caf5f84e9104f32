"""Strategic merge patch: merge by the merge keys of the types, steered by directives inside the patch.

Lists of a field with patchStrategy `merge` are paired by its merge key (lists of scalars are sets); other lists and
scalars are replaced, maps always merge. Directives:

    $patch: replace | delete | merge       of a map, or as an item of a merging list
    $deleteFromPrimitiveList/<field>       scalars to take out of a set
    $setElementOrder/<field>               the order in which items must end up
    $retainKeys                            keys to keep, all others go (unions)

Order of the result of a merged list: items of the patch keep the patch's order (or that of `$setElementOrder`), items
only in the document keep the document's, and an item of the document goes in front of the first patch item that stood
behind it; so wholly new items end up in front.

Source: apimachinery/pkg/util/strategicpatch, v1.36.
"""

import copy

from skysail.api.errors import ApiError, BadRequest, Status
from skysail.api.raw import Raw
from skysail.apiserver.go_values import copied, print_value, same, type_name
from skysail.apiserver.patching.json_patch import refused
from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_PREFIX = "$deleteFromPrimitiveList"
ORDER_PREFIX = "$setElementOrder"

Item = object
List = list[Item]


def apply(document: Raw, patch: Raw, type_info: TypeInfo) -> Raw:
    """The document after the patch; neither argument is altered.

    Args:
        document: The object as stored.
        patch: As decoded.
        type_info: The object's type, with the merge keys.

    Raises:
        BadRequest: A directive has the wrong shape.
        ApiError: 500 without a reason, as upstream answers most mistakes (a missing merge key, an unknown field).
    """
    return _merge_map(copied(document), copy.deepcopy(patch), _Fields(type_info))


def _failure(message: str) -> ApiError:
    return ApiError(Status(message=message, code=500))


def _no_merge_key(item: Raw, key: str) -> ApiError:
    return _failure(f"map: {print_value(item)} does not contain declared merge key: {key}")


def _bad_argument(expected: str, value: object) -> ApiError:
    return _failure(f"expected a {expected}, but received a {type_name(value)}")


def _unknown_directive(directive: object, item: Raw) -> ApiError:
    return _failure(f"unknown patch type: {print_value(directive)} in map: {print_value(item)}")


class _Fields:
    """What the schema says of the fields of one map: either a type's, or alike for every key of a map type."""

    def __init__(self, type_info: TypeInfo | None, values: Shape | None = None) -> None:
        self.type_info, self.values = type_info, values

    def field(self, key: str) -> tuple[FieldInfo | None, "_Fields"]:
        """The rules of a field and the fields below it (of its items, for a list)."""
        if self.values is not None:
            return None, self._below(self.values)
        if self.type_info is None or self.type_info.form not in ("", "empty"):
            return None, _Fields(None)
        info = self.type_info.fields.get(key)
        if info is None:
            raise _failure(
                f'unable to find api field in struct {self.type_info.go.rpartition(".")[2]} for the json field "{key}"'
            )
        return info, self._below(info.items or info)

    def _below(self, shape: Shape) -> "_Fields":
        owner = self.type_info
        target = owner.target(shape) if owner is not None else None
        below = _Fields(target, None if target is not None else shape.map)
        if below.type_info is None:
            below.type_info = owner if below.values is not None else None
        return below


def _merge_map(document: Raw, patch: Raw, fields: _Fields) -> Raw:
    if DIRECTIVE in patch:
        directive = patch.pop(DIRECTIVE)
        if directive == "replace":
            return patch
        if directive == "delete":
            return {}
        raise _unknown_directive(directive, {**patch, DIRECTIVE: directive})
    _retain_keys(document, patch)
    _merge_ordered_lists(document, patch, fields)
    for key, value in patch.items():
        is_deletion = key.startswith(DELETE_PREFIX)
        _merge_field(document, _bare_key(key, DELETE_PREFIX) if is_deletion else key, value, fields, is_deletion)
    return document


def _bare_key(key: str, prefix: str) -> str:
    head, slash, bare = key.partition("/")
    if not slash or head != prefix:
        raise BadRequest(
            f"invalid patch format of {'primitive list' if prefix == DELETE_PREFIX else 'setElementOrder list'}"
        )
    return bare


def _retain_keys(document: Raw, patch: Raw) -> None:
    if RETAIN_KEYS not in patch:
        return
    keys = patch.pop(RETAIN_KEYS)
    named = [
        key for key, value in patch.items() if value is not None and not key.startswith((DELETE_PREFIX, ORDER_PREFIX))
    ]
    if not isinstance(keys, list) or any(key not in keys for key in named):
        raise BadRequest("invalid patch format of retainKeys")
    for key in [key for key in document if key not in keys]:
        del document[key]


def _merge_field(document: Raw, key: str, value: object, fields: _Fields, is_deletion: bool) -> None:
    if value is None:
        document.pop(key, None)
        return
    there = document.get(key)
    if key not in document or type_name(there) != type_name(value):
        if not is_deletion:
            _take(document, key, _without_nulls(value))
        return
    if isinstance(value, dict) and isinstance(there, dict):
        info, below = fields.field(key)
        replaces = info is not None and "replace" in info.patch_strategy
        document[key] = value if replaces else _merge_map(there, value, below)
    elif isinstance(value, list) and isinstance(there, list):
        info, below = fields.field(key)
        if is_deletion or (info is not None and "merge" in info.patch_strategy):
            document[key] = _merge_list(there, value, info.patch_merge_key if info else "", below, is_deletion)
        else:
            document[key] = value
    else:
        document[key] = value


def _take(document: Raw, key: str, value: object) -> None:
    """Set a field from the patch alone, its directives left out."""
    if isinstance(value, dict) and DIRECTIVE in value:
        document.pop(key, None)
    else:
        document[key] = _without_directives(value)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _without_directives(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_directives(v) for k, v in value.items() if not (isinstance(v, dict) and DIRECTIVE in v)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and DIRECTIVE in item)]
    return value


def _check_items(*lists: List) -> bool:
    """Whether the items are maps; all items of all lists must be of one kind.

    Raises:
        ApiError: They are lists, or of several kinds.
    """
    kinds = [type_name(item) for items in lists for item in items]
    if kinds and kinds[0] == "[]interface {}":
        raise refused()
    if any(kind != kinds[0] for kind in kinds):
        raise _failure("list element types are not identical: " + print_value(list(lists)))
    return bool(kinds) and kinds[0] == "map[string]interface {}"


def _merge_list(there: List, patch: List, key: str, fields: _Fields, is_deletion: bool) -> List:
    if not there and not patch:
        return there
    if not _check_items(there, patch):
        if is_deletion:
            return _ordered([item for item in there if not _holds(patch, item, "")], patch, there, "")
        merged: List = []
        for item in [*there, *patch]:
            if not _holds(merged, item, ""):
                merged.append(item)
        return _ordered(merged, patch, there, "")
    if not key:
        raise _failure("cannot merge lists without merge key for slice")
    there, items = _apply_item_directives(there, patch, key)
    return _ordered(_merge_items(there, items, key, fields), items, there, key)


def _apply_item_directives(there: List, patch: List, key: str) -> tuple[List, List]:
    """What is left of the document's list and of the patch's once `$patch` items have had their effect."""
    plain: List = []
    replace = False
    for item in patch:
        if not isinstance(item, dict) or DIRECTIVE not in item:
            plain.append(item)
        elif item[DIRECTIVE] == "delete":
            if key not in item:
                raise _no_merge_key(item, key)
            there = [other for other in there if not (isinstance(other, dict) and _equal_key(other, item, key))]
        elif item[DIRECTIVE] == "replace":
            replace = True
        elif item[DIRECTIVE] == "merge":
            raise _failure("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item[DIRECTIVE], item)
    return (plain, []) if replace else (there, plain)


def _equal_key(left: Raw, right: Raw, key: str) -> bool:
    return key in left and key in right and same(left[key], right[key])


def _merge_items(there: List, patch: List, key: str, fields: _Fields) -> List:
    merged = list(there)
    for item in patch:
        assert isinstance(item, dict)
        if key not in item:
            raise _no_merge_key(item, key)
        at = _position(merged, item, key)
        if at < 0:
            merged.append(item)
        else:
            other = merged[at]
            assert isinstance(other, dict)
            merged[at] = _merge_map(other, item, fields)
    return merged


def _position(items: List, wanted: Item, key: str) -> int:
    """Where an item stands in a list: paired by the merge key, or by value when there is none; -1 when nowhere."""
    for at, item in enumerate(items):
        if key:
            if isinstance(item, dict) and isinstance(wanted, dict) and _equal_key(item, wanted, key):
                return at
        elif same(item, wanted):
            return at
    return -1


def _holds(items: List, wanted: Item, key: str) -> bool:
    return _position(items, wanted, key) >= 0


def _ordered(merged: List, patch_order: List, server_order: List, key: str) -> List:
    """The merged items in the order that the module's docstring promises."""
    if key:
        for item in merged:
            if isinstance(item, dict) and key not in item:
                raise _no_merge_key(item, key)
    from_patch = [item for item in merged if _holds(patch_order, item, key)]
    server_only = [item for item in merged if not _holds(patch_order, item, key)]
    from_patch.sort(key=lambda item: _position(patch_order, item, key))
    server_only.sort(key=lambda item: _position(server_order, item, key))
    out: List = []
    while from_patch and server_only:
        left, right = (_position(server_order, items[0], key) for items in (server_only, from_patch))
        out.append(server_only.pop(0) if 0 <= left < right else from_patch.pop(0))
    return [*out, *from_patch, *server_only]


def _merge_ordered_lists(document: Raw, patch: Raw, fields: _Fields) -> None:
    """Merge the lists that a `$setElementOrder` in the patch speaks of, and take them out of the patch."""
    for directive in [key for key in patch if key.startswith(ORDER_PREFIX)]:
        order = patch.pop(directive)
        if not isinstance(order, list):
            raise _bad_argument("[]interface {}", order)
        key = _bare_key(directive, ORDER_PREFIX)
        there, given = document.get(key), patch.get(key)
        for value in (there, given):
            if value is not None and not isinstance(value, list):
                raise _bad_argument("[]interface {}", value)
        info, below = fields.field(key)
        merge_key = info.patch_merge_key if info else ""
        _check_order(given or [], order, merge_key)
        if there is None and given is None:
            continue
        if given is None:
            merged = list(there or [])
        elif there is None:
            patched = _without_directives(given)
            merged = patched if isinstance(patched, list) else []
        elif info is not None and "merge" in info.patch_strategy:
            merged = _merge_list(there, given, merge_key, below, is_deletion=False)
        else:
            merged = given
        document[key] = _ordered(merged, order, there or [], merge_key)
        patch.pop(key, None)


def _check_order(given: List, order: List, key: str) -> None:
    """The patch's items must stand in the patch as `$setElementOrder` has them."""
    if not given or not order:
        return
    items = [item for item in given if not (isinstance(item, dict) and DIRECTIVE in item)]
    at = 0
    for wanted in order:
        if at < len(items) and _matches(items[at], wanted, key):
            at += 1
    if at < len(items):
        shown = f"{print_value(given)}\n doesn't match {ORDER_PREFIX} list:\n{print_value(order)}\n"
        raise _failure(f"The order in patch list:\n{shown}")


def _matches(item: Item, wanted: Item, key: str) -> bool:
    if not key:
        return same(item, wanted)
    for side in (item, wanted):
        if not isinstance(side, dict):
            raise _bad_argument("map[string]interface {}", side)
        if key not in side:
            raise _no_merge_key(side, key)
    assert isinstance(item, dict)
    assert isinstance(wanted, dict)
    return same(item[key], wanted[key])
