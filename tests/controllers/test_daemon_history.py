"""A daemon set's history: revisions without a hash get one, and several of the present template become one."""

import os
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.apps import ControllerRevision, DaemonSet
from skysail.api.core import Pod
from skysail.api.kinds import CONTROLLER_REVISIONS, DAEMONSETS
from skysail.api.meta import ObjectMeta
from skysail.api.raw import Raw
from skysail.client.bodies import STRATEGIC
from skysail.controllers.daemonset.history import (
    bearing_another_hash,
    hash_in,
    sort_out_history,
    superfluous_history,
)
from skysail.controllers.history.revisions import REVISION_LABEL, in_order, revision_data
from skysail.simulator.clock import run_virtual
from skysail.testing import Chaos, make_pod
from skysail.testing.cluster import Cluster
from tests.controllers.test_crash_everywhere import Scenario, play
from tests.controllers.test_revision_history import image, manifest

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "5")))
ROUGH = Chaos(refuse=0.05, lose_answer=0.03, drop_watch=0.05, expire_watch=0.05, delay=0.2, delay_seconds=2.0)
CONTROLLERS = ("daemonset-controller", "garbage-collector-controller")


def template(version: int) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(image(version)["spec"]["template"]))


def revision(name: str, version: int, number: int, revision_hash: str = "") -> ControllerRevision:
    return ControllerRevision(
        metadata=ObjectMeta(name=name, labels={REVISION_LABEL: revision_hash or name}),
        data=msgspec.Raw(msgspec.json.encode(revision_data(template(version)))),
        revision=number,
    )


def names(revisions: Any) -> list[str]:
    return [item.name for item in revisions]


@pytest.mark.parametrize(
    ("revisions", "kept", "number", "duplicates", "old"),
    [
        ([], None, 1, [], []),
        ([("a", 1, 3)], None, 4, [], ["a"]),
        ([("a", 2, 3)], "a", 3, [], []),
        ([("a", 2, 3), ("b", 1, 2)], "a", 3, [], ["b"]),
        ([("a", 2, 3), ("b", 1, 3)], "a", 4, [], ["b"]),
        ([("a", 2, 3), ("b", 1, 7)], "a", 8, [], ["b"]),
        ([("a", 2, 3), ("b", 2, 5)], "b", 5, ["a"], []),
        ([("a", 2, 3), ("b", 2, 5), ("c", 1, 9), ("d", 2, 4)], "b", 10, ["a", "d"], ["c"]),
    ],
)
def test_the_highest_of_equal_revisions_is_kept_and_numbered_above_all_others(revisions, kept, number, duplicates, old):
    history = sort_out_history(template(2), in_order(revision(*each) for each in revisions))
    assert (history.wanted.existing.name if history.wanted.existing else None) == kept
    assert history.wanted.number == number
    assert (names(history.duplicates), names(history.old)) == (duplicates, old)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5))))
def test_every_revision_is_in_one_place(given_revisions: list[tuple[int, int]]) -> None:
    revisions = in_order(revision(f"r{place}", *each) for place, each in enumerate(given_revisions))
    history = sort_out_history(template(1), revisions)
    kept = [] if history.wanted.existing is None else [history.wanted.existing]
    assert sorted(names([*kept, *history.duplicates, *history.old])) == sorted(names(revisions))
    assert all(item.revision < history.wanted.number for item in history.old)
    assert all(item.revision <= history.wanted.number for item in history.duplicates)


def test_pods_of_any_other_hash_are_to_be_relabelled_those_of_older_templates_too() -> None:
    pods = [make_pod(name, labels=labels) for name, labels in (("a", {}), ("b", {REVISION_LABEL: "x"}))]
    pods.append(make_pod("c", labels={REVISION_LABEL: "kept"}))
    assert names(bearing_another_hash(revision("kept", 1, 1), pods)) == ["a", "b"]


def test_revisions_beyond_the_limit_go_by_age_unless_there_are_pods_of_them() -> None:
    old = [revision(name, number, number) for number, name in enumerate("abcd", 1)]
    pods = [make_pod("p", labels={REVISION_LABEL: "a"}), make_pod("q")]
    assert names(superfluous_history(old, pods, 2)) == ["b", "c"]
    assert superfluous_history(old, pods, 4) == []


