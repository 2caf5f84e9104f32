"""Keys, and metadata of Structs and dictionaries alike."""

import pytest

from skysail.api.core import Pod
from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.informer import (
    DeletedFinalStateUnknown,
    Key,
    annotations_of,
    controller_of,
    generation_of,
    key_of,
    labels_of,
    live_object,
    owners_of,
    uid_of,
    version_of,
)
from tests.informer.collection import pod

OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u1", controller=True)
OTHER = OwnerReference(api_version="v1", kind="ConfigMap", name="cm", uid="u2")
STRUCT = Pod(
    metadata=ObjectMeta(
        name="a", namespace="x", uid="u", resource_version="7", generation=3, labels={"l": "1"},
        annotations={"n": "2"}, owner_references=(OTHER, OWNER),
    )
)  # fmt: skip
RAW = {
    "metadata": {
        "name": "a", "namespace": "x", "uid": "u", "resourceVersion": "7", "generation": 3, "labels": {"l": "1"},
        "annotations": {"n": "2"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm", "uid": "u2"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": True},
        ],
    }
}  # fmt: skip


@pytest.mark.parametrize("obj", [STRUCT, RAW], ids=["struct", "dictionary"])
def test_metadata_is_read_of_structs_and_dictionaries_alike(obj):
    assert key_of(obj) == Key("x", "a")
    assert (uid_of(obj), version_of(obj), generation_of(obj)) == ("u", "7", 3)
    assert (labels_of(obj), annotations_of(obj)) == ({"l": "1"}, {"n": "2"})
    assert owners_of(obj) == (OTHER, OWNER)
    assert controller_of(obj) == OWNER


@pytest.mark.parametrize("obj", [Pod(metadata=ObjectMeta(name="n")), {"metadata": {"name": "n"}}])
def test_what_is_missing_is_empty(obj):
    assert key_of(obj) == Key("", "n")
    assert (uid_of(obj), version_of(obj), generation_of(obj)) == ("", "", 0)
    assert (labels_of(obj), annotations_of(obj), owners_of(obj)) == ({}, {}, ())
    assert controller_of(obj) is None


@pytest.mark.parametrize("read", [key_of, uid_of, version_of, labels_of])
def test_what_is_no_object_is_refused(read):
    with pytest.raises(TypeError, match="not an API object: str"):
        read("nonsense")


def test_a_tombstone_has_a_key_and_gives_back_what_it_holds():
    tombstone = DeletedFinalStateUnknown(Key("x", "a"), None)
    assert key_of(tombstone) == Key("x", "a")
    assert live_object(tombstone) is None
    assert live_object(DeletedFinalStateUnknown(Key("x", "a"), STRUCT)) is STRUCT
    assert live_object(STRUCT) is STRUCT


@pytest.mark.parametrize("key", [Key("default", "web"), Key("", "node-1")])
def test_a_key_reads_back_what_it_writes(key):
    assert Key.parse(str(key)) == key


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a/b/c"])
def test_text_that_is_no_key_is_refused(text):
    with pytest.raises(ValueError, match="not a key"):
        Key.parse(text)


def test_a_key_writes_itself_as_client_go_does():
    assert str(key_of(pod("a"))) == pod("a").key == "default/a"
