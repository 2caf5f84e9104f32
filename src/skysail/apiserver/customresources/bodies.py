"""Reading the body of a custom object: any JSON in, a pruned object with sound metadata out.

Types are not checked here: what is of the wrong type is 422 with a cause, not 400.

Source: apiextensions-apiserver/pkg/apiserver/customresource_handler.go (schemaCoercingDecoder), v1.36.
"""

from skysail.api.errors import BadRequest
from skysail.api.raw import Raw
from skysail.apiserver.contract import ResourceInfo
from skysail.apiserver.customresources.structural import OBJECT_META, Schema, prune
from skysail.apiserver.decoding import normalize
from skysail.apiserver.decoding.body import JSON, YAML, media_type
from skysail.apiserver.decoding.diagnosis import duplicates
from skysail.apiserver.decoding.json_text import JsonSyntaxError, parse_careful, plain
from skysail.apiserver.decoding.yaml_text import YamlSyntaxError, parse_yaml
from skysail.apiserver.schema import TypeInfo
from skysail.apiserver.status import unsupported_media_type

_ENVELOPE = ("apiVersion", "kind", "metadata")


def decode_custom(
    body: bytes,
    content_type: str,
    resource: ResourceInfo,
    schema: Schema,
    type_info: TypeInfo,
    validation: str,
    warnings: list[str],
) -> Raw:
    """The custom object a request's body holds; texts for Warning headers are appended.

    Raises:
        BadRequest: It cannot be read, is of another version, or holds unknown fields under Strict.
        UnsupportedMediaType: It is neither JSON nor YAML.
    """
    obj, findings = _parse(body, content_type, resource)
    expected = resource.api_version
    version = obj.setdefault("apiVersion", expected)
    obj.setdefault("kind", resource.kind)
    if version != expected:
        if validation == "Warn":
            warnings.extend(f'unknown field "{key}"' for key in sorted(obj) if key not in _ENVELOPE)
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({expected})"
        )
    obj, found = shape(obj, resource, schema, type_info, findings, validation)
    warnings.extend(found)
    return obj


def shape(
    obj: Raw, resource: ResourceInfo, schema: Schema, type_info: TypeInfo, findings: list[str], validation: str
) -> tuple[Raw, list[str]]:
    """Prune an object and put its metadata in order; texts for Warning headers.

    Raises:
        BadRequest: Its metadata is not sound; or something was found under Strict.
    """
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise _unfit(resource, "json: cannot unmarshal metadata into Go value of type v1.ObjectMeta")
    obj["metadata"] = normalize(metadata, type_info.types[OBJECT_META])
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value is not None}
    findings = findings + [f'unknown field "{path}"' for path in prune(obj, schema)]
    if findings and validation == "Strict":
        raise _unfit(resource, f"strict decoding error: {', '.join(findings)}")
    return obj, findings if validation == "Warn" else []


def _unfit(resource: ResourceInfo, problem: str) -> BadRequest:
    return BadRequest(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problem}'
    )


def _parse(body: bytes, content_type: str, resource: ResourceInfo) -> tuple[Raw, list[str]]:
    media = media_type(content_type)
    if media not in (JSON, YAML):
        raise unsupported_media_type()
    try:
        if media == YAML:
            value, problem = parse_yaml(body)
            findings = [problem] if problem else []
        else:
            careful = parse_careful(body)
            value, findings = plain(careful), duplicates(careful)
    except (JsonSyntaxError, YamlSyntaxError) as error:
        problem = f"couldn't get version/kind; json parse error: {error}"
        raise BadRequest(f"the object provided is unrecognized (must be of type {resource.kind}): {problem}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"the object provided is unrecognized (must be of type {resource.kind}): it is no object")
    return value, findings
