"""What holds of the pure planning parts for any input."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from skysail.api.apps import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from skysail.api.core import Pod, PodCondition, PodStatus
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.controllers.deployment.actions import PatchReplicaSet
from skysail.controllers.deployment.fences import new_replica_set_size, resolve_fenceposts, wanted_replicas
from skysail.controllers.deployment.plan import plan_deployment
from skysail.controllers.deployment.revisions import MAX_HISTORY_CHARACTERS, lengthened_history
from skysail.controllers.deployment.scaling import DESIRED_REPLICAS, MAX_REPLICAS, plan_scale
from skysail.controllers.job.indexes import Indexes
from skysail.controllers.patches import merge_difference
from skysail.controllers.replicaset.plan import plan_replicas, replica_set_status
from skysail.controllers.replicaset.ranking import pods_to_delete
from skysail.testing import make_pod, pod_template

NOW = datetime(2026, 1, 1, tzinfo=UTC)
amounts = st.one_of(st.integers(0, 50), st.integers(0, 100).map(lambda number: f"{number}%"))
sizes = st.integers(0, 40)


def deployment(replicas: int, surge: int | str, unavailable: int | str) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default", uid="d", generation=1, resource_version="1"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=pod_template(make_pod(labels={"app": "web"})),
            strategy=DeploymentStrategy(
                type="RollingUpdate",
                rolling_update=RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable),
            ),
        ),
    )


def replica_set(number: int, replicas: int, available: int, remembered: tuple[int, int], *, new: bool) -> ReplicaSet:
    image = "new" if new else f"old-{number}"
    template = make_pod(labels={"app": "web"}, annotations={} if new else {"image": image})
    annotations = {DESIRED_REPLICAS: str(remembered[0]), MAX_REPLICAS: str(remembered[1])}
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"web-{number}",
            namespace="default",
            uid=f"rs-{number}",
            annotations=annotations,
            creation_timestamp=NOW - timedelta(hours=10 - number),
            resource_version="1",
        ),
        spec=ReplicaSetSpec(
            replicas=replicas, selector=LabelSelector(match_labels={"app": "web"}), template=pod_template(template)
        ),
        status=ReplicaSetStatus(replicas=replicas, available_replicas=min(available, replicas)),
    )


@given(amounts, amounts, st.integers(0, 100))
def test_fence_posts_always_leave_room_to_move(surge: int | str, unavailable: int | str, desired: int) -> None:
    resolved = resolve_fenceposts(surge, unavailable, desired)
    assert sum(resolved) > 0
    assert min(resolved) >= 0


@given(st.integers(0, 30), amounts, sizes, sizes)
def test_the_new_set_never_grows_beyond_the_wanted_size_or_the_surge(
    replicas: int, surge: int | str, others: int, has: int
) -> None:
    wanted = deployment(replicas, surge, 0)
    room = replicas + resolve_fenceposts(surge, 0, replicas)[0]
    size = new_replica_set_size(wanted, others + has, has)
    assert size <= max(has, replicas)
    assert size == has or others + size <= room


holders = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=5)


@given(st.integers(0, 60), st.integers(1, 60), amounts, holders)
def test_proportional_scaling_gives_out_exactly_the_difference(
    before: int, after: int, surge: int | str, given_holders: Sequence[tuple[int, int]]
) -> None:
    wanted = deployment(after, surge, 1)
    remembered = (before, max(before, sum(size for size, _ in given_holders)))
    sets = [replica_set(n, size, ok, remembered, new=False) for n, (size, ok) in enumerate(given_holders)]
    new = replica_set(9, 2, 1, remembered, new=True)
    planned, renew = plan_scale(wanted, new, sets)
    assert renew
    assert min(planned.values()) >= 0
    allowed = after + resolve_fenceposts(surge, 1, after)[0]
    had = sum(wanted_replicas(item) for item in (*sets, new))
    total = sum(planned.values())
    assert total == allowed or (total >= allowed and had > allowed and 0 in planned.values())


@settings(max_examples=150)
@given(
    st.integers(1, 12),
    st.integers(0, 4),
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=3),
    st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_one_step_of_a_rollout_breaks_neither_fence(
    replicas: int, surge: int, unavailable: int, old: list[tuple[int, int]], new: tuple[int, int]
) -> None:
    wanted = deployment(replicas, surge, unavailable)
    surge, unavailable = resolve_fenceposts(surge, unavailable, replicas)
    remembered = (replicas, replicas + surge)
    sets = [replica_set(n, size, ok, remembered, new=False) for n, (size, ok) in enumerate(old)]
    sets.append(replica_set(9, min(new[0], replicas), new[1], remembered, new=True))
    after = {item.uid: wanted_replicas(item) for item in sets}
    for action in plan_deployment(wanted, sets, {}, NOW).actions:
        if isinstance(action, PatchReplicaSet) and "replicas" in action.patch.get("spec", {}):
            after[action.replica_set.uid] = action.patch["spec"]["replicas"]
    had = sum(wanted_replicas(item) for item in sets)
    assert sum(after.values()) <= max(had, replicas + surge)
    left = sum(min(after[item.uid], item.status.available_replicas) for item in sets)
    before = sum(item.status.available_replicas for item in sets)
    assert left >= min(before, replicas - min(unavailable, replicas))


index_sets = st.frozensets(st.integers(0, 40), max_size=25)


@given(index_sets, index_sets)
def test_index_intervals_are_the_sets_they_stand_for(left: frozenset[int], right: frozenset[int]) -> None:
    one, other = Indexes.of(left), Indexes.of(right)
    assert list(one) == sorted(left)
    assert set(one | other) == left | right
    assert one.overlap(other) == len(left & right)
    assert {number for number in range(50) if number in one} == left
    assert Indexes.parse(str(one), 41) == one
    assert one.first_missing(5, 41) == [number for number in range(41) if number not in left][:5]


values = st.recursive(
    st.one_of(st.integers(-5, 5), st.text("ab", max_size=2), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("xyz", min_size=1, max_size=1), inner)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.text("xyz", min_size=1, max_size=1), values, max_size=4)


class Document(msgspec.Struct, omit_defaults=True):
    """Any JSON object."""

    content: dict[str, Any] = msgspec.field(default_factory=dict)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(documents, documents)
def test_a_merge_difference_applied_gives_the_new_value(old: dict[str, Any], new: dict[str, Any]) -> None:
    before, after = Document(old), Document(new)
    patch = merge_difference(before, after)
    assert merged(msgspec.to_builtins(before), patch) == msgspec.to_builtins(after)
    assert (patch == {}) == (msgspec.to_builtins(before) == msgspec.to_builtins(after))


@given(st.lists(st.integers(1, 10**9).map(str), max_size=300), st.integers(1, 10**9).map(str))
def test_a_revision_history_never_outgrows_its_limit(numbers: list[str], number: str) -> None:
    history = lengthened_history(",".join(numbers)[:MAX_HISTORY_CHARACTERS], number)
    assert history is not None
    assert len(history) <= MAX_HISTORY_CHARACTERS
    assert history.split(",")[-1] == number


@st.composite
def replicas(draw: st.DrawFn, owner: str) -> Pod:
    """A pod of a replica set in any state."""
    phase = draw(st.sampled_from(("Pending", "Running", "Unknown")))
    ready = draw(st.booleans())
    since = NOW - timedelta(seconds=draw(st.integers(0, 10_000)))
    condition = PodCondition(type="Ready", status="True" if ready else "False", last_transition_time=since)
    node = draw(st.sampled_from(("", "a", "b")))
    uid = draw(st.uuids()).hex
    cost = draw(st.sampled_from(("", "-5", "10")))
    pod = make_pod(
        f"p-{uid}",
        uid=uid,
        labels={"app": "web"},
        node=node,
        created=since - timedelta(seconds=draw(st.integers(0, 100))),
        annotations={"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {},
    )
    return msgspec.structs.replace(pod, status=PodStatus(phase=phase, conditions=(condition,)))


@given(st.lists(replicas("rs"), max_size=8), st.integers(0, 10))
def test_a_replica_set_plans_exactly_the_difference_and_the_better_pods_stay(pods: list[Pod], wanted: int) -> None:
    target = replica_set(0, wanted, 0, (0, 0), new=True)
    plan = plan_replicas(target, pods, pods, NOW, burst=5)
    assert plan.create == min(5, max(0, wanted - len(pods)))
    assert len(plan.delete) == min(5, max(0, len(pods) - wanted))
    assert len({pod.uid for pod in plan.delete}) == len(plan.delete)
    gone = {pod.uid for pod in plan.delete}
    stays_unassigned = any(not pod.spec.node_name and pod.uid not in gone for pod in pods)
    goes_assigned = any(pod.spec.node_name and pod.uid in gone for pod in pods)
    assert not (stays_unassigned and goes_assigned and plan.delete)


@given(st.lists(replicas("rs"), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_which_pods_go_does_not_depend_on_the_order_they_came_in(pods: list[Pod], rng: Any) -> None:
    shuffled = list(pods)
    rng.shuffle(shuffled)
    assert len(pods_to_delete(pods, pods, len(pods) // 2, NOW)) == len(pods) // 2
    unassigned = sum(not pod.spec.node_name for pod in pods)
    for order in (pods, shuffled):
        first = pods_to_delete(order, order, len(order) // 2, NOW)
        assert sum(not pod.spec.node_name for pod in first) == min(unassigned, len(first))


@given(st.lists(replicas("rs"), max_size=6))
def test_a_reported_status_asks_for_no_further_report(pods: list[Pod]) -> None:
    target = replica_set(0, 3, 0, (0, 0), new=True)
    once = replica_set_status(target, pods, 0, "", NOW)
    again = replica_set_status(msgspec.structs.replace(target, status=once), pods, 0, "", NOW)
    assert merge_difference(once, again) == {}
    assert 0 <= once.available_replicas <= once.ready_replicas <= once.replicas == len(pods)
