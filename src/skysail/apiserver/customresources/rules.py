"""`x-kubernetes-validations`: rules in CEL, checked after everything else holds.

A rule sees its node as `self`, and on an update the node as it was as `oldSelf`; a rule that names `oldSelf` is only
checked where there is an old value. Needs the optional extra `skysail[cel]`; without it `RulesMissing` says so when a
definition with rules is created.

Differs: values are dynamically typed, so a rule that upstream's compiler refuses for its types fails when it runs;
    costs are not limited; of Kubernetes' own libraries the list, regex and URL functions are there, quantities and IP
    addresses are not.

Source: apiextensions-apiserver/pkg/apiserver/schema/cel, apiserver/pkg/cel/library, v1.36.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from skysail.api.errors import SkysailError
from skysail.api.raw import Raw
from skysail.apiserver.contract import OMITTED, FieldError
from skysail.apiserver.customresources.structural import Schema

_REASONS = {
    "FieldValueInvalid": "Invalid",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required",
    "FieldValueDuplicate": "Duplicate",
}
_OLD = re.compile(r"\boldSelf\b")
_KEYWORDS = (
    "true false null in as break const continue else for function if import let loop package namespace return var void "
    "while"
)
_RESERVED = frozenset(_KEYWORDS.split())
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class RulesMissing(SkysailError):
    """CEL is not installed."""


class RuleError(SkysailError):
    """A rule that does not compile."""


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_strings
    except ImportError as error:
        raise RulesMissing(
            "validation rules need the CEL library: install skysail[cel], or leave x-kubernetes-validations out"
        ) from error
    dynamic = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN}
    library = cel.CelExtension("kubernetes", [_declare(cel, name, each) for name, each in _FUNCTIONS.items()])
    return cel.NewEnv(variables=dynamic, extensions=[ext_strings.ExtStrings(), library])


def _declare(cel: Any, name: str, function: Callable[..., Any]) -> Any:
    count = function.__code__.co_argcount
    member = name != "isURL"
    overload = cel.Overload(
        id=f"kubernetes_{name}",
        return_type=cel.Type.DYN,
        parameters=[cel.Type.DYN] * count,
        is_member=member,
        impl=function,
    )
    return cel.FunctionDecl(name, [overload])


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [match[0] for match in re.finditer(pattern, text)]


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and (parts.netloc or parts.path.startswith("/"))) or text.startswith("/")


def _sum(items: Sequence[Any]) -> Any:
    return sum(items)


def _min(items: Sequence[Any]) -> Any:
    return min(items)


def _max(items: Sequence[Any]) -> Any:
    return max(items)


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(items))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "find": _find,
    "findAll": _find_all,
    "isURL": _is_url,
    "sum": _sum,
    "min": _min,
    "max": _max,
    "isSorted": _is_sorted,
}


@lru_cache(maxsize=4096)
def compile_rule(text: str) -> Any:
    """A rule, ready to run.

    Raises:
        RulesMissing: CEL is not installed.
        RuleError: It does not compile.
    """
    environment = _environment()
    try:
        return environment.compile(text)
    except RuntimeError as error:
        raise RuleError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return line.removeprefix("INVALID_ARGUMENT: ").strip()


def has_rules(schema: Schema) -> bool:
    """Whether any node of a schema has rules."""
    return any(node.raw.get("x-kubernetes-validations") for _, node in schema.walk())


def check_rules(new: object, old: object | None, schema: Schema | bool, path: str = "") -> Iterator[FieldError]:
    """The rules that fail, in all nodes.

    Args:
        new: The value.
        old: The value it replaces, or None.
        schema: Its node.
        path: Where it stands.
    """
    if isinstance(schema, bool) or new is None:
        return
    for rule in schema.raw.get("x-kubernetes-validations") or ():
        if old is not None or not _OLD.search(rule["rule"]) or rule.get("optionalOldSelf"):
            failure = _check_rule(rule, new, old, schema, path)
            if failure is not None:
                yield failure
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for key, item in new.items():
            below = f"{path}.{key}" if path else key
            yield from check_rules(item, before.get(key), schema.child(key), below)
    elif isinstance(new, list):
        for index, item in enumerate(new):
            match = _old_item(item, old, schema)
            yield from check_rules(item, match, schema.items or False, f"{path}[{index}]")


def _old_item(item: object, old: object | None, schema: Schema) -> object | None:
    keys = schema.raw.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    mark = [item.get(key) for key in keys]
    return next((each for each in old if isinstance(each, dict) and [each.get(key) for key in keys] == mark), None)


def _check_rule(rule: Raw, new: object, old: object | None, schema: Schema, path: str) -> FieldError | None:
    data = {"self": to_cel(new, schema), "oldSelf": to_cel(old, schema)}
    text = rule["rule"].strip()
    outcome = compile_rule(text).eval(data=data).value()
    if outcome is True:
        return None
    where = path + rule.get("fieldPath", "")
    if outcome is not False:
        detail = f"{outcome} evaluating rule: {text}"
        return FieldError(where or "<nil>", "Invalid", OMITTED, detail)
    return FieldError(
        where.lstrip(".") or "<nil>",
        _REASONS.get(rule.get("reason", ""), "Invalid"),  # type: ignore[arg-type]
        OMITTED,
        _message(rule, data, text),
    )


def _message(rule: Raw, data: Mapping[str, object], text: str) -> str:
    if rule.get("messageExpression"):
        made = compile_rule(rule["messageExpression"]).eval(data=data).value()
        if isinstance(made, str) and made.strip() and "\n" not in made:
            return made
    return rule.get("message") or f"failed rule: {text}"


def to_cel(value: object, schema: Schema | bool) -> object:
    """A value as rules see it: escaped field names, times as times."""
    if isinstance(value, dict):
        if isinstance(schema, bool):
            return value
        return {
            escape(key) if key in schema.properties else key: to_cel(item, schema.child(key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [to_cel(item, schema if isinstance(schema, bool) else schema.items or False) for item in value]
    if isinstance(value, str) and not isinstance(schema, bool) and schema.raw.get("format") == "date-time":
        return datetime.fromisoformat(value)
    return value


def escape(name: str) -> str:
    """A field's name as an identifier of CEL."""
    if name in _RESERVED:
        return f"__{name}__"
    if _IDENTIFIER.fullmatch(name) and "__" not in name:
        return name
    escaped = name.replace("__", "__underscores__")
    return escaped.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
