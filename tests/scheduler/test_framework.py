"""The framework: order and meaning of answers, mistakes of plugins contained and named, limits, nominations."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from skysail.api.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from skysail.api.meta import ObjectMeta
from skysail.api.node import Node, NodeStatus
from skysail.scheduler.algorithm import ScheduleResult, SearchLimit, schedule_pod
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.plugin import ALL_NODES, Plugin, PostFilterResult, PreFilterResult
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SKIP, SUCCESS, Code, Status
from skysail.scheduler.queue.nominator import Nominator
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

Answer = Callable[[NodeInfo], Status]


class Filters:
    """A simple Filter plugin that answers as told."""

    def __init__(self, name: str, answer: Answer) -> None:
        self.name, self.answer = name, answer
        self.asked: list[str] = []

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        self.asked.append(node.name)
        return self.answer(node)


class PreFilters:
    """A PreFilter plugin that answers as told."""

    def __init__(self, name: str, status: Status = SUCCESS, nodes: set[str] | None = None) -> None:
        self.name, self.status = name, status
        self.result = ALL_NODES if nodes is None else PreFilterResult(frozenset(nodes))
        self.calls = 0

    def pre_filter(self, state: CycleState, pod: Pod, table: object) -> tuple[Status, PreFilterResult]:
        self.calls += 1
        return self.status, self.result


class Scores:
    """A simple Score plugin that answers as told."""

    def __init__(self, name: str, answer: Callable[[str], int]) -> None:
        self.name, self.answer = name, answer

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[int, Status]:
        return self.answer(node.name), SUCCESS


class PostFilters:
    """A PostFilter plugin that answers as told."""

    def __init__(self, name: str, status: Status, nominated: str | None = None) -> None:
        self.name, self.status, self.result = name, status, PostFilterResult(nominated)
        self.calls = 0

    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> tuple[Status, PostFilterResult]:
        self.calls += 1
        return self.status, self.result


def cluster(count: int) -> Snapshot:
    cache, snapshot = ClusterCache(), Snapshot()
    for index in range(count):
        cache.add_node(Node(metadata=ObjectMeta(name=f"n{index}")))
    cache.update_snapshot(snapshot)
    return snapshot


def decide(
    points: dict[str, list[Plugin]], snapshot: Snapshot, pod: Pod | None = None, **options: object
) -> ScheduleResult:
    pod = pod or Pod(metadata=ObjectMeta(name="p", uid="p"))
    return schedule_pod(Framework("test", points), snapshot, PodInfo(pod), random.Random(0), **options)  # type: ignore[arg-type]


def message(result: ScheduleResult) -> str:
    assert result.diagnosis is not None
    return result.diagnosis.message()


def test_the_first_refusal_in_order_is_told_and_later_plugins_are_not_asked() -> None:
    first = Filters("First", lambda node: Status.unschedulable("no") if node.name == "n0" else SUCCESS)
    second = Filters("Second", lambda node: Status.unresolvable("never"))
    result = decide({"filter": [first, second]}, cluster(2))
    assert message(result) == "0/2 nodes are available: 1 never, 1 no."
    assert second.asked == ["n1"]
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == {"First", "Second"}


def test_reasons_are_sorted_as_text_with_their_count() -> None:
    plugin = Filters("F", lambda node: Status.unschedulable("a" if int(node.name[1:]) < 10 else "b"))
    assert message(decide({"filter": [plugin]}, cluster(12))) == "0/12 nodes are available: 10 a, 2 b."


def test_a_plugin_that_raises_fails_the_attempt_and_is_named() -> None:
    plugin = Filters("Broken", lambda node: {}["nothing"])  # type: ignore[index]
    result = decide({"filter": [plugin]}, cluster(1))
    assert result.status.is_error
    assert result.status.plugin == "Broken"
    assert result.status.message == "running \"Broken\" filter plugin: KeyError: 'nothing'"


def test_an_error_from_a_filter_fails_the_attempt() -> None:
    result = decide({"filter": [Filters("F", lambda node: Status.error("disk on fire"))]}, cluster(1))
    assert result.status.message == 'running "F" filter plugin: disk on fire'


def test_a_score_out_of_range_fails_the_attempt() -> None:
    result = decide({"score": [Scores("S", lambda name: 101)]}, cluster(2))
    assert 'plugin "S" returns an invalid score 101, it should in the range of [0, 100]' in result.status.message


def test_the_best_score_wins_and_ties_are_counted() -> None:
    points: dict[str, list[Plugin]] = {"score": [Scores("S", lambda name: 7 if name in ("n1", "n3") else 0)]}
    result = decide(points, cluster(5))
    assert result.node_name in ("n1", "n3")
    assert (result.total, result.ties, result.feasible_nodes) == (7, 2, 5)


def test_ties_are_broken_by_the_dice_alone_and_every_tied_node_gets_its_turn() -> None:
    framework, snapshot = Framework("test", {"score": [Scores("S", lambda name: 1)]}), cluster(3)
    info = PodInfo(Pod(metadata=ObjectMeta(uid="p")))
    names = {schedule_pod(framework, snapshot, info, random.Random(seed)).node_name for seed in range(30)}
    assert names == {"n0", "n1", "n2"}
    again = [schedule_pod(framework, snapshot, info, random.Random(5)).node_name for _ in range(3)]
    assert len(set(again)) == 1


def test_an_unresolvable_prefilter_refusal_ends_the_phase() -> None:
    later = PreFilters("Later")
    result = decide({"pre_filter": [PreFilters("P", Status.unresolvable("hopeless")), later]}, cluster(3))
    assert message(result) == "0/3 nodes are available: hopeless."
    assert later.calls == 0


def test_a_resolvable_prefilter_refusal_lets_the_other_plugins_run_first() -> None:
    later = PreFilters("Later")
    result = decide({"pre_filter": [PreFilters("P", Status.unschedulable("not now")), later]}, cluster(3))
    assert message(result) == "0/3 nodes are available: not now."
    assert later.calls == 1


def test_skip_leaves_the_filter_out() -> None:
    both = PreFilters("P", SKIP)
    filters = Filters("P", lambda node: Status.unschedulable("asked"))
    assert decide({"pre_filter": [both], "filter": [filters]}, cluster(1)).node_name == "n0"


def test_narrowings_meet() -> None:
    points: dict[str, list[Plugin]] = {
        "pre_filter": [PreFilters("A", nodes={"n0", "n1"}), PreFilters("B", nodes={"n1", "n2"})]
    }
    result = decide(points, cluster(4))
    assert (result.node_name, result.evaluated_nodes) == ("n1", 1)


def test_narrowings_that_do_not_meet_say_who_narrowed() -> None:
    points: dict[str, list[Plugin]] = {"pre_filter": [PreFilters("B", nodes={"n0"}), PreFilters("A", nodes={"n1"})]}
    result = decide(points, cluster(3))
    assert message(result) == "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == {"A", "B"}


def test_nodes_outside_a_narrowing_are_counted_as_such() -> None:
    refuses = Filters("F", lambda node: Status.unschedulable("full"))
    result = decide({"pre_filter": [PreFilters("P", nodes={"n0"})], "filter": [refuses]}, cluster(3))
    assert message(result) == "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [P]."


def test_the_first_postfilter_success_ends_the_phase() -> None:
    plugins = [
        PostFilters("A", Status.unschedulable("no luck")), PostFilters("B", SUCCESS, "n1"), PostFilters("C", SUCCESS),
    ]  # fmt: skip
    framework = Framework("test", {"post_filter": list(plugins)})
    pod = Pod()
    status, result = framework.run_post_filter(CycleState(PodInfo(pod)), pod, Diagnosis(1))
    assert (status, result.nominated_node) == (SUCCESS, "n1")
    assert [plugin.calls for plugin in plugins] == [1, 1, 0]


def test_postfilter_refusals_add_up() -> None:
    plugins: list[Plugin] = [
        PostFilters("A", Status.unschedulable("one")), PostFilters("B", Status.unschedulable("two"), ""),
    ]  # fmt: skip
    pod = Pod()
    framework = Framework("test", {"post_filter": plugins})
    status, result = framework.run_post_filter(CycleState(PodInfo(pod)), pod, Diagnosis(1))
    assert status == Status(Code.UNSCHEDULABLE, ("one", "two"), "A")
    assert result.nominated_node == ""


def test_a_plugin_without_the_method_of_its_point_is_refused() -> None:
    with pytest.raises(TypeError, match="'S' does not extend filter"):
        Framework("test", {"filter": [Scores("S", lambda name: 0)]})


def test_a_table_form_that_is_not_complete_is_told_what_it_lacks() -> None:
    class Rows:
        name = "Rows"

        def filter_rows(self) -> None: ...

    with pytest.raises(TypeError, match="does not extend filter: it has filter_rows, but no explain and no reads"):
        Framework("test", {"filter": [Rows()]})


def test_no_nodes_is_an_error_of_its_own() -> None:
    assert decide({}, cluster(0)).status.message == "no nodes available to schedule pods"


def test_a_limit_ends_the_search_after_enough_feasible_nodes() -> None:
    even = Filters("F", lambda node: SUCCESS if int(node.name[1:]) % 2 == 0 else Status.unschedulable("odd"))
    points: dict[str, list[Plugin]] = {"filter": [even], "score": [Scores("S", lambda name: int(name[1:]))]}
    result = decide(points, cluster(20), limit=SearchLimit(to_find=3, start=5))
    assert (result.node_name, result.evaluated_nodes, result.feasible_nodes) == ("n10", 6, 3)


def test_without_scorers_the_first_feasible_node_is_taken() -> None:
    assert decide({"filter": [Filters("F", lambda node: SUCCESS)]}, cluster(5)).node_name == "n0"


def fit_world() -> tuple[Framework, ClusterCache, Snapshot]:
    world = build_world((), {})
    cache, snapshot = ClusterCache(), Snapshot()
    for name in ("n0", "n1"):
        allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
        cache.add_node(Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=allocatable)))
    cache.update_snapshot(snapshot)
    return build_framework(resolve_profiles(None, world.gates)[0], world), cache, snapshot


def wants(name: str, cpu: str, priority: int = 0, nominated: str = "") -> Pod:
    container = Container(resources=ResourceRequirements(requests={"cpu": cpu}))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=name),
        spec=PodSpec(containers=(container,), priority=priority),
        status=PodStatus(nominated_node_name=nominated),
    )


@pytest.mark.parametrize(("priority", "expected"), [(5, "n1"), (10, "n1"), (11, "")])
def test_room_promised_to_a_pod_is_taken_only_by_more_important_ones(priority: int, expected: str) -> None:
    framework, _, snapshot = fit_world()
    nominator = Nominator()
    nominator.add(wants("promised", "1", priority=10, nominated="n0"))
    info = PodInfo(wants("p", "800m", priority=priority))
    nodes = {
        schedule_pod(framework, snapshot, info, random.Random(seed), nominations=nominator).node_name
        for seed in range(20)
    }
    assert nodes == ({expected} if expected else {"n0", "n1"})


def test_a_pod_goes_where_it_was_nominated_if_it_fits() -> None:
    framework, _, snapshot = fit_world()
    info = PodInfo(wants("p", "500m", nominated="n1"))
    assert {schedule_pod(framework, snapshot, info, random.Random(seed)).node_name for seed in range(10)} == {"n1"}


def test_what_a_state_shares_and_what_a_clone_owns() -> None:
    class Counter:
        def __init__(self, value: int) -> None:
            self.value = value

        def clone(self) -> "Counter":
            return Counter(self.value)

    counter, text = StateKey[Counter]("counter"), StateKey[list[str]]("text")
    state = CycleState(PodInfo(Pod()))
    state.write(counter, Counter(1))
    state.write(text, ["shared"])
    clone = state.clone()
    clone.read(counter).value = 2
    clone.read(text).append("by all")
    assert (state.read(counter).value, state.read(text)) == (1, ["shared", "by all"])
    assert state.get(StateKey[int]("absent")) is None
    with pytest.raises(KeyError):
        state.read(StateKey[int]("absent"))


class Scoring:
    """A table plugin whose scores, or normalised scores, are whatever a test wants."""

    name = "Scoring"
    reads = Reads.ROW

    def __init__(self, raw: object, normalized: object = None) -> None:
        self.raw, self.normalized = raw, normalized

    def score_rows(self, state, pod, table, rows):
        return self.raw


class Normalizing(Scoring):
    def normalize(self, state, raw, low, high):
        return self.normalized


GOOD = np.array([1, 2], dtype=np.int64)


@pytest.mark.parametrize("incremental", [True, False])
@pytest.mark.parametrize(
    "plugin",
    [
        Scoring(None), Scoring([1, 2]), Scoring(np.array([1.0, np.nan])), Scoring(np.array([1, 2, 3])),
        Scoring(np.array([[1], [2]])), Scoring(np.array([1, 10**12])), Scoring(np.array([-1, 2])),
        Normalizing(GOOD, None), Normalizing(GOOD, GOOD / 2), Normalizing(GOOD, GOOD[:1]), Normalizing(GOOD, GOOD - 5),
    ],
)  # fmt: skip
def test_scores_that_are_none_fail_the_attempt_and_name_the_plugin(plugin: Scoring, incremental: bool) -> None:
    _, _, snapshot = fit_world()
    framework = Framework("p", {"score": [plugin]})
    result = schedule_pod(framework, snapshot, PodInfo(wants("p", "1m")), random.Random(0), incremental=incremental)
    assert result.status.is_error
    assert result.status.plugin == "Scoring"
