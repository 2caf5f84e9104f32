"""The bodies of PATCH requests, and the check of what a patch made of an object.

A patch that cannot be read is 400. One that makes something unreadable of the object is 422, with the whole document
(or, for a strategic patch, the patch as Go prints maps) in the message.

Source: apiserver/pkg/endpoints/handlers/patch.go, v1.36.
"""

from typing import cast

import msgspec

from skysail.api.errors import BadRequest, Invalid, Status, StatusCause, StatusDetails, TooLarge
from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, invalid
from skysail.apiserver.decoding.diagnosis import Accent, Unreadable, diagnose, duplicates
from skysail.apiserver.decoding.json_text import JsonSyntaxError, parse, parse_careful, plain
from skysail.apiserver.decoding.ordering import canonical
from skysail.apiserver.decoding.readers import Notes, Surprise, reader_of
from skysail.apiserver.decoding.yaml_text import YamlSyntaxError, parse_yaml
from skysail.apiserver.go_values import json_kind, print_value
from skysail.apiserver.schema import TypeInfo

MAX_OPERATIONS = 10_000
_LIBRARY_TYPES = ("jsonpatch.Patch", "jsonpatch.Operation")
_OPERATION_FIELDS = ("op", "path", "from", "value")


def read_json_patch(body: bytes, field_validation: str) -> tuple[list[Raw], list[str]]:
    """The operations of a JSON patch, and findings (`json patch unknown field "[0].foo"`).

    Raises:
        BadRequest: It is no list of operations.
        TooLarge: It has more than ten thousand.
    """
    # Without field validation upstream leaves the whole reading to its patch library, which names other types.
    checked = field_validation != "Ignore"
    prefix = "error decoding patch: " if checked else ""
    value = _parse(body, prefix=prefix)
    whole, each = ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp") if checked else _LIBRARY_TYPES
    if not isinstance(value, list):
        raise _mistyped(value, f"value of type {whole}", prefix)
    for operation in value:
        if not isinstance(operation, dict):
            raise _mistyped(operation, f"value of type {each}", prefix)
        for name in ("op", "path", "from") if checked else ():
            if not isinstance(operation.get(name, ""), str | None):
                raise _mistyped(operation[name], f"struct field jsonPatchOp.{name} of type string", prefix)
    if len(value) > MAX_OPERATIONS:
        raise TooLarge(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(value)}")
    findings: list[str] = []
    if checked:
        unknown = [
            f'unknown field "[{index}].{name}"'
            for index, operation in enumerate(value)
            for name in operation
            if name not in _OPERATION_FIELDS
        ]
        findings = [f"json patch {finding}" for finding in (*duplicates(parse_careful(body)), *unknown)]
    return cast("list[Raw]", value), findings


def read_merge_patch(body: bytes, field_validation: str) -> tuple[Raw, list[str]]:
    """A merge patch, and the keys that came twice.

    Raises:
        BadRequest: It is no object.
    """
    if field_validation == "Ignore":
        try:
            value = parse(body)
        except JsonSyntaxError:
            raise BadRequest("Invalid JSON Patch") from None
        return _object(value, "error decoding patch: "), []
    return _object(_parse(body), "error decoding patch: "), _repeated(body, field_validation)


def read_strategic_patch(body: bytes, field_validation: str) -> tuple[Raw, list[str]]:
    """A strategic merge patch, and the keys that came twice.

    Raises:
        BadRequest: It is no object.
    """
    return _object(_parse(body, prefix=""), ""), _repeated(body, field_validation)


def read_apply_patch(body: bytes, field_validation: str) -> tuple[Raw, list[str]]:
    """What a server-side apply wants (YAML or JSON), and the keys that came twice.

    Raises:
        BadRequest: It is no object; or keys came twice, under Strict.
    """
    try:
        value, problem = parse_yaml(body) if not body.lstrip().startswith(b"{") else _json_as_yaml(body)
    except (YamlSyntaxError, JsonSyntaxError) as error:
        raise BadRequest(f"error decoding YAML: {error}") from error
    if not isinstance(value, dict):
        prefix = "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
        raise _mistyped(value, "value of type map[string]interface {}", prefix)
    if problem and field_validation == "Strict":
        raise BadRequest(f"error strict decoding YAML: {problem}")
    return cast("Raw", value), [problem] if problem and field_validation == "Warn" else []


