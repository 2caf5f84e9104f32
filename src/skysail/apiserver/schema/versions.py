"""The order of API versions: `v2` before `v1`, both before `v2beta1`, that before `v1alpha1`, other names last."""

import re

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?", re.A)
_STAGES = {"": 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, str]:
    """A key that sorts the most stable and newest version first.

    Source: apimachinery/pkg/version/helpers.go, v1.36.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match[1], match[2] or "", match[3] or "0"
    return (_STAGES[stage], -int(major), -int(minor), "")