# In a cluster


def body(name: str, data: Any, number: int, **labels: str) -> Raw:
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": name, "labels": {"app": "web", **labels}},
        "data": data,
        "revision": number,
    }


async def start(cluster: Cluster) -> None:
    await cluster.start_controllers(*CONTROLLERS)
    await cluster.add_nodes(4)
    await cluster.start_scheduler()
    await make_set(cluster)
    await cluster.settle()


async def make_set(cluster: Cluster) -> None:
    await cluster.client.create(DAEMONSETS, manifest(DAEMONSETS), "default")


async def add_equal(cluster: Cluster, name: str, **labels: str) -> None:
    """A ninth revision, of the present template, by another hand."""
    present = max(await cluster.list(ControllerRevision), key=lambda item: item.revision)
    data = msgspec.json.decode(present.data)
    await cluster.client.create(CONTROLLER_REVISIONS, body(name, data, 9, **labels), "default")


async def edit(cluster: Cluster, spec: Raw) -> None:
    await cluster.client.patch(DAEMONSETS, "web", "default", {"spec": spec}, patch_type=STRATEGIC)
    await cluster.settle()


async def merge(cluster: Cluster, chaos: Chaos) -> tuple[set[str], set[str]]:
    """The uids of the pods before and after a second revision came.

    The template was edited and put back before, so it is by their hash alone that the pods are up to date.
    """
    await start(cluster)
    await edit(cluster, image(2)["spec"] | {"updateStrategy": {"type": "OnDelete"}})
    await edit(cluster, image(0)["spec"] | {"updateStrategy": {"type": "RollingUpdate"}})
    before = {pod.uid for pod in await cluster.list(Pod)}
    faults = cluster.components["controllers"].faults
    faults.chaos = chaos
    await add_equal(cluster, "other", **{REVISION_LABEL: "other"})
    await cluster.advance(120)
    faults.clear()
    await cluster.settle()
    pods = await cluster.list(Pod)
    assert {hash_in(pod) for pod in pods} == {"other"}
    assert sorted(item.revision for item in await cluster.list(ControllerRevision)) == [2, 9]
    [daemon_set] = await cluster.list(DaemonSet)
    assert daemon_set.status.updated_number_scheduled == daemon_set.status.number_available == 4
    return before, {pod.uid for pod in pods}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rolling_update_replaces_no_pod_that_was_only_relabelled(seed: int) -> None:
    async def main() -> None:
        async with Cluster(seed=seed) as cluster:
            before, after = await merge(cluster, ROUGH)
            assert before == after

    run_virtual(main())


async def test_a_revision_without_a_hash_gets_its_name_for_one_and_pods_are_made_with_it(cluster):
    await cluster.start_controllers(*CONTROLLERS)
    await cluster.add_nodes(1)
    await make_set(cluster)
    await cluster.settle()
    await add_equal(cluster, "plain")
    await cluster.settle()
    assert [hash_in(item) for item in await cluster.list(ControllerRevision)] == ["plain"]
    assert [hash_in(item) for item in await cluster.list(Pod)] == ["plain"]


async def test_a_revision_whose_hash_is_taken_away_gets_its_name_for_one(cluster):
    await start(cluster)
    [present] = await cluster.list(ControllerRevision)
    patch = {"metadata": {"labels": {REVISION_LABEL: None}}}
    await cluster.client.patch(CONTROLLER_REVISIONS, present.name, "default", patch)
    await cluster.settle()
    assert [hash_in(item) for item in await cluster.list(ControllerRevision)] == [present.name]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_in_the_midst_of_merging_changes_nothing_in_the_end(after: bool) -> None:
    async def add(cluster: Cluster) -> None:
        await add_equal(cluster, "other", **{REVISION_LABEL: "other"})

    scenario = Scenario(make_set, add)
    wanted, requests = run_virtual(play(scenario))
    assert requests > 5
    for number in range(1 + after, requests + 1, max(1, requests // len(SEEDS))):
        found, _ = run_virtual(play(scenario, number, after=after))
        assert found == wanted, f"killed at request {number} of {requests}"
