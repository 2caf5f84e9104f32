"""Whether a value is what its schema says, in the words of kube-openapi's validator.

Source: k8s.io/kube-openapi/pkg/validation/{validate,errors}, apiextensions-apiserver/pkg/apiserver/validation, v1.36.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache

import msgspec

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, duplicate, invalid, not_supported, quote, required, too_long
from skysail.apiserver.customresources.structural import Schema

BLOCKING = frozenset({"NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"})
UNCHECKED = FieldError(
    "<nil>",
    "Invalid",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
)
_ENVELOPE = ("apiVersion", "kind", "metadata")
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def check_object(obj: Raw, schema: Schema) -> list[FieldError]:
    """All broken rules of a whole object; its metadata is checked elsewhere."""
    return [*_check_object(obj, schema, "", envelope=True), *check_lists(obj, schema, "")]


def type_name(value: object) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def check(value: object, schema: Schema | bool, path: str) -> Iterator[FieldError]:
    """All broken rules of a value."""
    if isinstance(schema, bool):
        return
    if value is None and schema.nullable:
        return
    kind = type_name(value)
    if schema.types and not any(_is_of_type(value, kind, wanted) for wanted in schema.types):
        wanted = ",".join(schema.types)
        yield FieldError(path, "TypeInvalid", kind, f"{path} in body must be of type {wanted}: {quote(kind)}")
        if kind == "number" and "integer" in schema.types:
            detail = f"Checked value must be of type integer (default format) in {path}"
            yield FieldError("<nil>", "Invalid", "", detail)
        return
    if schema.raw.get("enum") is not None and value not in schema.raw["enum"]:
        yield not_supported(path, value, [_as_text(each) for each in schema.raw["enum"]])
    checker = _BY_TYPE.get(kind)
    if checker is not None:
        yield from checker(value, schema, path)
    yield from _check_combined(value, schema, path)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_of_type(value: object, kind: str, wanted: str) -> bool:
    if kind == wanted or (wanted == "number" and kind == "integer"):
        return True
    return wanted == "integer" and isinstance(value, float) and value.is_integer()


def _check_number(value: object, schema: Schema, path: str) -> Iterator[FieldError]:
    if not isinstance(value, int | float):
        return
    raw = schema.raw
    maximum, minimum, multiple = raw.get("maximum"), raw.get("minimum"), raw.get("multipleOf")
    if maximum is not None:
        strict = raw.get("exclusiveMaximum")
        if value > maximum or (strict and value == maximum):
            bound = "less than" if strict else "less than or equal to"
            yield invalid(path, value, f"{path} in body should be {bound} {_number(maximum)}")
    if minimum is not None:
        strict = raw.get("exclusiveMinimum")
        if value < minimum or (strict and value == minimum):
            bound = "greater than" if strict else "greater than or equal to"
            yield invalid(path, value, f"{path} in body should be {bound} {_number(minimum)}")
    if multiple and not math.isclose(value / multiple, round(value / multiple), abs_tol=1e-9):
        yield invalid(path, value, f"{path} in body should be a multiple of {_number(multiple)}")
    low_high = _RANGES.get(raw.get("format", ""))
    if low_high and not low_high[0] <= value <= low_high[1]:
        detail = f"Checked value must be of type integer with format {raw['format']} in {path}"
        yield FieldError("<nil>", "Invalid", "", detail)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _check_text(value: object, schema: Schema, path: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        return
    raw = schema.raw
    longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is not None and len(value) > longest:
        yield too_long(path, longest)
    elif shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    elif pattern and not compiled(pattern).search(value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    wanted = raw.get("format", "")
    if wanted in FORMATS and not FORMATS[wanted](value):
        yield invalid(path, value, f"{path} in body must be of type {wanted}: {quote(value)}")


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of a schema (RE2) as Python reads it."""
    return re.compile(pattern.replace(r"\z", r"\Z"))


