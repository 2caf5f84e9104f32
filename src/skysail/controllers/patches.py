"""Writing the difference: merge patches between two values.

Controllers never send a Struct back as a whole (it knows only some of the fields); they send what they changed.
"""

import msgspec

from skysail.api.raw import Raw


def merge_difference(old: msgspec.Struct, new: msgspec.Struct) -> Raw:
    """The JSON merge patch that makes `old` into `new`; empty when they are equal as written."""
    before: Raw = msgspec.to_builtins(old)
    after: Raw = msgspec.to_builtins(new)
    return _difference(before, after)


def _difference(old: Raw, new: Raw) -> Raw:
    patch: Raw = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := _difference(before, value):
                patch[key] = inner
        elif value != before:
            patch[key] = value
    return patch
