"""Whatever a body holds, reading it either works or is refused with a 4xx (or upstream's 500s of patches)."""

import copy
import json
import os
import random
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.errors import ApiError, BadRequest
from skysail.api.raw import Raw
from skysail.apiserver import schema
from skysail.apiserver.decoding import decode_body, json_text, normalize, patches
from skysail.apiserver.decoding.yaml_text import YamlSyntaxError, parse_yaml
from skysail.apiserver.patching import json_patch, managed_fields, merge_patch, strategic_patch
from skysail.apiserver.schema import TypeInfo

TABLE = schema.load()
SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
VECTORS = json.loads((Path(__file__).parents[1] / "golden/apiserver/protobuf/vectors.json").read_text())
OBJECTS = [v["json"] for v in VECTORS["objects"] if not v["kind"].endswith("List") and v["kind"] != "Status"]
ODD = (
    None, "", "x", "1", 0, -1, 1.5, True, [], {}, [None], [[]], [{}], {"": None}, {"a": {}}, 2**40, 1e300, "\ud800",
)  # fmt: skip


def type_of(obj: Raw) -> TypeInfo:
    group, _, version = obj["apiVersion"].rpartition("/")
    found = TABLE.type_of(group, version, obj["kind"])
    assert found is not None
    return found


def mangle(value: object, rng: random.Random, names: list[str], chance: float) -> object:
    """The value with some parts replaced by odd ones, some keys renamed, some left out."""
    if rng.random() < chance:
        return copy.deepcopy(rng.choice(ODD))
    if isinstance(value, dict):
        out: Raw = {}
        for key, item in value.items():
            if rng.random() < chance:
                continue
            out[rng.choice(names) if rng.random() < chance else key] = mangle(item, rng, names, chance)
        if rng.random() < chance:
            out[rng.choice(("$patch", "$retainKeys", "frob"))] = rng.choice(("replace", "delete", "merge", ["a"], 1))
        if rng.random() < chance:
            name = rng.choice(names)
            out[f"$setElementOrder/{name}"] = rng.choice(([], [{"name": "c"}], "x", [1]))
            out[f"$deleteFromPrimitiveList/{name}"] = rng.choice(([], ["a"], {}, [{}]))
        return out
    if isinstance(value, list):
        out_list = [mangle(item, rng, names, chance) for item in value]
        return out_list * 2 if rng.random() < chance else out_list
    return value


def names_in(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for item in value.values() for name in names_in(item))]
    return [name for item in value for name in names_in(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("seed", SEEDS)
def test_mangled_bodies_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for obj in OBJECTS:
        info, names = type_of(obj), names_in(obj)
        for chance in (0.01, 0.05, 0.3):
            text = json.dumps(mangle(obj, rng, names, chance))
            for validation in ("Ignore", "Warn", "Strict"):
                try:
                    made, _ = decode_body(text.encode(), "", info, validation)
                except BadRequest:
                    continue
                again, _ = decode_body(msgspec.json.encode(made), "", info, "Ignore")
                assert again == made


@pytest.mark.parametrize("seed", SEEDS)
def test_mangled_patches_are_applied_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for obj in OBJECTS:
        info, names = type_of(obj), names_in(obj)
        patch = mangle(obj, rng, names, 0.08)
        if not isinstance(patch, dict):
            continue
        patch, _ = patches.read_merge_patch(json.dumps(patch).encode(), "Warn")
        for apply in (merge_patch.apply, lambda doc, change, i=info: strategic_patch.apply(doc, change, i)):
            try:
                made, _ = patches.check_patched(apply(obj, patch), info, "Warn", findings=[], strategic_patch=patch)
            except ApiError as error:
                assert error.status.code in (400, 422) or error.status.reason == ""  # noqa: PT017
                continue
            msgspec.json.encode(made)


@pytest.mark.parametrize("seed", SEEDS)
def test_mangled_operations_are_done_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for obj in OBJECTS:
        names = names_in(obj)
        parts = [*names, "0", "-", "-1", "~1", "x"]
        paths = ["/" + "/".join(rng.choices(parts, k=rng.randint(0, 3))) for _ in range(6)]
        verbs = [*json_patch._ACTIONS, "frob"]
        operations = [
            {"op": rng.choice(verbs), "path": path, "from": rng.choice(paths), "value": rng.choice(ODD)}
            for path in paths
        ]
        for operation in operations:
            for name in [name for name in ("op", "path", "from", "value") if rng.random() < 0.05]:
                del operation[name]
        for operation in operations:
            try:
                json_patch.apply(obj, [operation])
            except ApiError as error:
                assert error.status.code == 422  # noqa: PT017


@pytest.mark.parametrize("seed", SEEDS)
def test_mangled_configurations_are_applied_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for obj in OBJECTS:
        info, names = type_of(obj), names_in(obj)
        live: Raw | None = None
        for manager in ("one", "two", "one"):
            config = mangle(obj, rng, names, 0.04)
            if not isinstance(config, dict):
                continue
            config |= {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
            metadata = config.get("metadata")
            if isinstance(metadata, dict):
                metadata.pop("managedFields", None)
            try:
                live = managed_fields.apply(
                    live, config, manager=manager, force=True, subresource="", now=now, type_info=info
                )
            except ApiError as error:
                assert error.status.code in (400, 500)  # noqa: PT017
                continue
            assert normalize(live, info) == live


NUMBERS = [
    ("1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ("123456789012345678901234567890", None), ("-9223372036854775808", None), ("9" * 5000, "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "problem"), NUMBERS, ids=lambda value: str(value)[:20])
def test_numbers_beyond_all_bounds_are_floats_or_refused(number: str, problem: str | None) -> None:
    body = f'{{"data":{{"x":{number}}},"revision":1}}'.encode()
    info = TABLE.type_of("apps", "v1", "ControllerRevision")
    assert info is not None
    if problem is None:
        made, _ = decode_body(body, "", info)
        assert json.loads(msgspec.json.encode(made["data"]["x"])) == pytest.approx(float(number))
    else:
        with pytest.raises(BadRequest, match=problem):
            decode_body(body, "", info)


@given(st.text(max_size=40))
def test_any_text_is_yaml_or_none(text: str) -> None:
    try:
        value, _ = parse_yaml(text.encode("utf-8", "replace"))
    except YamlSyntaxError:
        return
    assert json_text.depth_of(value) <= json_text.MAX_DEPTH
    msgspec.json.encode(value)


@pytest.mark.parametrize("text", [b'a: "\\ud800"', b'"\\ud800": a', b"a: \xed\xa0\x80"])
def test_halves_of_characters_in_yaml_do_no_harm(text: bytes) -> None:
    try:
        value, _ = parse_yaml(text)
    except YamlSyntaxError:
        return
    msgspec.json.encode(value)


def test_yaml_nested_too_deep_is_refused() -> None:
    with pytest.raises(YamlSyntaxError, match="exceeded max depth"):
        parse_yaml(b"[" * 300 + b"]" * 300)