def _check_array(value: object, schema: Schema, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        return
    most, least = schema.raw.get("maxItems"), schema.raw.get("minItems")
    if most is not None and len(value) > most:
        yield FieldError(path, "TooMany", len(value), f"must have at most {most} items")
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    if schema.items is not None:
        for index, item in enumerate(value):
            yield from check(item, schema.items, f"{path}[{index}]")


def _check_map(value: object, schema: Schema, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        yield from _check_object(value, schema, path, envelope=schema.embedded)


def _check_object(obj: Raw, schema: Schema, path: str, *, envelope: bool) -> Iterator[FieldError]:
    most, least = schema.raw.get("maxProperties"), schema.raw.get("minProperties")
    if most is not None and len(obj) > most:
        yield FieldError(path, "TooMany", len(obj), f"must have at most {most} items")
    if least is not None and len(obj) < least:
        yield invalid(path, len(obj), f"{path} in body should have at least {least} properties")
    for key in obj:
        if not (envelope and key in _ENVELOPE):
            yield from check(obj[key], schema.child(key), f"{path}.{key}" if path else key)
    for key in schema.required:
        if key not in obj:
            yield required(f"{path}.{key}" if path else key)


def _check_combined(value: object, schema: Schema, path: str) -> Iterator[FieldError]:
    raw = schema.raw
    if raw.get("allOf") and not all(_fits(value, each) for each in raw["allOf"]):
        yield invalid(path, "", f"{_name(path)} must validate all the schemas (allOf)")
    if raw.get("anyOf") and not any(_fits(value, each) for each in raw["anyOf"]):
        yield invalid(path, "", f"{_name(path)} must validate at least one schema (anyOf)")
    if raw.get("oneOf"):
        valid = sum(_fits(value, each) for each in raw["oneOf"])
        if valid != 1:
            found = "Found none valid" if valid == 0 else f"Found {valid} valid alternatives"
            yield invalid(path, "", f"{_name(path)} must validate one and only one schema (oneOf). {found}")
    if raw.get("not") and _fits(value, raw["not"]):
        yield invalid(path, "", f"{_name(path)} must not validate the schema (not)")


def _name(path: str) -> str:
    return quote(path)


def _fits(value: object, raw: Raw) -> bool:
    node = Schema(raw)
    node.preserve = True
    return next(check(value, node, ""), None) is None


_BY_TYPE: Mapping[str, Callable[[object, Schema, str], Iterator[FieldError]]] = {
    "integer": _check_number,
    "number": _check_number,
    "string": _check_text,
    "array": _check_array,
    "object": _check_map,
}


def check_lists(value: object, schema: Schema | bool, path: str) -> Iterator[FieldError]:
    """Items that come twice in lists that are sets or maps."""
    if isinstance(schema, bool):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from check_lists(item, schema.child(key), f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _check_repeated(value, schema, path)
        for index, item in enumerate(value):
            yield from check_lists(item, schema.items or False, f"{path}[{index}]")


def _check_repeated(items: Sequence[object], schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.raw.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    keys = schema.raw.get("x-kubernetes-list-map-keys") or ()
    seen: list[object] = []
    for index, item in enumerate(items):
        mark: object = item
        if kind == "map":
            mark = {key: item[key] for key in keys if key in item} if isinstance(item, dict) else item
        if mark in seen:
            yield duplicate(f"{path}[{index}]", mark)
        else:
            seen.append(mark)


def _is_datetime(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _matcher(pattern: str) -> Callable[[str], bool]:
    expression = re.compile(pattern)
    return lambda text: expression.fullmatch(text) is not None


_UUID = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?%s[0-9a-fA-F]{3}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _is_datetime,
    "date": _is_date,
    "uuid": _matcher(_UUID % "[0-9a-fA-F]"),
    "uuid3": _matcher(_UUID % "3"),
    "uuid4": _matcher(_UUID % "4"),
    "uuid5": _matcher(_UUID % "5"),
    "email": _matcher(r"[^@\s]+@[^@\s]+"),
    "hostname": _matcher(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"),
    "ipv4": _matcher(r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}"),
    "byte": _matcher(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "duration": _matcher(r"[+-]?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+|0"),
}
