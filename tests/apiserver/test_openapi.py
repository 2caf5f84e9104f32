import json
from collections.abc import Iterator

import pytest

from skysail.api.raw import Raw
from skysail.apiserver import schema
from skysail.apiserver.contract import ResourceInfo
from skysail.apiserver.openapi import OpenAPI
from skysail.apiserver.schema import FieldInfo, TypeInfo

TABLE = schema.load()


@pytest.fixture(scope="module")
def openapi() -> OpenAPI:
    return OpenAPI(TABLE)


def document(openapi: OpenAPI, path: str) -> Raw:
    answer = openapi.answer(f"/openapi/v3/{path}", {}, {})
    assert answer is not None
    assert answer.status == 200
    return json.loads(answer.body)


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item.removeprefix("#/components/schemas/")
            else:
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def index(openapi: OpenAPI) -> Raw:
    answer = openapi.answer("/openapi/v3", {}, {})
    assert answer is not None
    return json.loads(answer.body)["paths"]


def test_the_index_names_every_group_version(openapi: OpenAPI) -> None:
    expected = {f"apis/{row.group}/{row.version}" if row.group else "api/v1" for row in TABLE.resources}
    assert set(index(openapi)) == expected


def test_every_document_is_whole(openapi: OpenAPI) -> None:
    for key in index(openapi):
        made = document(openapi, key)
        missing = {name for name in references(made) if name not in made["components"]["schemas"]}
        assert not missing, (key, missing)


def test_every_kind_that_can_be_patched_says_that_fields_are_validated(openapi: OpenAPI) -> None:
    for row in TABLE.resources:
        if "patch" not in row.verbs:
            continue
        made = document(openapi, f"apis/{row.group}/{row.version}" if row.group else "api/v1")
        found = [
            item["patch"]
            for item in made["paths"].values()
            if "patch" in item
            and item["patch"]["x-kubernetes-group-version-kind"]
            == {"group": row.group, "version": row.version, "kind": row.kind}
        ]
        assert found, row
        assert "fieldValidation" in [parameter["name"] for parameter in found[0]["parameters"]]


def test_explain_finds_kinds_by_their_paths_and_fields_by_their_schemas(openapi: OpenAPI) -> None:
    made = document(openapi, "apis/apps/v1")
    gvk = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert made["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["get"][
        "x-kubernetes-group-version-kind"
    ] == gvk  # fmt: skip
    schemas = made["components"]["schemas"]
    assert gvk in schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["items"] == {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]}
    assert schemas["io.k8s.api.core.v1.PodSpec"]["required"] == ["containers"]


def test_a_document_asked_for_by_its_hash_may_be_kept(openapi: OpenAPI) -> None:
    url = index(openapi)["apis/batch/v1"]["serverRelativeURL"]
    path, _, digest = url.partition("?hash=")
    answer = openapi.answer(path, {"hash": digest}, {})
    assert answer is not None
    assert answer.header("cache-control") == "public, immutable"
    again = openapi.answer(path, {"hash": digest}, {"if-none-match": answer.header("etag") or ""})
    assert again is not None
    assert (again.status, again.body) == (304, b"")
    moved = openapi.answer(path, {"hash": "OLD"}, {})
    assert moved is not None
    assert (moved.status, moved.header("location")) == (301, url)


def test_there_is_nothing_else(openapi: OpenAPI) -> None:
    assert openapi.answer("/openapi/v2", {}, {}) is None
    assert openapi.answer("/openapi/v3/apis/nosuch/v1", {}, {}) is None


def test_custom_kinds_bring_their_own_schema_and_a_new_hash() -> None:
    table = schema.load()
    openapi = OpenAPI(table)
    row = ResourceInfo("x.io", "v1", "widgets", "Widget", True, ("get", "patch"), custom=True)

    def serve(kind: str) -> str:
        spec = {"type": "object", "properties": {"size": {"type": kind}}}
        root = TypeInfo(
            fields={"spec": FieldInfo(type="object")}, custom=True, gvk=(("x.io", "v1", "Widget"),),
            json_schema={"type": "object", "properties": {"spec": spec}},
        )  # fmt: skip
        table.add(row, {"io.x.v1.Widget": root}, "io.x.v1.Widget")
        return index(openapi)["apis/x.io/v1"]["serverRelativeURL"]

    assert serve("integer") != serve("string")
    made = document(openapi, "apis/x.io/v1")["components"]["schemas"]["io.x.v1.Widget"]
    assert made["properties"]["spec"]["properties"]["size"] == {"type": "string"}
    patch = document(openapi, "apis/x.io/v1")["paths"]["/apis/x.io/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert set(made["properties"]) == {"spec", "apiVersion", "kind", "metadata"}
    table.remove(row)
    assert "apis/x.io/v1" not in index(openapi)
