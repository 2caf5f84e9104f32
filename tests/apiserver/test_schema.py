import json

import pytest

from skysail.apiserver import schema
from skysail.apiserver.contract import ResourceInfo
from skysail.apiserver.schema import FieldInfo, TypeInfo


@pytest.fixture(scope="module")
def table() -> schema.Schema:
    return schema.load()


def test_every_served_resource_has_a_type(table: schema.Schema) -> None:
    virtual = {"ComponentStatus"}
    for resource in table.resources:
        info = table.type_of(resource.group, resource.version, resource.kind)
        assert info is not None or resource.kind in virtual, resource


def test_every_reference_leads_to_a_type(table: schema.Schema) -> None:
    for info in table.types.values():
        for name, field in info.fields.items():
            for shape in (field, field.items, field.map):
                if shape is not None and shape.ref:
                    assert info.target(shape) is not None, (info.name, name)
        assert all(inline in table.types for inline in info.inline.values())


def test_every_field_of_a_stored_kind_has_a_protobuf_number_or_an_inline_home(table: schema.Schema) -> None:
    for info in table.types.values():
        inherited = {name for inline in info.inline.values() for name in table.types[inline].fields}
        for name, field in info.fields.items():
            if (name in ("kind", "apiVersion") and info.gvk) or info.name.endswith("version.Info"):
                continue
            assert field.number or name in inherited or name in ("kind", "apiVersion"), (info.name, name)


def test_beta_versions_are_served_only_when_asked_for() -> None:
    assert schema.load().resource("resource.k8s.io", "v1beta1", "resourceclaims") is None
    table = schema.load(enable=[("resource.k8s.io", "v1beta1")])
    assert table.resource("resource.k8s.io", "v1beta1", "resourceclaims") is not None
    assert table.builtin_versions[-1] == ("resource.k8s.io", "v1beta1")


def test_fields_come_in_the_order_in_which_the_server_writes_them(table: schema.Schema) -> None:
    pod = table.type_of("", "v1", "Pod")
    assert pod is not None
    assert list(pod.fields) == ["kind", "apiVersion", "metadata", "spec", "status"]
    meta = pod.target(pod.fields["metadata"])
    assert meta is not None
    assert list(meta.fields)[:4] == ["name", "generateName", "namespace", "selfLink"]


def test_a_custom_resource_comes_and_goes_with_its_types(table: schema.Schema) -> None:
    before = (len(table.types), table.generation)
    row = ResourceInfo(
        group="example.com", version="v1", resource="widgets", kind="Widget", namespaced=True, custom=True
    )
    root = TypeInfo(fields={"spec": FieldInfo(ref="example.com/v1/Widget/spec")}, custom=True)
    spec = TypeInfo(fields={"size": FieldInfo(type="integer")}, custom=True)
    types = {"example.com/v1/Widget": root, "example.com/v1/Widget/spec": spec}
    table.add(row, types, "example.com/v1/Widget")
    found = table.type_of("example.com", "v1", "Widget")
    assert found is not None
    assert found.target(found.fields["spec"]) is spec
    assert table.resource("example.com", "v1", "widgets") is row
    assert table.serves("example.com", "v1")
    table.remove(row)
    assert table.type_of("example.com", "v1", "Widget") is None
    assert (len(table.types), table.generation - before[1]) == (before[0], 2)


def test_the_storage_version_hash_is_upstreams(table: schema.Schema) -> None:
    pods = table.resource("", "v1", "pods")
    autoscalers = table.resource("autoscaling", "v1", "horizontalpodautoscalers")
    assert pods is not None
    assert autoscalers is not None
    assert schema.storage_version_hash(pods) == "xPOwRZ+Yhw8="
    assert schema.storage_version_hash(autoscalers) == "qwQve8ut294="
    assert json.dumps(pods.verbs)
