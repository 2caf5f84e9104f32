"""Ownership of fields, and server-side apply. The recorded scenarios run in `test_recordings`; here are the corners."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.errors import ApiError, BadRequest, Conflict
from skysail.api.raw import Raw
from skysail.apiserver import schema
from skysail.apiserver.contract import ResourceInfo
from skysail.apiserver.decoding import normalize
from skysail.apiserver.patching import managed_fields
from skysail.apiserver.patching.comparing import compare, mistakes, to_field_set
from skysail.apiserver.patching.field_set import FieldSet, path_text
from skysail.apiserver.patching.merging import merge, remove
from skysail.apiserver.patching.structure import structure_of

TABLE = schema.load()
START = datetime(2026, 1, 1, tzinfo=UTC)


def type_of(obj: Raw) -> schema.TypeInfo:
    group, _, version = obj["apiVersion"].rpartition("/")
    found = TABLE.type_of(group, version, obj["kind"])
    assert found is not None
    return found


def config_map(data: Raw | None = None, **metadata: object) -> Raw:
    obj: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return obj if data is None else obj | {"data": data}


def deployment(**spec: object) -> Raw:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


class Server:
    """One stored object, written by several managers."""

    def __init__(self) -> None:
        self.live: Raw | None = None
        self.now = START

    def apply(self, manager: str, config: Raw, *, force: bool = False) -> Raw:
        self.now += timedelta(seconds=1)
        before = copy.deepcopy(self.live)
        result = managed_fields.apply(
            self.live, config, manager=manager, force=force, subresource="", now=self.now, type_info=type_of(config)
        )
        assert self.live == before
        result["metadata"].setdefault("uid", "u")
        self.live = result
        return result

    def update(self, manager: str, obj: Raw, subresource: str = "") -> Raw:
        self.now += timedelta(seconds=1)
        new = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **normalize(obj, type_of(obj))}
        if self.live is not None and "managedFields" not in new["metadata"]:
            new["metadata"]["managedFields"] = copy.deepcopy(self.live["metadata"].get("managedFields"))
        managed_fields.update(
            self.live, new, manager=manager, api_version=obj["apiVersion"], subresource=subresource, now=self.now,
            type_info=type_of(obj),
        )  # fmt: skip
        new["metadata"].setdefault("uid", "u")
        self.live = new
        return new

    def owned(self) -> dict[str, list[str]]:
        assert self.live is not None
        return {
            entry["manager"]: [path_text(path) for path in FieldSet.decode(entry["fieldsV1"]).paths()]
            for entry in self.live["metadata"].get("managedFields", ())
        }


def test_a_dropped_field_goes_with_its_only_owner_and_stays_with_another() -> None:
    server = Server()
    server.apply("one", config_map({"a": "1", "b": "2"}))
    server.apply("two", config_map({"a": "1"}))
    server.apply("one", config_map({}))
    assert server.live is not None
    assert server.live["data"] == {"a": "1"}
    assert server.owned() == {"one": [".data"], "two": [".data.a"]}
    server.apply("two", config_map())
    assert server.live.get("data") is None


def test_what_an_update_added_is_not_dropped_by_an_applier() -> None:
    server = Server()
    server.apply("one", config_map({"a": "1"}))
    assert server.live is not None
    server.update("hand", {**server.live, "data": {"a": "1", "b": "2"}})
    server.apply("one", config_map({"c": "3"}))
    assert server.live["data"] == {"b": "2", "c": "3"}


def test_conflicts_name_every_field_and_owner() -> None:
    server = Server()
    server.apply("one", config_map({"a": "1", "b": "1"}))
    assert server.live is not None
    server.update("hand", {**server.live, "data": {"a": "1", "b": "2"}}, subresource="status")
    with pytest.raises(Conflict) as caught:
        server.apply("two", config_map({"a": "9", "b": "9"}))
    assert caught.value.status.message == (
        'Apply failed with 2 conflicts: conflicts with "hand" with subresource "status" using v1:\n- .data.b\n'
        'conflicts with "one":\n- .data.a'
    )
    details = caught.value.status.details
    assert details is not None
    assert [(cause.reason, cause.field) for cause in details.causes] == [
        ("FieldManagerConflict", ".data.b"), ("FieldManagerConflict", ".data.a"),
    ]  # fmt: skip
    server.apply("two", config_map({"a": "9", "b": "9"}), force=True)
    assert server.owned() == {"two": [".data.a", ".data.b"]}


def test_nobody_owns_through_an_endpoint_what_it_ignores() -> None:
    server = Server()
    server.apply("one", {**deployment(replicas=1), "status": {"replicas": 3}})
    assert server.owned() == {"one": [".spec.replicas"]}
    info = type_of(deployment())
    config = {**deployment(replicas=5), "status": {"replicas": 4}}
    config["metadata"]["labels"] = {"a": "b"}
    config["metadata"]["annotations"] = {"a": "b"}
    result = managed_fields.apply(
        server.live, config, manager="two", force=False, subresource="status", now=START, type_info=info
    )
    entry = next(entry for entry in result["metadata"]["managedFields"] if entry["manager"] == "two")
    assert [path_text(path) for path in FieldSet.decode(entry["fieldsV1"]).paths()] == [
        ".metadata.annotations.a", ".status.replicas",
    ]  # fmt: skip


def test_an_equal_value_is_shared_and_not_a_conflict() -> None:
    server = Server()
    server.apply("one", config_map({"a": "1"}))
    server.apply("two", config_map({"a": "1"}))
    assert server.owned() == {"one": [".data.a"], "two": [".data.a"]}


def test_an_apply_that_changes_nothing_keeps_its_time() -> None:
    server = Server()
    first = server.apply("one", config_map({"a": "1"}))
    assert server.apply("one", config_map({"a": "1"})) == first


def test_an_object_nobody_tracked_first_belongs_to_before_first_apply() -> None:
    server = Server()
    server.live = {**config_map({"a": "1"}), "metadata": {"name": "a", "uid": "u"}}
    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using v1: .data.a'):
        server.apply("one", config_map({"a": "2"}))
    server.apply("one", config_map({"b": "2"}))
    assert server.owned() == {"before-first-apply": [".data", ".data.a"], "one": [".data.b"]}


def test_kubectl_takes_over_what_its_client_side_apply_wrote() -> None:
    server = Server()
    config = config_map({"a": "1"})
    annotation = {managed_fields.LAST_APPLIED: json.dumps(config)}
    server.update("kubectl-client-side-apply", {**config, "metadata": {"name": "a", "annotations": annotation}})
    server.apply("kubectl", config_map({"a": "2"}))
    assert server.live is not None
    assert server.live["data"] == {"a": "2"}
    renewed = json.loads(server.live["metadata"]["annotations"][managed_fields.LAST_APPLIED])
    assert renewed["data"] == {"a": "2"}


def test_kubectl_does_not_take_over_what_others_changed_since() -> None:
    server = Server()
    config = config_map({"a": "1"})
    annotation = {managed_fields.LAST_APPLIED: json.dumps(config)}
    server.update("kubectl-client-side-apply", {**config, "metadata": {"name": "a", "annotations": annotation}})
    assert server.live is not None
    server.update("hand", {**server.live, "data": {"a": "3"}})
    with pytest.raises(Conflict, match=r'conflict with "hand" using v1: .data.a'):
        server.apply("kubectl", config_map({"a": "2"}))


def container(name: str, **more: object) -> Raw:
    return {"name": name, "image": "i", **more}


def template(*containers: Raw, **spec: object) -> Raw:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers), **spec}}


def names(server: Server) -> list[str]:
    assert server.live is not None
    return [item["name"] for item in server.live["spec"]["template"]["spec"]["containers"]]


def test_items_of_keyed_lists_are_owned_one_by_one() -> None:
    server = Server()
    server.apply("one", deployment(template=template(container("a"), container("b"))))
    server.apply("two", deployment(template=template(container("c"))))
    assert names(server) == ["a", "b", "c"]
    server.apply("one", deployment(template=template(container("b"))))
    assert names(server) == ["b", "c"]
    assert '.spec.template.spec.containers[name="c"]' in server.owned()["two"]


def test_an_applied_list_decides_the_order_of_its_own_items() -> None:
    server = Server()
    server.apply("one", deployment(template=template(container("a"), container("b"), container("c"))))
    server.apply("two", deployment(template=template(container("c"), container("x"), container("a"))))
    assert names(server) == ["b", "c", "x", "a"]


def test_items_are_keyed_by_all_keys_and_their_defaults() -> None:
    server = Server()
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    server.apply("one", deployment(template=template(container("a", ports=ports))))
    owned = server.owned()["one"]
    assert '.spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]' in owned
    assert '.spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="UDP"]' in owned


def test_atomic_lists_and_maps_are_owned_whole() -> None:
    server = Server()
    spec = template(container("a", args=["x"]), tolerations=[{"key": "k"}], nodeSelector={"a": "b"})
    server.apply("one", deployment(template=spec, selector={"matchLabels": {"a": "b"}}))
    owned = server.owned()["one"]
    for path in (".spec.selector", ".spec.template.spec.tolerations", ".spec.template.spec.nodeSelector"):
        assert [found for found in owned if found.startswith(path)] == [path]


def test_finalizers_are_a_set() -> None:
    server = Server()
    server.apply("one", config_map(finalizers=["x/a", "x/b"]))
    server.apply("two", config_map(finalizers=["x/c"]))
    server.apply("one", config_map(finalizers=["x/b"]))
    assert server.live is not None
    assert server.live["metadata"]["finalizers"] == ["x/b", "x/c"]
    assert server.owned()["one"] == ['.metadata.finalizers[="x/b"]']


MISTAKES = [
    (deployment(frob=1), ".spec.frob: field not declared in schema"),
    (deployment(replicas="3"), ".spec.replicas: expected numeric (int or float), got string"),
    (deployment(paused="yes"), ".spec.paused: expected boolean, got &{yes}"),
    (deployment(template=template(container("a"), container("a"))),
     '.spec.template.spec.containers: duplicate entries for key [name="a"]'),
    (deployment(template={"spec": {"containers": "x"}}), ".spec.template.spec.containers: expected list, got &{x}"),
    (deployment(template=[]), ".spec.template: expected map, got &{[]}"),
    (config_map(finalizers=[None]), ".metadata.finalizers: element 0: associative list without keys has an element "
     "that's an explicit null"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "problem"), MISTAKES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_configuration_that_does_not_fit_is_500_in_upstreams_words(config: Raw, problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        Server().apply("one", config)
    assert caught.value.status.code == 500
    assert caught.value.status.message.endswith(problem)
    assert caught.value.status.message.startswith("failed to create typed patch object (/")


def test_an_item_without_any_of_its_keys_has_no_name() -> None:
    table = schema.load()
    item = schema.TypeInfo(custom=True, fields={"id": schema.FieldInfo(type="string")})
    root = schema.TypeInfo(
        custom=True,
        fields={"list": schema.FieldInfo(items=schema.Shape(ref="x/item"), list_type="map", list_map_keys=("id",))},
    )
    row = ResourceInfo("x.io", "v1", "xs", "X", True, custom=True)
    table.add(row, {"x": root, "x/item": item}, "x")
    assert list(mistakes({"list": [{"other": 1}]}, structure_of(root))) == [
        '.list: element 0: associative list with keys has an element that omits all key fields ["id"] '
        "(and doesn't have default values for any key fields)"
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "apps/v1"}, "invalid object type: apps/v1, Kind=ConfigMap"),
        ({"metadata": {"name": "a", "managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_a_configuration_of_something_else_is_refused(change: Raw, problem: str) -> None:
    info = type_of(config_map())
    with pytest.raises(BadRequest) as caught:
        managed_fields.apply(
            None, config_map() | change, manager="m", force=False, subresource="", now=START, type_info=info
        )
    assert caught.value.status.message == problem


def test_quantities_may_be_numbers_in_a_configuration() -> None:
    server = Server()
    server.apply("one", deployment(template=template(container("a", resources={"requests": {"cpu": 0.1}}))))
    assert server.live is not None
    assert server.live["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}}


def test_at_most_ten_managers_of_updates_are_told_apart() -> None:
    server = Server()
    server.update("m0", config_map({"k0": "0"}))
    for number in range(1, 13):
        assert server.live is not None
        server.update(f"m{number}", {**server.live, "data": {**server.live["data"], f"k{number}": "0"}})
    owned = server.owned()
    assert len(owned) == 10
    assert owned["ancient-changes"] == [".data", ".data.k0", ".data.k1", ".data.k2", ".data.k3"]


@pytest.mark.parametrize("given_fields", [[], [{}]])
def test_a_client_may_ask_to_forget_all_owners(given_fields: list[Raw]) -> None:
    server = Server()
    server.update("one", config_map({"a": "1"}))
    server.update("two", config_map({"a": "2"}, managedFields=given_fields))
    assert server.owned() == {}


def test_broken_entries_from_a_client_are_ignored() -> None:
    server = Server()
    server.update("one", config_map({"a": "1"}))
    server.update("two", config_map({"a": "1", "b": "2"}, managedFields=[{"manager": "q", "operation": "Frob"}]))
    assert server.owned() == {"one": [".data", ".data.a"], "two": [".data.b"]}


def test_entries_of_versions_that_are_gone_are_forgotten() -> None:
    server = Server()
    entry = {"operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}
    given = [{"manager": "old", "apiVersion": "v0", **entry}, {"manager": "new", "apiVersion": "v1", **entry}]
    server.update("one", config_map({"a": "1"}))
    server.update("one", config_map({"a": "1"}, managedFields=given))
    assert server.owned() == {"new": [".data.a"]}


def test_a_required_list_that_is_empty_is_owned_and_comes_back_as_null() -> None:
    server = Server()
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": []}
    assert server.update("one", role)["rules"] is None
    assert server.owned() == {"one": [".rules"]}


def test_duplicates_in_a_list_are_owned_as_one() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    server = Server()
    server.update("one", deployment(template=template(container("c", env=env))))
    owned = [path for path in server.owned()["one"] if ".env" in path]
    assert owned == [
        '.spec.template.spec.containers[name="c"].env', '.spec.template.spec.containers[name="c"].env[name="A"]',
    ]  # fmt: skip


elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', 'v:"x"'])
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
field_sets = st.lists(paths, max_size=8).map(lambda found: FieldSet.of(*found))


@given(field_sets)
def test_fields_v1_comes_back(fields: FieldSet) -> None:
    assert FieldSet.decode(json.loads(json.dumps(fields.tree))) == fields


@given(field_sets, field_sets)
def test_sets_of_paths_are_sets(left: FieldSet, right: FieldSet) -> None:
    ours, theirs = set(left.paths()), set(right.paths())
    assert set(left.union(right).paths()) == ours | theirs
    assert set(left.intersection(right).paths()) == ours & theirs
    assert set(left.difference(right).paths()) == ours - theirs
    assert all(left.has(path) for path in ours)


labels = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"), max_size=4)
items = st.lists(st.sampled_from("abcd"), unique=True, max_size=4)


@st.composite
def deployments(draw: st.DrawFn) -> Raw:
    containers = [container(name, image=draw(st.sampled_from("ij"))) for name in draw(items)]
    made = deployment(template={"metadata": {"labels": draw(labels)}, "spec": {"containers": containers}})
    if draw(st.booleans()):
        made["spec"]["replicas"] = draw(st.integers(0, 3))
    return made


def normal(obj: Raw) -> Raw:
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **normalize(obj, type_of(obj))}


@given(deployments(), deployments())
def test_nothing_differs_after_applying_what_is_there(live: Raw, other: Raw) -> None:
    node = structure_of(type_of(live))
    live = normal(live)
    change = compare(live, merge(live, copy.deepcopy(live), node), node)
    assert change.added.empty
    assert change.modified.empty
    assert change.removed.empty
    merged = merge(live, other, node)
    assert compare(merged, merge(merged, other, node), node).modified.empty


@given(deployments())
def test_taking_out_everything_owned_leaves_nothing_owned(config: Raw) -> None:
    node = structure_of(type_of(config))
    owned = to_field_set(config, node)
    left = remove(config, owned, node)
    assert to_field_set(left, node).intersection(owned).empty


@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), deployments()), min_size=1, max_size=5))
def test_whatever_is_applied_by_force_holds_and_is_owned(steps: list[tuple[str, Raw]]) -> None:
    server = Server()
    for manager, config in steps:
        live = server.apply(manager, config, force=True)
        node = structure_of(type_of(config))
        for path in _leaves(config):
            assert _at(live, path) == _at(config, path)
        mine = to_field_set(config, node)
        if not mine.difference(managed_fields._STRIPPED).empty:
            assert set(server.owned()[manager]) == {
                path_text(p) for p in mine.difference(managed_fields._STRIPPED).paths()
            }  # fmt: skip


def _leaves(config: Raw) -> Iterator[tuple[str, ...]]:
    yield from (
        ("spec", "template", "metadata", "labels", key) for key in config["spec"]["template"]["metadata"]["labels"]
    )
    if "replicas" in config["spec"]:
        yield ("spec", "replicas")


def _at(obj: Raw, path: tuple[str, ...]) -> object:
    here: object = obj
    for name in path:
        assert isinstance(here, dict)
        here = here[name]
    return here
