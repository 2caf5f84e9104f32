"""Paths inside of volumes: relative, never stepping out.

Source: pkg/apis/core/validation/validation.go validateLocalDescendingPath, v1.36.
"""

from skysail.apiserver.contract import invalid
from skysail.apiserver.validation.field import Errors

FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(value: str, path: str) -> Errors:
    """No `..` among the parts."""
    return [invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def local_descending(value: str, path: str) -> Errors:
    """Relative, and no `..` among the parts."""
    errors = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return errors + no_backsteps(value, path)


def local_non_reserved(value: str, path: str) -> Errors:
    """As `local_descending`, and not beginning with `..` either."""
    errors = local_descending(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors


def file_mode(value: object, path: str) -> Errors:
    """Permission bits between 0 and 0777; what is absent passes."""
    if isinstance(value, int) and not 0 <= value <= 0o777:
        return [invalid(path, value, FILE_MODE)]
    return []
