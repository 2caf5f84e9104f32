import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.errors import ApiError, BadRequest, Invalid
from skysail.api.raw import Raw
from skysail.apiserver import go_values, schema
from skysail.apiserver.patching import json_patch, merge_patch, strategic_patch

GOLDEN = Path(__file__).parents[1] / "golden/scheduler/functions"
TABLE = schema.load()

leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc~/", max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc~/", max_size=3), inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(st.text("abc~/", min_size=1, max_size=3), values, max_size=4)


def vectors(name: str) -> list[Raw]:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def type_of(document: Raw, kind: str) -> schema.TypeInfo:
    group, _, version = document["apiVersion"].rpartition("/")
    found = TABLE.type_of(group, version, kind)
    assert found is not None
    return found


@pytest.mark.parametrize("case", vectors("json_patch"))
def test_json_patch_as_recorded(case: Raw) -> None:
    document = copy.deepcopy(case["input"]["Original"])
    try:
        answer = {"result": json_patch.apply_operations(document, case["input"]["Patch"])}
    except json_patch.PatchFailed as failure:
        answer = {"error": str(failure)}
    assert answer == case["output"]
    assert document == case["input"]["Original"]


@pytest.mark.parametrize("case", vectors("json_merge_patch"))
def test_merge_patch_as_recorded(case: Raw) -> None:
    assert merge_patch.apply(case["input"]["Original"], case["input"]["Patch"]) == case["output"]["result"]


@pytest.mark.parametrize("case", vectors("strategic_merge_patch"))
def test_strategic_merge_patch_as_recorded(case: Raw) -> None:
    document, patch = (copy.deepcopy(case["input"][key]) for key in ("Original", "Patch"))
    try:
        answer = {"result": strategic_patch.apply(document, patch, type_of(document, case["input"]["Kind"]))}
    except ApiError as error:
        answer = {"error": str(error)}
    assert answer == case["output"]
    assert (document, patch) == (case["input"]["Original"], case["input"]["Patch"])


def test_an_operation_that_cannot_be_done_is_refused_in_the_servers_words() -> None:
    with pytest.raises(Invalid, match="the server rejected our request due to an error in our request") as caught:
        json_patch.apply({"a": 1}, [{"op": "remove", "path": "/b"}])
    assert caught.value.status.code == 422


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "add", "path": "/l/x", "value": 1}, "value was not a proper array index: 'x'"),
        ({"op": "replace", "path": "/l/7", "value": 1}, "doc is missing key: /l/7"),
        ({"op": "move", "from": "/no/x", "path": "/y"}, "doc is missing from path"),
        ({"op": "copy", "from": "/l", "path": "/no/x/y"}, "doc is missing destination path"),
        ({"op": "test", "path": "/l", "value": [1, 2.0]}, "test failed"),
        ({"op": "replace", "path": "", "value": 3}, "must be object or array"),
        ({"op": "add", "value": 3}, "failed to decode path"),
    ],
)
def test_json_patch_says_what_failed(operation: Raw, message: str) -> None:
    with pytest.raises(json_patch.PatchFailed, match=message):
        json_patch.apply_operations({"l": [1, 2]}, [operation])


def test_json_patch_counts_indices_from_the_end() -> None:
    assert json_patch.apply_operations({"l": [1, 2, 3]}, [{"op": "remove", "path": "/l/-1"}]) == {"l": [1, 2]}


def test_one_is_neither_true_nor_one_point_zero() -> None:
    assert not go_values.same(1, True)
    assert not go_values.same([1], [1.0])
    assert go_values.same({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]})


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"b": [1, "x", None], "a": True}, "map[a:true b:[1 x <nil>]]"),
        (1.0, "1"), (1.5, "1.5"), (1e21, "1e+21"), (0.00001, "1e-05"), (123456789.0, "123456789"), (2.5e-7, "2.5e-07"),
    ],
)  # fmt: skip
def test_values_print_as_go_prints_them(value: object, printed: str) -> None:
    assert go_values.print_value(value) == printed


def pod(**spec: object) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def patched(spec: Raw, patch: Raw) -> Raw:
    document = pod(**spec)
    return strategic_patch.apply(document, {"spec": patch}, type_of(document, "Pod"))["spec"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"containers": [{"image": "x"}]}, "map: map[image:x] does not contain declared merge key: name"),
        ({"containers": [{"name": "c", "$patch": "frob"}]}, "unknown patch type: frob in map: map[$patch:frob name:c]"),
        ({"containers": [{"name": "c", "$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ({"containers": ["c"]}, "list element types are not identical"),
        ({"$setElementOrder/containers": [{"name": "d"}], "containers": [{"name": "c"}]}, "The order in patch list"),
        ({"frob": {"a": 1}}, None),
    ],
)
def test_mistakes_in_strategic_patches_are_500_without_a_reason(patch: Raw, message: str | None) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    if message is None:
        assert patched(spec, patch)["frob"] == {"a": 1}
        return
    with pytest.raises(ApiError) as caught:
        patched(spec, patch)
    assert caught.value.status.message.startswith(message)
    assert (caught.value.status.code, caught.value.status.reason) == (500, "")


@pytest.mark.parametrize(
    "patch",
    [
        {"$retainKeys": "name"},
        {"$retainKeys": [], "containers": []},
        {"$deleteFromPrimitiveListcontainers": []},
        {"$setElementOrdercontainers": []},
    ],
)
def test_misshapen_directives_are_400(patch: Raw) -> None:
    with pytest.raises(BadRequest, match="invalid patch format"):
        patched({"containers": [{"name": "c"}]}, patch)


def test_an_unfound_field_below_a_known_one_is_named() -> None:
    with pytest.raises(ApiError, match='unable to find api field in struct PodSpec for the json field "frob"'):
        patched({"frob": {"a": 1}}, {"frob": {"b": 1}})


@given(documents, documents)
def test_a_merge_patch_settles(document: Raw, patch: Raw) -> None:
    # Twice, because nulls inside a list that replaces an object survive the first time, as upstream.
    twice = merge_patch.apply(merge_patch.apply(document, patch), patch)
    assert merge_patch.apply(twice, patch) == twice


@given(documents, st.text("abc~/", min_size=1, max_size=3), values)
def test_what_json_patch_adds_it_can_remove(document: Raw, key: str, value: object) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    before = {k: v for k, v in document.items() if k != key}
    added = json_patch.apply_operations(before, [{"op": "add", "path": path, "value": value}])
    assert added == {**before, key: value}
    assert json_patch.apply_operations(added, [{"op": "remove", "path": path}]) == before


names = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


@given(names, names)
def test_merged_items_keep_the_patchs_order_and_the_documents(there: list[str], given_names: list[str]) -> None:
    spec = {"containers": [{"name": name, "image": "old"} for name in there]}
    result = patched(spec, {"containers": [{"name": name, "image": "new"} for name in given_names]})["containers"]
    order = [item["name"] for item in result]
    assert sorted(order) == sorted({*there, *given_names})
    assert [name for name in order if name in given_names] == given_names
    assert [name for name in order if name not in given_names] == [name for name in there if name not in given_names]
    assert all(item["image"] == ("new" if item["name"] in given_names else "old") for item in result)
