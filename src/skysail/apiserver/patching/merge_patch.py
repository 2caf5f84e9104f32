"""JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces.

Source: evanphx/json-patch v4 `MergePatch`; nulls inside a value that is new in the document vanish too.
"""

from skysail.api.raw import Raw


def apply(document: Raw, patch: Raw) -> Raw:
    """The document after the patch; neither argument is altered, the result shares parts with both."""
    merged = {key: value for key, value in document.items() if key not in patch}
    for key, value in patch.items():
        there = document.get(key)
        if isinstance(value, dict):
            merged[key] = apply(there if isinstance(there, dict) else {}, value)
        elif value is not None:
            merged[key] = value if isinstance(there, dict) else _without_nulls(value)
    return merged


def _without_nulls(value: object) -> object:
    """Objects inside a new list lose their nulls as well, as upstream's pruning has it."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
