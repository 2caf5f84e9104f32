import json
from pathlib import Path

import pytest

from skysail.api.errors import NotAcceptable, NotFound
from skysail.api.raw import Raw
from skysail.apiserver import schema
from skysail.apiserver.contract import ResourceInfo, SubresourceInfo
from skysail.apiserver.discovery import AGGREGATED, Discovery
from skysail.apiserver.schema import TypeInfo
from skysail.apiserver.schema.versions import version_order

GOLDEN = Path(__file__).parents[1] / "golden/apiserver/discovery.json"
STEPS = [
    step
    for step in json.loads(GOLDEN.read_text())["steps"]
    if step["request"]["path"].startswith("/api") and step["response"]["status"] == 200 and step["response"].get("body")
]


@pytest.fixture(scope="module")
def discovery() -> Discovery:
    return Discovery(schema.load(), address="<server>")


def lower(headers: Raw | None) -> dict[str, str]:
    return {name.lower(): value for name, value in (headers or {}).items()}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["step"])
def test_discovery_as_recorded(discovery: Discovery, step: Raw) -> None:
    request = step["request"]
    answer = discovery.answer(request["path"], lower(request.get("headers")))
    assert answer is not None
    assert json.loads(answer.body) == step["response"].get("body")
    expected = lower(step["response"]["headers"])
    for name in ("content-type", "cache-control", "vary"):
        assert answer.header(name) == expected.get(name)


def test_a_known_etag_is_answered_with_304_and_nothing_else(discovery: Discovery) -> None:
    first = discovery.answer("/apis", {"accept": AGGREGATED})
    assert first is not None
    again = discovery.answer("/apis/", {"accept": AGGREGATED, "if-none-match": first.header("etag") or ""})
    assert again is not None
    assert (again.status, again.body, again.header("etag")) == (304, b"", first.header("etag"))


def test_a_form_nobody_can_give_is_406(discovery: Discovery) -> None:
    accept = AGGREGATED.replace("v=v2", "v=v2beta1")
    with pytest.raises(NotAcceptable, match="only the following media types are accepted"):
        discovery.answer("/apis", {"accept": accept})
    answer = discovery.answer("/apis", {"accept": f"{accept},application/json"})
    assert answer is not None
    assert b"APIGroupList" in answer.body


def test_unknown_versions_are_404_and_unknown_groups_are_not_ours(discovery: Discovery) -> None:
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        discovery.answer("/apis/apps/v9", {})
    assert discovery.answer("/apis/nosuch.example.com", {}) is None
    assert discovery.answer("/apis/apps/v1/deployments", {}) is None
    assert discovery.answer("/version", {}) is None


def test_custom_resources_appear_and_vanish() -> None:
    table = schema.load()
    discovery = Discovery(table)
    scale = SubresourceInfo(name="scale", group="autoscaling", version="v1", kind="Scale", verbs=("get",))
    status = SubresourceInfo(name="status", group="x.io", version="v1", kind="Widget", verbs=("get", "update"))
    rows = [
        ResourceInfo(
            "x.io", version, "widgets", "Widget", True, ("get", "list", "update"), {"status": status, "scale": scale},
            ("wd",), "widget", ("all",), True,
        )
        for version in ("v1beta1", "v1")
    ]  # fmt: skip
    before = discovery.answer("/apis", {"accept": AGGREGATED})
    for row in rows:
        table.add(row, {f"x.io/{row.version}/Widget": TypeInfo(custom=True)}, f"x.io/{row.version}/Widget")
    answer = discovery.answer("/apis", {"accept": AGGREGATED})
    assert answer is not None
    assert before is not None
    assert answer.header("etag") != before.header("etag")
    group = json.loads(answer.body)["items"][-1]
    assert group["metadata"] == {"name": "x.io"}
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta1"]
    widget = group["versions"][0]["resources"][0]
    assert widget["responseKind"] == {"group": "x.io", "version": "v1", "kind": "Widget"}
    assert [sub["responseKind"] for sub in widget["subresources"]] == [
        {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        {"group": "x.io", "version": "v1", "kind": "Widget"},
    ]
    legacy = discovery.answer("/apis/x.io/v1", {})
    assert legacy is not None
    assert [entry["name"] for entry in json.loads(legacy.body)["resources"]] == [
        "widgets", "widgets/scale", "widgets/status",
    ]  # fmt: skip
    for row in rows:
        table.remove(row)
    assert discovery.answer("/apis/x.io", {}) is None


def test_stable_versions_come_before_betas() -> None:
    versions = ["foo", "v1alpha1", "v1beta2", "v2", "v1", "v1beta10", "v10"]
    assert sorted(versions, key=version_order) == ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]
