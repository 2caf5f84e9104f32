"""Request bodies: bytes and a content type in, an object in normal form and warnings out.

The way of a body: text (JSON, YAML or protobuf) -> values -> whose kind is it -> `readers`; and when something is odd,
`diagnosis` for the words. Valid JSON without surprises never leaves the fast path.

Source: apiserver/pkg/endpoints/handlers (transformDecodeError), apimachinery/pkg/runtime/serializer, v1.36.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from skysail.api.errors import BadRequest, UnsupportedMediaType
from skysail.api.raw import Raw
from skysail.apiserver.contract import quote
from skysail.apiserver.decoding import protobuf
from skysail.apiserver.decoding.diagnosis import Unreadable, diagnose
from skysail.apiserver.decoding.json_text import JsonSyntaxError, parse, parse_careful, plain
from skysail.apiserver.decoding.readers import Notes, Surprise, reader_of
from skysail.apiserver.decoding.respelling import respell
from skysail.apiserver.decoding.yaml_text import YamlSyntaxError, parse_yaml
from skysail.apiserver.go_values import json_kind
from skysail.apiserver.schema import TypeInfo

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
ACCEPTED = f"{JSON}, {YAML}, {PROTOBUF}"
SCHEME = '"pkg/api/legacyscheme/scheme.go:30"'

# Group versions under which an old client may still send a body of a kind, and what it is read as.
_STILL_READ: Mapping[tuple[str, str, str], tuple[str, str, str]] = {
    ("policy", "v1beta1", "Eviction"): ("policy", "v1", "Eviction"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Group, version and kind of a body."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


def media_type(content_type: str) -> str:
    """The bare media type of a Content-Type header; no header means JSON."""
    bare = content_type.partition(";")[0].strip().lower()
    return bare or JSON


def decode_body(
    body: bytes,
    content_type: str,
    type_info: TypeInfo,
    field_validation: str = "Warn",
    *,
    kind: tuple[str, str, str] | None = None,
) -> tuple[Raw, list[str]]:
    """The object a request's body holds, in normal form.

    Args:
        body: As sent.
        content_type: The header, "" for none.
        type_info: The type the endpoint expects.
        field_validation: Ignore, Warn or Strict.
        kind: Group, version and kind of what is expected; by default those of the type.

    Returns:
        The object, `kind` and `apiVersion` filled in, and texts for Warning headers.

    Raises:
        BadRequest: It cannot be read, or is of another kind, or holds unknown or repeated fields under Strict.
        UnsupportedMediaType: The content type is unknown.
    """
    expected = Kind(*(kind or (type_info.gvk[0] if type_info.gvk else ("", "", ""))))
    media = media_type(content_type)
    if media == PROTOBUF:
        return _decode_protobuf(body, type_info, expected), []
    if media not in (JSON, YAML):
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
        )
    strict: list[str] = []
    if media == YAML:
        try:
            value, problem = parse_yaml(body)
        except YamlSyntaxError as error:
            raise _unrecognized(body, expected, str(error)) from error
        strict = [problem] if problem else []
        text = b""
    else:
        try:
            value = parse(body)
        except JsonSyntaxError as error:
            raise _unrecognized(body, expected, f"couldn't get version/kind; json parse error: {error}") from error
        text = body
    found = _kind_of(value, body, expected)
    _check_kind(found, expected, type_info)
    return _read(cast("Raw", value or {}), text, type_info, found, expected, field_validation, strict)


def _read(
    value: Raw, text: bytes, info: TypeInfo, found: Kind, expected: Kind, validation: str, strict: list[str]
) -> tuple[Raw, list[str]]:
    notes = Notes(spelled=bool(text))
    try:
        out = reader_of(info)(value, notes)
        odd = notes.unknown or (text and _may_repeat(text, notes.keys))
    except (Surprise, RecursionError):
        out, odd = None, True
    if odd and (out is None or validation != "Ignore"):
        try:
            careful = parse_careful(text) if text else value
            strict = strict + diagnose(careful, info).strict
        except (Unreadable, JsonSyntaxError) as error:
            raise _cannot_be_handled(found, expected, str(error)) from error
        except RecursionError:
            raise _cannot_be_handled(found, expected, "exceeded max depth") from None
        if out is None:
            out = reader_of(info)(_respelled(careful, info), Notes())
    if strict and validation == "Strict":
        raise _cannot_be_handled(found, expected, f"strict decoding error: {', '.join(strict)}")
    obj = {"kind": expected.kind, "apiVersion": expected.api_version, **cast("Raw", out)}
    obj["kind"], obj["apiVersion"] = expected.kind, expected.api_version
    return obj, strict if validation == "Warn" else []


def _respelled(value: object, info: TypeInfo) -> object:
    """A carefully parsed value that a reader can read: quantities written as numbers become their text."""
    return plain(respell(value, info))


def _may_repeat(text: bytes, keys: int) -> bool:
    """Whether a key may have come twice: there are more `":` in the text than keys in the value.

    Strings that hold `":` only make this say yes too often. A space before a colon hides it from the count.
    """
    if text.count(b'":') != keys:
        return True
    return any(spaced in text for spaced in (b" :", b"\t:", b"\n:", b"\r:"))


def _kind_of(value: object, body: bytes, expected: Kind) -> Kind:
    """Whose body it says it is; what is missing is taken from what is expected.

    Raises:
        BadRequest: It is no object, or of another kind or version.
    """
    if value is None:
        value = {}
    if not isinstance(value, dict):
        struct = (
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
        problem = f"json: cannot unmarshal {json_kind(value)} into Go value of type {struct}"
        raise _unrecognized(body, expected, f"couldn't get version/kind; json parse error: {problem}")
    for name in ("apiVersion", "kind"):
        if value.get(name) is not None and not isinstance(value[name], str):
            problem = f"json: cannot unmarshal {json_kind(value[name])} into Go struct field .{name} of type string"
            raise _unrecognized(body, expected, f"couldn't get version/kind; json parse error: {problem}")
    return _resolve(value.get("apiVersion") or "", value.get("kind") or "", expected)


def _resolve(api_version: str, kind: str, expected: Kind) -> Kind:
    group, _, version = api_version.rpartition("/") if api_version else (expected.group, "", expected.version)
    return Kind(group, version, kind or expected.kind)


def _check_kind(found: Kind, expected: Kind, info: TypeInfo) -> None:
    if found.kind == expected.kind == "DeleteOptions":
        return
    if found == expected or _STILL_READ.get((found.group, found.version, found.kind)) == (
        expected.group, expected.version, expected.kind,
    ):  # fmt: skip
        return
    wanted = (found.group, found.version, found.kind)
    if not any(wanted in other.gvk for other in info.types.values()):
        problem = f"no kind {quote(found.kind)} is registered for version {quote(found.api_version)} in scheme {SCHEME}"
        raise _cannot_be_handled(found, expected, problem)
    if found.kind == expected.kind and found.group == expected.group:
        raise BadRequest(
            f"the API version in the data ({found.api_version}) does not match "
            f"the expected API version ({expected.api_version})"
        )
    problem = (
        f"converting ({found.version}.{found.kind}) to ({_internal(expected)}.{expected.kind}): unknown conversion"
    )
    raise _cannot_be_handled(found, expected, problem)


def _internal(kind: Kind) -> str:
    return kind.group.partition(".")[0] or "core"


def _cannot_be_handled(found: Kind, expected: Kind, problem: str) -> BadRequest:
    return BadRequest(
        f"{found.kind} in version {quote(found.version)} cannot be handled as a {expected.kind}: {problem}"
    )


def _unrecognized(body: bytes, expected: Kind, problem: str) -> BadRequest:
    return BadRequest(
        f"the object provided is unrecognized (must be of type {expected.kind}): {problem} ({_summary(body)})"
    )


def _summary(body: bytes, limit: int = 30) -> str:
    if not body:
        return "<empty>"
    head = body[:limit]
    shown = head.decode("utf-8", "replace") if body.startswith(b"{") else head.hex()
    return shown + " ..." if len(body) > limit else shown


def _decode_protobuf(body: bytes, info: TypeInfo, expected: Kind) -> Raw:
    try:
        envelope = protobuf.open_envelope(body)
    except protobuf.NotProtobuf:
        problem = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        raise _unrecognized(body, expected, problem) from None
    except protobuf.Malformed as error:
        raise _unrecognized(body, expected, str(error)) from error
    found = _resolve(envelope.api_version, envelope.kind, expected)
    _check_kind(found, expected, info)
    try:
        value = protobuf.decode_message(envelope.raw, info)
        out = reader_of(info)(value, Notes())
    except (protobuf.Malformed, Surprise, RecursionError) as error:
        raise _cannot_be_handled(found, expected, str(error) or "the message does not fit its type") from error
    return {"kind": expected.kind, "apiVersion": expected.api_version, **cast("Raw", out)}
