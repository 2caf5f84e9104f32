"""Adopting, releasing, leaving alone."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from skysail.api.apps import ReplicaSet
from skysail.api.core import Pod
from skysail.api.errors import Conflict, InternalError, Invalid, NotFound
from skysail.api.kinds import PODS, REPLICASETS, Kind
from skysail.api.labels import Selector
from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.client.bodies import MERGE, STRATEGIC
from skysail.controller import (
    ControllerRefManager,
    controller_reference,
    is_controlled_by,
    is_of_kind,
    owner_reference,
    raw_reference,
)
from skysail.simulator.clock import run_virtual

LATER = datetime(2026, 1, 1, tzinfo=UTC)
OURS = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u-web", controller=True)
THEIRS = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="x", uid="u-x", controller=True)


@dataclass
class PatchingClient:
    """Notes patches, fails as told."""

    owner: ReplicaSet
    patches: list = field(default_factory=list)
    reads: int = 0
    error: Exception | None = None

    async def get(self, kind, name, namespace=""):
        self.reads += 1
        return self.owner

    async def patch(self, kind, name, namespace, patch, *, patch_type):
        self.patches.append((name, patch, patch_type))
        if self.error is not None:
            raise self.error


def replica_set(uid="u-web", deleted=None):
    return ReplicaSet(metadata=ObjectMeta(name="web", namespace="default", uid=uid, deletion_timestamp=deleted))


def child(name="p", *, owners=(), app="web", namespace="default", deleted=None):
    return Pod(metadata=ObjectMeta(
        name=name, namespace=namespace, uid=f"u-{name}", labels={"app": app}, owner_references=owners,
        deletion_timestamp=deleted, resource_version="5",
    ))  # fmt: skip


def claim(*children, owner=None, fresh=None, error=None, kind=PODS, accept=None, **options):
    owner = owner or replica_set()
    client = PatchingClient(fresh or owner, error=error)
    manager = ControllerRefManager(client, owner, REPLICASETS, kind, Selector.parse("app=web"), **options)

    async def main():
        return await manager.claim(children, accept)

    return [obj.name for obj in run_virtual(main())], client


def test_what_is_ours_and_matches_is_claimed_without_a_write():
    claimed, client = claim(child(owners=(OURS,)))
    assert (claimed, client.patches, client.reads) == (["p"], [], 0)


def test_what_is_ours_and_matches_is_claimed_even_while_we_are_deleted():
    claimed, _ = claim(child(owners=(OURS,)), owner=replica_set(deleted=LATER))
    assert claimed == ["p"]


@pytest.mark.parametrize("app", ["web", "other"])
def test_what_somebody_else_controls_is_left_alone(app):
    claimed, client = claim(child(owners=(THEIRS,), app=app))
    assert (claimed, client.patches) == ([], [])


def test_what_is_ours_and_no_longer_matches_is_released():
    claimed, client = claim(child(owners=(OURS,), app="other"))
    patch = {"metadata": {"uid": "u-p", "ownerReferences": [{"$patch": "delete", "uid": "u-web"}]}}
    assert (claimed, client.patches) == ([], [("p", patch, STRATEGIC)])


def test_an_orphan_that_matches_is_adopted_after_reading_the_owner_again():
    claimed, client = claim(child())
    reference = raw_reference(controller_reference(replica_set(), REPLICASETS))
    assert reference == {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    assert claimed == ["p"]
    assert client.patches == [("p", {"metadata": {"uid": "u-p", "ownerReferences": [reference]}}, STRATEGIC)]
    assert client.reads == 1


def test_the_owner_is_read_again_once_however_many_are_adopted():
    claimed, client = claim(child("a"), child("b"), child("c"))
    assert (claimed, client.reads) == (["a", "b", "c"], 1)


@pytest.mark.parametrize("orphan", [child(app="other"), child(namespace="elsewhere"), child(deleted=LATER)])
def test_an_orphan_of_another_kind_place_or_life_is_not_adopted(orphan):
    claimed, client = claim(orphan)
    assert (claimed, client.patches) == ([], [])


def test_nothing_is_adopted_or_released_while_the_owner_is_deleted():
    claimed, client = claim(child("a"), child("b", owners=(OURS,), app="other"), owner=replica_set(deleted=LATER))
    assert (claimed, client.patches) == ([], [])


@pytest.mark.parametrize(
    ("fresh", "why"), [(replica_set(uid="u-new"), "got uid u-new"), (replica_set(deleted=LATER), "just been deleted")]
)
def test_a_namesake_or_a_dying_owner_adopts_nothing_whatever_the_cache_says(fresh, why):
    with pytest.raises(Conflict, match=why):
        claim(child(), fresh=fresh)


def test_a_refused_adoption_is_checked_once_and_reported():
    with pytest.raises(Conflict) as caught:
        claim(child("a"), child("b"), fresh=replica_set(uid="u-new"))
    assert len(caught.value.__notes__) == 1


def test_a_child_that_is_gone_meanwhile_is_not_claimed_and_no_error():
    claimed, client = claim(child(), error=NotFound("gone"))
    assert (claimed, len(client.patches)) == ([], 1)


@pytest.mark.parametrize("error", [NotFound("gone"), Invalid("uid differs")])
def test_releasing_what_is_gone_or_a_namesake_is_no_error(error):
    assert claim(child(owners=(OURS,), app="other"), error=error)[0] == []


@pytest.mark.parametrize("what", [child(), child(owners=(OURS,), app="other")])
def test_any_other_failure_is_reported(what):
    with pytest.raises(InternalError):
        claim(what, error=InternalError("boom"))


def test_a_further_condition_may_refuse_what_the_selector_accepts():
    claimed, client = claim(child("a"), child("b"), accept=lambda obj: obj.name == "b")
    assert (claimed, len(client.patches)) == (["b"], 1)


def test_a_check_of_ones_own_replaces_the_reading():
    async def never():
        raise Conflict("not today")

    with pytest.raises(Conflict, match="not today"):
        claim(child(), can_adopt=never)


def test_finalizers_come_with_an_adoption_and_go_with_a_release():
    _, client = claim(child("a"), child("b", owners=(OURS,), app="other"), finalizers=("batch/tracking",))
    (_, adoption, _), (_, release, _) = client.patches
    assert adoption["metadata"]["finalizers"] == ["batch/tracking"]
    assert release["metadata"]["$deleteFromPrimitiveList/finalizers"] == ["batch/tracking"]


def test_custom_resources_are_patched_by_whole_list_and_version():
    widgets = Kind("example.com", "v1", "Widget", "widgets", True, Pod)
    other = OwnerReference(api_version="v1", kind="ConfigMap", name="cm", uid="u-cm")
    _, client = claim(child("a", owners=(other,)), child("b", owners=(other, OURS), app="x"), kind=widgets)
    (_, adoption, style), (_, release, _) = client.patches
    assert style is MERGE
    assert [ref["uid"] for ref in adoption["metadata"]["ownerReferences"]] == ["u-cm", "u-web"]
    assert adoption["metadata"]["resourceVersion"] == "5"
    assert [ref["uid"] for ref in release["metadata"]["ownerReferences"]] == ["u-cm"]


def test_owner_helpers_compare_by_uid_and_by_group_and_kind():
    owner = replica_set()
    assert is_controlled_by(child(owners=(OURS,)), owner)
    assert not is_controlled_by(child(owners=(THEIRS,)), owner)
    assert not is_controlled_by(child(), owner)
    assert is_of_kind(OURS, REPLICASETS)
    assert not is_of_kind(OURS, PODS)
    assert owner_reference(owner, REPLICASETS).controller is None
