"""Equal parts of cached objects are held once."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from skysail.api.core import Pod
from skysail.informer.sharing import Sharing, share_parts

TEMPLATE = {
    "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}, {"name": "d"}],
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "nodeSelector": {"disk": "ssd"},
}


def decoded(name, version="1", *, owner="rs", node="", labels=None, image="nginx"):
    spec = {**TEMPLATE, "nodeName": node}
    spec["containers"] = [{**TEMPLATE["containers"][0], "image": image}, TEMPLATE["containers"][1]]
    references = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}] if owner else []
    meta = {
        "name": name, "namespace": "default", "uid": name, "resourceVersion": version,
        "labels": labels or {"app": "web"}, "ownerReferences": references,
    }  # fmt: skip
    return msgspec.convert(msgspec.json.decode(msgspec.json.encode({"metadata": meta, "spec": spec})), Pod)


def test_a_new_version_shares_everything_that_has_not_changed():
    sharing = Sharing()
    old = sharing.share(decoded("a"), None)
    new = sharing.share(decoded("a", "2", node="n1"), old)
    assert new.spec.node_name == "n1"
    assert new.spec.containers is old.spec.containers
    assert new.metadata.labels is old.metadata.labels
    assert new.status is old.status


def test_siblings_share_their_template():
    sharing = Sharing()
    a = sharing.share(decoded("a", node="n1"), None)
    b = sharing.share(decoded("b", node="n2"), None)
    assert b.spec.containers is a.spec.containers
    assert b.spec.tolerations is a.spec.tolerations
    assert b.spec.node_selector is a.spec.node_selector
    assert b.metadata.owner_references is a.metadata.owner_references
    assert b.spec.node_name == "n2"


def test_a_part_that_differs_in_one_item_still_shares_the_others():
    sharing = Sharing()
    a = sharing.share(decoded("a"), None)
    b = sharing.share(decoded("b", image="other"), None)
    assert b.spec.containers[0].image == "other"
    assert b.spec.containers[0].resources is a.spec.containers[0].resources
    assert b.spec.containers[1] is a.spec.containers[1]


def test_objects_without_a_controller_share_with_their_namespace():
    sharing = Sharing()
    a = sharing.share(decoded("a", owner=""), None)
    b = sharing.share(decoded("b", owner=""), None)
    assert b.spec is a.spec


def test_dictionaries_stay_as_they_are():
    raw = {"metadata": {"name": "a"}}
    assert Sharing().share(raw, None) is raw


def test_only_so_many_families_are_remembered():
    sharing = Sharing(capacity=2)
    for owner in ("x", "y", "z"):
        sharing.share(decoded("a", owner=owner), None)
    assert list(sharing._siblings) == ["y", "z"]


@settings(max_examples=200, deadline=None)
@given(*[st.fixed_dictionaries({
    "name": st.sampled_from("ab"), "version": st.sampled_from("12"), "owner": st.sampled_from(["", "rs"]),
    "node": st.sampled_from(["", "n1"]), "labels": st.sampled_from([None, {"x": "y"}, {"app": "web", "b": "c"}]),
    "image": st.sampled_from(["nginx", "other"]),
})] * 2)  # fmt: skip
def test_sharing_never_changes_what_an_object_says(first, second):
    known, fresh, untouched = decoded(**first), decoded(**second), decoded(**second)
    share_parts(fresh, known)
    assert fresh == untouched
    assert msgspec.json.encode(fresh) == msgspec.json.encode(untouched)
    assert known == decoded(**first)
