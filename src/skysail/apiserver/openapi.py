"""OpenAPI v3: an index, and one document a group version, made from the table when first asked for.

kubectl needs three things of it: that every kind has a `patch` operation with a `fieldValidation` parameter (else it
refuses to validate), the merge keys of fields (client-side apply), and the schemas themselves (`kubectl explain`). So
the documents hold every path with its operations and every schema that a kind of the group version leads to; texts are
few. The hashes in the index come from the table, not from the documents, so the index costs nothing.

Source: kube-openapi `handler3`, `builder3`; apiserver/pkg/endpoints/installer.go, v1.36.
Differs: no OpenAPI v2 (clients that ask for it fall back); no document for `/api`, `/apis`, `/version` and the like.
"""

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from skysail.api.ports import Response
from skysail.api.raw import Raw
from skysail.apiserver.contract import ResourceInfo, SubresourceInfo
from skysail.apiserver.schema import FieldInfo, Schema, Shape, TypeInfo
from skysail.apiserver.schema.table import META

ROOT = "/openapi/v3"
_DATE = "Fri, 01 Jan 2100 00:00:00 GMT"
_DESCRIPTIONS: Mapping[str, str] = {
    "apiVersion": "The version of the API this object is written in.",
    "kind": "What kind of object this is.",
    "metadata": "The object's name, labels, owners and other standard metadata.",
    "spec": "What is wanted.",
    "status": "What is observed. Written by controllers.",
    "items": "The objects of the list.",
}
_FORMS: Mapping[str, Raw] = {
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "intstr": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "raw": {"type": "object"},
    "empty": {"type": "object"},
}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_READ_PARAMETERS = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE_PARAMETERS = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_BOOLEANS = frozenset({"allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force"})
_INTEGERS = frozenset({"limit", "timeoutSeconds", "gracePeriodSeconds"})
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"


class OpenAPI:
    """The OpenAPI documents of one server.

    Args:
        schema: The table; resources may come and go.
        version: Shown as the version of the API.
    """

    def __init__(self, schema: Schema, version: str = "v1.36.2") -> None:
        self._schema, self._version = schema, version
        self._generation = -1
        self._index: bytes = b""
        self._hashes: dict[str, str] = {}
        self._documents: dict[str, bytes] = {}

    def answer(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Response | None:
        """The answer to a GET under `/openapi`, or None when there is no such document.

        Args:
            path: As requested.
            query: `hash` is looked at: a document asked for by its hash may be kept for ever.
            headers: With lower-case names; If-None-Match is looked at.
        """
        self._refresh()
        path = path.rstrip("/")
        if path == ROOT:
            head = (("Cache-Control", "no-cache, private"), ("Content-Type", "text/plain; charset=utf-8"))
            return Response(200, head, self._index)
        key = path.removeprefix(ROOT + "/")
        if not path.startswith(ROOT) or key not in self._hashes:
            return None
        return self._document(key, query.get("hash", ""), headers.get("if-none-match", ""))

    def _document(self, key: str, asked_hash: str, known: str) -> Response:
        known_hash = self._hashes[key]
        if asked_hash and asked_hash != known_hash:
            return Response(301, (("Location", f"{ROOT}/{key}?hash={known_hash}"),))
        etag = f'"{known_hash}"'
        kept: tuple[tuple[str, str], ...] = (("Cache-Control", "no-cache, private"),)
        if asked_hash:
            kept = (("Cache-Control", "public, immutable"), ("Expires", _DATE))
        common = (*kept, ("ETag", etag), ("Vary", "Accept"))
        if known == etag:
            return Response(304, common)
        body = self._documents.get(key)
        if body is None:
            group, _, version = key.partition("/")[2].rpartition("/") if key.startswith("apis/") else ("", "", "v1")
            body = self._documents[key] = msgspec.json.encode(self._make(group, version))
        return Response(200, (*common, ("Content-Type", "application/json")), body)

    def _refresh(self) -> None:
        if self._generation == self._schema.generation:
            return
        self._generation = self._schema.generation
        self._documents.clear()
        versions = dict.fromkeys((row.group, row.version) for row in self._schema.resources)
        self._hashes = {_key(*pair): self._hash(*pair) for pair in versions}
        paths = {key: {"serverRelativeURL": f"{ROOT}/{key}?hash={digest}"} for key, digest in self._hashes.items()}
        self._index = msgspec.json.encode({"paths": paths})

    def _hash(self, group: str, version: str) -> str:
        rows = [row for row in self._rows(group, version) if row.custom]
        seed = [self._schema.digest, group, version, self._version]
        for row in rows:
            info = self._schema.type_of(row.group, row.version, row.kind)
            seed += [row.resource, row.kind, *row.subresources]
            seed.append(msgspec.json.encode(info.json_schema).decode() if info is not None else "")
        return hashlib.sha512("\n".join(seed).encode()).hexdigest().upper()

    def _rows(self, group: str, version: str) -> list[ResourceInfo]:
        return [row for row in self._schema.resources if (row.group, row.version) == (group, version)]

    def _make(self, group: str, version: str) -> Raw:
        paths: Raw = {}
        needed: dict[str, TypeInfo] = {}
        for row in self._rows(group, version):
            for path, item in _paths_of(row):
                paths[path] = item
            kinds = {(row.group, row.version, row.kind)} | {
                (sub.group, sub.version, sub.kind) for sub in row.subresources.values()
            }
            kinds |= {(g, v, f"{k}List") for g, v, k in kinds}
            for gvk in sorted(kinds):
                info = self._schema.type_of(*gvk)
                if info is not None:
                    _collect(info, needed)
        for name in ("DeleteOptions", "Status", "ObjectMeta", "ListMeta", "Patch"):
            _collect(self._schema.types[META + name], needed)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self._version},
            "paths": dict(sorted(paths.items())),
            "components": {"schemas": {name: _schema_of(needed[name]) for name in sorted(needed)}},
        }