def _json_as_yaml(body: bytes) -> tuple[object, str]:
    """JSON is YAML, and reading it as JSON is a hundred times faster; what is not quite JSON is read as YAML."""
    try:
        careful = parse_careful(body)
    except JsonSyntaxError:
        return parse_yaml(body)
    if duplicates(careful):
        return parse_yaml(body)
    return plain(careful), ""


def _parse(body: bytes, prefix: str = "error decoding patch: ") -> object:
    try:
        return parse(body)
    except JsonSyntaxError as error:
        raise BadRequest(f"{prefix}{error}") from error


def _mistyped(value: object, wanted: str, prefix: str) -> BadRequest:
    return BadRequest(f"{prefix}json: cannot unmarshal {json_kind(value)} into Go {wanted}")


def _object(value: object, prefix: str) -> Raw:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _mistyped(value, "value of type map[string]interface {}", prefix)
    return cast("Raw", value)


def _repeated(body: bytes, field_validation: str) -> list[str]:
    return [] if field_validation == "Ignore" else duplicates(parse_careful(body))


def check_patched(
    document: Raw,
    info: TypeInfo,
    field_validation: str,
    *,
    findings: list[str],
    strategic_patch: Raw | None = None,
    touched: Raw | None = None,
) -> tuple[Raw, list[str]]:
    """What a patch made, in normal form, and texts for Warning headers.

    Args:
        document: The patched object.
        info: Its type.
        field_validation: Ignore, Warn or Strict.
        findings: What reading the patch already found.
        strategic_patch: The patch itself when it was a strategic one: messages show it instead of the document.
        touched: Which objects another patch went through, as nested keys: messages show their keys sorted.

    Raises:
        Invalid: The document does not fit its type; or holds unknown fields, or the patch repeated keys, under Strict.
    """
    notes = Notes()
    try:
        out: object = reader_of(info)(document, notes)
    except (Surprise, RecursionError):
        out = None
    strict = list(findings) if field_validation != "Ignore" else []
    if out is None or (notes.unknown and field_validation != "Ignore"):
        accent: Accent = "json" if strategic_patch is None else "map"
        try:
            strict += diagnose(document, info, accent).strict
        except Unreadable as error:
            raise _spoiled(document, info, strategic_patch, touched, str(error)) from error
        except RecursionError:
            raise _spoiled(document, info, strategic_patch, touched, "exceeded max depth") from None
        if out is None:
            raise _spoiled(document, info, strategic_patch, touched, "the document does not fit its type")
    if strict and field_validation == "Strict":
        problem = f"strict decoding error: {', '.join(strict)}"
        raise _spoiled(document, info, strategic_patch, touched, problem)
    return cast("Raw", out), strict


def show_patched(document: Raw, info: TypeInfo, touched: Raw | None) -> str:
    """A patched document as messages quote it: Go's order of fields, but sorted where the patch went through."""
    ordered = canonical(document, info)
    metadata = ordered.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        entries = [
            {key: _sorted_through(value) if key == "fieldsV1" else value for key, value in entry.items()}
            if isinstance(entry, dict)
            else entry
            for entry in metadata["managedFields"]
        ]
        ordered["metadata"] = {**metadata, "managedFields": entries}
    return msgspec.json.encode(_sorted_along(ordered, touched or {})).decode()


def _sorted_through(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _sorted_through(value[key]) for key in sorted(value)}


def _sorted_along(value: object, touched: object) -> object:
    if not isinstance(value, dict) or not isinstance(touched, dict):
        return value
    return {key: _sorted_along(value[key], touched.get(key)) for key in sorted(value)}


def _spoiled(document: Raw, info: TypeInfo, strategic_patch: Raw | None, touched: Raw | None, problem: str) -> Invalid:
    shown = show_patched(document, info, touched) if strategic_patch is None else print_value(strategic_patch)
    return _invalid_patch(invalid("patch", shown, problem))


def _invalid_patch(error: FieldError) -> Invalid:
    cause = StatusCause(reason=error.reason, message=error.body, field=error.field)
    message = f' "" is invalid: {error}'
    return Invalid(Status(message=message, reason="Invalid", details=StatusDetails(causes=(cause,)), code=422))
