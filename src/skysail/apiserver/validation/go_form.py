"""Objects as upstream's unversioned types print them, for the refusals that show a whole object or a difference.

Upstream validates unversioned types and prints those: Go's field names, every field, null for what is absent. The order
and types of the fields are data (`data/go_forms.json`, made by `tools/apiserver_go_forms.py`).

Source: k8s.io/apimachinery/pkg/util/diff/diff.go, v1.36.
"""

import difflib
import json
from functools import cache
from importlib import resources
from typing import Any

from skysail.api.raw import Raw

_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_ZERO: dict[str, object] = {"string": "", "int": 0, "bool": False, "quantity": "0", "map": None, "json": None}
Rows = list[tuple[str, str, str]]


@cache
def _forms() -> dict[str, Rows]:
    text = resources.files("skysail.apiserver.validation").joinpath("data/go_forms.json").read_text()
    forms: dict[str, Rows] = {name: [(a, b, c) for a, b, c in rows] for name, rows in json.loads(text).items()}
    return forms


def go_form(kind: str, value: Any) -> Any:
    """A value of an unversioned type as upstream would encode it.

    Args:
        kind: The type: a name in the data, or `[]T`, `*T`, `string`, `int`, `bool`, `quantity`, `map`, `json`.
        value: The value as it travels in v1; None when absent.
    """
    if kind.startswith("*"):
        return None if value is None else go_form(kind[1:], value)
    if kind.startswith("[]"):
        return None if value is None else [go_form(kind[2:], item) for item in value]
    if kind in _ZERO:
        return _ZERO[kind] if value is None else value
    known: Raw = value or {}
    if kind == "PodSpec":
        known = _with_host_fields(known)
    form: Raw = {}
    for name, wire, field in _forms()[kind]:
        if field == "inline":
            form.update(known.get(wire) or {})
        else:
            form[name] = go_form(field, known.get(wire))
    return form


def _with_host_fields(spec: Raw) -> Raw:
    """The security context holds what v1 keeps in the spec itself."""
    context = dict(spec.get("securityContext") or {})
    context.update({key: spec[key] for key in _HOST if key in spec})
    if context or spec.get("securityContext") is not None:
        return {**spec, "securityContext": context}
    return spec


def spec_difference(kind: str, old: Raw, new: Raw) -> str:
    """A unified difference of two values of an unversioned type, three lines of context, without a header."""
    before, after = (_lines(go_form(kind, value)) for value in (old, new))
    return "".join(list(difflib.unified_diff(before, after))[2:])


def _lines(form: object) -> list[str]:
    text = json.dumps(form, indent=1, ensure_ascii=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return [f"{line}\n" for line in text.split("\n")]