def _key(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _collect(info: TypeInfo, into: dict[str, TypeInfo]) -> None:
    if info.name in into or info.message_only:
        return
    into[info.name] = info
    if info.custom:
        return
    for field in info.fields.values():
        for target in _targets(field, info):
            _collect(target, into)


def _targets(shape: Shape | None, owner: TypeInfo) -> Iterable[TypeInfo]:
    if shape is None:
        return
    target = owner.target(shape)
    if target is not None:
        yield target
    yield from _targets(shape.items, owner)
    yield from _targets(shape.map, owner)


def _schema_of(info: TypeInfo) -> Raw:
    out: Raw
    if info.custom:
        out = _custom_schema(info)
    elif info.form in _FORMS:
        out = dict(_FORMS[info.form])
    elif info.form:
        out = {}
    else:
        out = {"type": "object", "properties": {name: _field(name, f, info) for name, f in info.fields.items()}}
        required = sorted(name for name, field in info.fields.items() if field.required)
        if required:
            out["required"] = required
        if info.map_type:
            out["x-kubernetes-map-type"] = info.map_type
    if info.gvk:
        out["x-kubernetes-group-version-kind"] = [_gvk(*gvk) for gvk in info.gvk]
    return out


def _custom_schema(info: TypeInfo) -> Raw:
    """The CRD's own schema, with the fields that every object has."""
    out: Raw = dict(info.json_schema) or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own = out.get("properties")
    properties: Raw = dict(own) if isinstance(own, dict) else {}
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string", "description": _DESCRIPTIONS[name]}
    properties["metadata"] = {"allOf": [_ref(META + "ObjectMeta")], "description": _DESCRIPTIONS["metadata"]}
    out["properties"] = properties
    out["type"] = "object"
    return out


def _field(name: str, field: FieldInfo, owner: TypeInfo) -> Raw:
    out = _shape(field, owner)
    if name in _DESCRIPTIONS:
        out["description"] = _DESCRIPTIONS[name]
    target = owner.target(field)
    if field.default is not None:
        out["default"] = field.default
    elif target is not None and target.form == "" and not field.pointer:
        out["default"] = {}
    if field.enum:
        out["enum"] = list(field.enum)
    if field.list_type:
        out["x-kubernetes-list-type"] = field.list_type
    if field.list_map_keys:
        out["x-kubernetes-list-map-keys"] = list(field.list_map_keys)
    if field.map_type:
        out["x-kubernetes-map-type"] = field.map_type
    if field.patch_strategy:
        out["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
    if field.patch_merge_key:
        out["x-kubernetes-patch-merge-key"] = field.patch_merge_key
    return out


def _shape(shape: Shape, owner: TypeInfo) -> Raw:
    target = owner.target(shape)
    if target is not None:
        return {"allOf": [_ref(target.name)]}
    out: Raw = {"type": shape.type} if shape.type else {}
    if shape.format:
        out["format"] = shape.format
    if shape.items is not None:
        out["items"] = _shape(shape.items, owner)
    if shape.map is not None:
        out["additionalProperties"] = _shape(shape.map, owner)
    return out


def _ref(name: str) -> Raw:
    return {"$ref": f"#/components/schemas/{name}"}


def _gvk(group: str, version: str, kind: str) -> Raw:
    return {"group": group, "kind": kind, "version": version}


def _paths_of(row: ResourceInfo) -> Iterable[tuple[str, Raw]]:
    root = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
    home = f"{root}/namespaces/{{namespace}}/{row.resource}" if row.namespaced else f"{root}/{row.resource}"
    gvk = (row.group, row.version, row.kind)
    verbs = set(row.verbs)
    namespace = ["namespace"] if row.namespaced else []
    collection = _item(
        gvk,
        namespace,
        get="list" if "list" in verbs else "",
        post="create" if "create" in verbs else "",
        delete="deletecollection" if "deletecollection" in verbs else "",
    )
    yield home, collection
    if row.namespaced and "list" in verbs:
        yield f"{root}/{row.resource}", _item(gvk, [], get="list")
    if verbs & {"get", "update", "patch", "delete"}:
        named = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
        methods = {method: verb for method, verb in named.items() if verb in verbs}
        yield f"{home}/{{name}}", _patchable(row, _item(gvk, [*namespace, "name"], **methods))
    for name, sub in sorted(row.subresources.items()):
        yield f"{home}/{{name}}/{name}", _patchable(row, _subresource(sub, [*namespace, "name"]))


def _patchable(row: ResourceInfo, item: Raw) -> Raw:
    """The item with the patches that its resource takes; kubectl looks here whether to send strategic ones."""
    if "patch" in item:
        media = _PATCHES if row.custom else (*_PATCHES, _STRATEGIC)
        item["patch"]["requestBody"] = {"content": {each: {"schema": _ref(META + "Patch")} for each in media}}
    return item


def _subresource(sub: SubresourceInfo, in_path: list[str]) -> Raw:
    methods = {"get": "get", "put": "update", "patch": "patch", "post": "create", "delete": "delete"}
    found = {method: verb for method, verb in methods.items() if verb in sub.verbs}
    return _item((sub.group, sub.version, sub.kind), in_path, **found)


def _item(gvk: tuple[str, str, str], in_path: list[str], **methods: str) -> Raw:
    out: Raw = {method: _operation(method, verb, gvk) for method, verb in methods.items() if verb}
    names = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in in_path
    ]
    out["parameters"] = [*names, _parameter("pretty")]
    return out


def _operation(method: str, verb: str, gvk: tuple[str, str, str]) -> Raw:
    parameters: tuple[str, ...]
    if method == "get":
        parameters = _READ_PARAMETERS if verb == "list" else ()
    elif method == "delete":
        parameters = _DELETE_PARAMETERS + (_READ_PARAMETERS if verb == "deletecollection" else ())
    else:
        parameters = _WRITE_PARAMETERS + (("force",) if method == "patch" else ())
    return {
        "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
        "parameters": [_parameter(name) for name in dict.fromkeys(parameters)],
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": _gvk(*gvk),
    }


def _parameter(name: str) -> Raw:
    kind = "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}
