"""What happens to the metadata of every object."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from skysail.api.errors import BadRequest
from skysail.apiserver import lifecycle
from skysail.apiserver.contract import DeleteOptions
from skysail.apiserver.schema import load

NOW = datetime(2026, 1, 1, 12, 0, 0, 999, tzinfo=UTC)
PODS, NODES = (load().resource("", "v1", name) for name in ("pods", "nodes"))


def test_times_are_whole_seconds_and_read_back() -> None:
    assert lifecycle.timestamp(NOW) == "2026-01-01T12:00:00Z"
    assert lifecycle.parse_timestamp("2026-01-01T12:00:00Z") == NOW.replace(microsecond=0)


def test_a_uid_is_a_random_uuid_of_version_4() -> None:
    import uuid

    made = {lifecycle.make_uid(Random(seed)) for seed in range(200)}
    assert len(made) == 200
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in made} == {(4, uuid.RFC_4122)}


def test_a_generated_name_fits_into_63_characters() -> None:
    name = lifecycle.generate_name("x" * 100, Random(1))
    assert (len(name), name[:58]) == (63, "x" * 58)


@pytest.mark.parametrize(
    ("resource", "given", "url", "outcome"),
    [
        (PODS, None, "a", "a"),
        (PODS, "a", "a", "a"),
        (NODES, "a", "", None),
    ],
)
def test_the_namespace_is_that_of_the_url(resource: Any, given: str | None, url: str, outcome: str | None) -> None:
    obj: dict[str, Any] = {"metadata": {"namespace": given} if given else {}}
    lifecycle.match_namespace(obj, resource, url)
    assert obj["metadata"].get("namespace") == outcome


def test_another_namespace_or_name_than_in_the_url_is_refused() -> None:
    assert PODS is not None
    with pytest.raises(BadRequest, match="namespace"):
        lifecycle.match_namespace({"metadata": {"namespace": "b"}}, PODS, "a")
    with pytest.raises(BadRequest, match=r"the name of the object \(b\)"):
        lifecycle.match_name({"metadata": {"name": "b"}}, "a")
    with pytest.raises(BadRequest, match="undeterminable"):
        lifecycle.match_name({}, "a")


def test_owner_references_that_repeat_are_dropped_with_a_warning() -> None:
    one, other = {"uid": "u1", "name": "a"}, {"uid": "u2", "name": "b"}
    obj: dict[str, Any] = {"metadata": {"ownerReferences": [one, other, dict(one)]}}
    assert "u1" in lifecycle.deduplicate_owners(obj)
    assert obj["metadata"]["ownerReferences"] == [one, other]
    assert lifecycle.deduplicate_owners(obj) == ""


@pytest.mark.parametrize(
    ("present", "asked", "default", "outcome"),
    [
        ([], "", "", []),
        ([], "", "Orphan", ["orphan"]),
        ([], "Foreground", "Orphan", ["foregroundDeletion"]),
        (["x", "orphan"], "Foreground", "", ["x", "foregroundDeletion"]),
        (["x", "orphan"], "Background", "", ["x"]),
        (["foregroundDeletion"], "", "Orphan", ["foregroundDeletion"]),
    ],
)
def test_the_policy_asked_for_decides_the_collectors_finalizer(
    present: list[str], asked: str, default: str, outcome: list[str]
) -> None:
    assert list(lifecycle.garbage_finalizers({"finalizers": present}, asked, default)) == outcome


def under_deletion(grace: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {"generation": 1}
    lifecycle.begin_grace(metadata, grace, NOW)
    return metadata


def test_grace_can_only_be_shortened_and_never_ends_in_the_past() -> None:
    metadata = under_deletion(30)
    assert (metadata["deletionTimestamp"], metadata["generation"]) == ("2026-01-01T12:00:30Z", 2)
    assert not lifecycle.shorten_grace(metadata, DeleteOptions(grace_period_seconds=60), NOW)
    assert not lifecycle.shorten_grace(metadata, DeleteOptions(), NOW)
    assert lifecycle.shorten_grace(metadata, DeleteOptions(grace_period_seconds=5), NOW)
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T12:00:05Z", 5)
    later = NOW + timedelta(seconds=20)
    assert lifecycle.shorten_grace(metadata, DeleteOptions(grace_period_seconds=3), later)
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T12:00:20Z", 1)


@pytest.mark.parametrize("grace", [10**12, 2**63 - 1])
def test_a_grace_of_more_than_all_years_ends_in_the_last_one_and_can_be_shortened(grace: int) -> None:
    metadata = under_deletion(grace)
    assert metadata["deletionGracePeriodSeconds"] == grace
    assert metadata["deletionTimestamp"].startswith("9998-12-31T23:59:5")
    assert lifecycle.shorten_grace(metadata, DeleteOptions(grace_period_seconds=grace - 1), NOW)
    assert metadata["deletionTimestamp"].startswith("9998-12-31T23:59:5")
    assert lifecycle.shorten_grace(metadata, DeleteOptions(grace_period_seconds=5), NOW)
    assert metadata["deletionTimestamp"] in ("2026-01-01T12:00:04Z", "2026-01-01T12:00:05Z")


def test_marking_again_brings_a_later_end_forward_and_keeps_an_earlier_one() -> None:
    metadata = under_deletion(30)
    lifecycle.mark_deleted(metadata, NOW)
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T12:00:00Z", 0)
    lifecycle.mark_deleted(metadata, NOW + timedelta(hours=1))
    assert metadata["deletionTimestamp"] == "2026-01-01T12:00:00Z"


def test_new_times_of_managed_fields_alone_are_no_change() -> None:
    def made(time: str, value: int) -> dict[str, Any]:
        fields = [{"manager": "m", "time": time, "fieldsV1": {}}]
        return {"metadata": {"managedFields": fields, "resourceVersion": str(value)}, "data": value // 10}

    old, new = made("t1", 1), made("t2", 2)
    lifecycle.keep_managed_times(new, old)
    assert new["metadata"]["managedFields"][0]["time"] == "t1"
    changed = made("t2", 20)
    lifecycle.keep_managed_times(changed, old)
    assert changed["metadata"]["managedFields"][0]["time"] == "t2"
