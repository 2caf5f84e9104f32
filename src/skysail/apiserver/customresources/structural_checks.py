"""What a version's schema must be: structural, with defaults that fit and rules that compile.

Source: apiextensions-apiserver/pkg/apiserver/schema/validation.go, pkg/apis/apiextensions/validation, v1.36.
"""

import re
from collections.abc import Iterator, Mapping

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, forbidden, invalid, not_supported, required
from skysail.apiserver.customresources.checking import check, compiled
from skysail.apiserver.customresources.rules import RuleError, RulesMissing, compile_rule
from skysail.apiserver.customresources.structural import Schema

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NEVER = ("$ref", "definitions", "dependencies", "additionalItems", "patternProperties", "id")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_ONLY_VALUES: Mapping[str, str] = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
}


def check_schema(raw: Raw, path: str) -> list[FieldError]:
    """All faults of a whole `openAPIV3Schema`."""
    errors = list(_check_node(raw, path, "root"))
    if errors:
        return errors
    for place, node in Schema(raw).walk(path):
        errors += _check_default(node, place)
        errors += _check_rules(node, place)
    return errors


def _check_node(raw: Raw, path: str, place: str) -> Iterator[FieldError]:
    kind = raw.get("type", "")
    if raw.get("nullable") and place == "root":
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    yield from _check_type(raw, kind, path, place)
    for name in _NEVER:
        if raw.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if raw.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    if raw.get("additionalProperties") not in (None, False):
        if raw.get("properties"):
            yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
        elif place == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if raw.get("pattern"):
        yield from _check_pattern(raw["pattern"], f"{path}.pattern")
    yield from _check_list(raw, kind, path)
    yield from _check_below(raw, kind, path)
    for junctor in _JUNCTORS:
        for index, each in enumerate(raw.get(junctor) or ()):
            if not _is_int_or_string_pattern(raw, junctor):
                yield from _check_value_node(each, f"{path}.{junctor}[{index}]")
    if raw.get("not"):
        yield from _check_value_node(raw["not"], f"{path}.not")


def _check_type(raw: Raw, kind: str, path: str, place: str) -> Iterator[FieldError]:
    free = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    if not kind:
        words = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
        if place == "root" or not free:
            yield required(f"{path}.type", f"must not be empty {words[place]}")
    elif kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    elif place == "root" and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _check_pattern(pattern: str, path: str) -> Iterator[FieldError]:
    try:
        compiled(pattern)
    except re.error as error:
        yield invalid(path, pattern, f"must be a valid regular expression, but isn't: {error}")


def _check_list(raw: Raw, kind: str, path: str) -> Iterator[FieldError]:
    list_type, keys = raw.get("x-kubernetes-list-type"), raw.get("x-kubernetes-list-map-keys") or ()
    items = raw.get("items") or {}
    if list_type is not None:
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "map", "set"))
        if kind != "array":
            yield invalid(f"{path}.type", kind, "must be array if x-kubernetes-list-type is specified")
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(f"{path}.x-kubernetes-list-type", list_type, detail)
    if list_type == "map":
        if not keys:
            detail = "must not be empty if x-kubernetes-list-type is map"
            yield required(f"{path}.x-kubernetes-list-map-keys", detail)
        properties, wanted = items.get("properties") or {}, items.get("required") or ()
        for key in keys:
            node = properties.get(key)
            if node is None:
                detail = "entries must all be names of item properties"
                yield invalid(f"{path}.x-kubernetes-list-map-keys", list(keys), detail)
            elif key not in wanted and "default" not in node:
                yield required(
                    f"{path}.items.properties[{key}].default",
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
                    "property",
                )


def _check_below(raw: Raw, kind: str, path: str) -> Iterator[FieldError]:
    for name, node in (raw.get("properties") or {}).items():
        yield from _check_node(node, f"{path}.properties[{name}]", "field")
    items = raw.get("items")
    if isinstance(items, list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    elif items is not None:
        yield from _check_node(items, f"{path}.items", "item")
    elif kind == "array":
        yield required(f"{path}.items", "must be specified")
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        yield from _check_node(additional, f"{path}.additionalProperties", "field")


def _is_int_or_string_pattern(raw: Raw, junctor: str) -> bool:
    alternatives = [{"type": "integer"}, {"type": "string"}]
    return bool(raw.get("x-kubernetes-int-or-string")) and (
        raw.get(junctor) == alternatives or any(each == {"anyOf": alternatives} for each in raw.get(junctor) or ())
    )


def _check_value_node(raw: Raw, path: str) -> Iterator[FieldError]:
    for name, detail in _ONLY_VALUES.items():
        if raw.get(name):
            yield forbidden(f"{path}.{name}", detail)
    for name, node in (raw.get("properties") or {}).items():
        yield from _check_value_node(node, f"{path}.properties[{name}]")
    if isinstance(raw.get("items"), dict):
        yield from _check_value_node(raw["items"], f"{path}.items")
    for junctor in _JUNCTORS:
        for index, each in enumerate(raw.get(junctor) or ()):
            yield from _check_value_node(each, f"{path}.{junctor}[{index}]")


def _check_default(node: Schema, path: str) -> Iterator[FieldError]:
    if node.has_default:
        for error in check(node.raw["default"], node, f"{path}.default"):
            if not (error.type == "Required" and node.raw["default"] == {}):
                yield error


def _check_rules(node: Schema, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(node.raw.get("x-kubernetes-validations") or ()):
        here = f"{path}.x-kubernetes-validations[{index}]"
        if not (rule.get("rule") or "").strip():
            yield required(f"{here}.rule", "rule is not specified")
            continue
        message = rule.get("message")
        if message is not None and not message.strip():
            yield invalid(f"{here}.message", message, "must be non-empty if specified")
        elif message and "\n" in message.strip():
            yield invalid(f"{here}.message", message, "must not contain line breaks")
        for name in ("rule", "messageExpression"):
            if rule.get(name):
                yield from _check_expression(rule, name, here)


def _check_expression(rule: Raw, name: str, path: str) -> Iterator[FieldError]:
    try:
        compile_rule(rule[name].strip())
    except RulesMissing as missing:
        yield forbidden(f"{path}.{name}", str(missing))
    except RuleError as error:
        yield invalid(f"{path}.{name}", rule, f"compilation failed: {error}")
