"""Small change for checks: comparing as the API compares, and the faults that many kinds share.

`skysail.apiserver.contract` makes single faults; this module makes lists of them.

Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go and pkg/api/validation, v1.36.
"""

from collections.abc import Iterable, Mapping

from skysail.apiserver.contract import FieldError, invalid

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"

Errors = list[FieldError]


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """A list with more than `limit` items."""
    unit = "item" if limit == 1 else "items"
    return FieldError(path, "TooMany", actual, f"must have at most {limit} {unit}")


def type_invalid(path: str, value: object, detail: str) -> FieldError:
    """A value of the wrong JSON type."""
    return FieldError(path, "TypeInvalid", value, detail)


def at(path: str, messages: Iterable[str], value: object) -> Errors:
    """One fault per complaint about the same value."""
    return [invalid(path, value, message) for message in messages]


def non_negative(value: object, path: str) -> Errors:
    """A number may not be below zero; what is absent passes."""
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, NEGATIVE)]
    return []


def positive(value: object, path: str) -> Errors:
    """A number must be above zero; what is absent passes."""
    if isinstance(value, int) and value <= 0:
        return [invalid(path, value, "must be greater than 0")]
    return []


def immutable(new: object, old: object, path: str) -> Errors:
    """A field that may not change; absent, null and empty count as the same."""
    return [] if same(new, old) else [invalid(path, new, IMMUTABLE)]


def same(new: object, old: object) -> bool:
    """Whether two values mean the same to the API: null, empty list and empty map are all one nothing."""
    if new == old:
        return True
    if not new and not old:
        return not isinstance(new, bool | int | str) and not isinstance(old, bool | int | str)
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return all(same(new.get(key), old.get(key)) for key in new.keys() | old.keys())
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(same(left, right) for left, right in zip(new, old, strict=True))
    return False
