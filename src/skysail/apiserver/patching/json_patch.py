"""JSON patch (RFC 6902), with the leniencies of the library that kube-apiserver uses.

Differs from the RFC, as upstream does: `replace` of an absent map key adds it; indices may count from the end (`-1`);
`test` against null passes when the key is absent; `add` to the root is refused, `replace` of the root is not.

Source: evanphx/json-patch v4, the version that Kubernetes 1.36 vendors.
"""

import copy
from collections.abc import Callable, Mapping, Sequence

from skysail.api.errors import Invalid, Status, StatusDetails
from skysail.api.raw import Raw
from skysail.apiserver.go_values import copied, same


class PatchFailed(Exception):
    """An operation that cannot be done; the text is upstream's."""


Container = dict[str, object] | list[object]


def apply(document: Raw, operations: Sequence[Raw]) -> Raw:
    """The document after all operations; the given one is left alone.

    Args:
        document: What to patch.
        operations: As decoded; `decoding.patches` has checked that each is an object of strings.

    Raises:
        Invalid: An operation cannot be done, in the server's words (which do not say why).
    """
    try:
        result = apply_operations(document, operations)
    except PatchFailed as failure:
        raise refused() from failure
    if not isinstance(result, dict):
        raise refused()
    return result


def refused() -> Invalid:
    """The server's answer to every patch that does not apply."""
    message = "the server rejected our request due to an error in our request"
    return Invalid(Status(message=message, reason="Invalid", details=StatusDetails(), code=422))


def apply_operations(document: object, operations: Sequence[Raw]) -> object:
    """The document after all operations.

    Raises:
        PatchFailed: An operation cannot be done; says which and why.
    """
    root = copied(document)
    for operation in operations:
        kind = operation.get("op")
        act = _ACTIONS.get(kind) if isinstance(kind, str) else None
        if act is None:
            raise PatchFailed(f"Unexpected kind: {'unknown' if kind is None else kind}")
        if kind == "replace" and operation.get("path") == "":
            root = _new_root(operation)
        else:
            act(root, operation)
    return root


def _new_root(operation: Raw) -> object:
    value = operation.get("value")
    if not isinstance(value, dict | list):
        raise PatchFailed("replace operation value must be object or array")
    return copy.deepcopy(value)


def _path(operation: Raw, key: str = "path") -> str:
    path = operation.get(key)
    if not isinstance(path, str):
        raise PatchFailed(f"{operation['op']} operation failed to decode {key}: missing value")
    return path


def _find(root: object, path: str) -> tuple[Container, str] | None:
    """The container that the last part of a path lies in, and that part; None when there is no such container."""
    parts = path.split("/")
    if len(parts) < 2:
        return None
    here = root
    for part in parts[1:-1]:
        try:
            here = _get(here, _unescape(part)) if isinstance(here, dict | list) else None
        except PatchFailed:
            return None
    return (here, _unescape(parts[-1])) if isinstance(here, dict | list) else None


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _index(key: str, size: int, limit: int) -> int:
    """An array index: `limit` is one past the highest allowed; negative ones count from `size`."""
    try:
        index = int(key) if key.lstrip("+-").isdigit() else None
    except ValueError:
        index = None
    if index is None:
        raise PatchFailed(f"value was not a proper array index: '{key}'")
    if index >= limit or index < -limit:
        raise PatchFailed(f"Unable to access invalid index: {index}: invalid index referenced")
    return index if index >= 0 else index + size


def _get(container: Container, key: str) -> object:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container), len(container))]


def _insert(container: Container, key: str, value: object) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        size = len(container) + 1
        container.insert(_index(key, size, size), value)


def _delete(container: Container, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container), len(container))]
    elif key in container:
        del container[key]
    else:
        raise PatchFailed(f"Unable to remove nonexistent key: {key}: missing value")


def _add(root: object, operation: Raw) -> None:
    path = _path(operation)
    found = _find(root, path)
    if found is None:
        raise PatchFailed(f'add operation does not apply: doc is missing path: "{path}": missing value')
    with _Context(f"error in add for path: '{path}'"):
        _insert(*found, copy.deepcopy(operation.get("value")))


def _remove(root: object, operation: Raw) -> None:
    path = _path(operation)
    found = _find(root, path)
    if found is None:
        raise PatchFailed(f'remove operation does not apply: doc is missing path: "{path}": missing value')
    with _Context(f"error in remove for path: '{path}'"):
        _delete(*found)


def _replace(root: object, operation: Raw) -> None:
    path = _path(operation)
    found = _find(root, path)
    if found is None:
        raise PatchFailed(f"replace operation does not apply: doc is missing path: {path}: missing value")
    container, key = found
    if isinstance(container, dict):
        container[key] = copy.deepcopy(operation.get("value"))
        return
    try:
        index = _index(key, len(container), len(container))
    except PatchFailed:
        raise PatchFailed(f"replace operation does not apply: doc is missing key: {path}: missing value") from None
    container[index] = copy.deepcopy(operation.get("value"))


def _move(root: object, operation: Raw) -> None:
    source, path = _path(operation, "from"), _path(operation)
    found = _find(root, source)
    if found is None:
        raise PatchFailed(f"move operation does not apply: doc is missing from path: {source}: missing value")
    with _Context(f"error in move for path: '{source}'"):
        value = _get(*found)
        _delete(*found)
    _place(root, path, value, "move")


def _copy(root: object, operation: Raw) -> None:
    source, path = _path(operation, "from"), _path(operation)
    found = _find(root, source)
    if found is None:
        raise PatchFailed(f"copy operation does not apply: doc is missing from path: {source}: missing value")
    with _Context(f"error in copy for from: '{source}'"):
        value = copy.deepcopy(_get(*found))
    _place(root, path, value, "copy")


def _place(root: object, path: str, value: object, kind: str) -> None:
    found = _find(root, path)
    if found is None:
        raise PatchFailed(f"{kind} operation does not apply: doc is missing destination path: {path}: missing value")
    with _Context(f"error in {kind} for path: '{path}'"):
        _insert(*found, value)


def _test(root: object, operation: Raw) -> None:
    path = _path(operation)
    if path == "":
        value = root
    else:
        found = _find(root, path)
        if found is None:
            raise PatchFailed(f"test operation does not apply: is missing path: {path}: missing value")
        with _Context(f"error in test for path: '{path}'"):
            value = _get(*found)
    if not same(value, operation.get("value")):
        raise PatchFailed(f"testing value {path} failed: test failed")


class _Context:
    """Says in front of a failure what was being done."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PatchFailed):
            raise PatchFailed(f"{self.text}: {error}") from None


_ACTIONS: Mapping[str, Callable[[object, Raw], None]] = {
    "add": _add, "remove": _remove, "replace": _replace, "move": _move, "copy": _copy, "test": _test,
}  # fmt: skip
