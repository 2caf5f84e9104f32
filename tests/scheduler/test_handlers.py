import msgspec
import pytest

from skysail.api.errors import ConfigError
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.framework.events import (
    NODE,
    POD,
    STORAGE_CLASS,
    WILDCARD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
)
from skysail.scheduler.handlers import ClusterEventHandlers, is_live
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.watching import kind_of_resource, wanted_events
from skysail.testing.builders import make_node, make_pod
from tests.scheduler.queue_objects import make_queue, refuse

NODE_ANY = ClusterEvent(NODE, ActionType.ALL)
POD_GONE = ClusterEvent(POD, ActionType.DELETE)


@pytest.fixture
def world():
    return World()


class World:
    """Cache, queue and handlers, as the app wires them."""

    def __init__(self) -> None:
        self.cache = ClusterCache()
        self.queue = make_queue({"Fit": [ClusterEventWithHint(NODE_ANY), ClusterEventWithHint(POD_GONE)]})
        self.rejected = []
        self.handlers = ClusterEventHandlers(
            self.cache,
            self.queue,
            profiles=frozenset({"default-scheduler"}),
            now=lambda: 100.0,
            reject_waiting=lambda uid: self.rejected.append(uid) is None and uid == "held",
            metrics=SchedulerMetrics(),
        )

    def put_to_sleep(self, pod) -> None:
        self.handlers.add_pod(pod)
        refuse(self.queue, self.queue.pop(0.0), 0.0, "Fit")

    def part(self, name: str) -> str:
        return self.queue.part_of(("default", name))


def changed(obj, **metadata):
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, **metadata))


def test_a_pod_goes_to_the_cache_when_bound_and_to_the_queue_when_ours(world):
    world.handlers.add_pod(make_pod("bound", uid="1", node="n1", scheduler="other"))
    world.handlers.add_pod(make_pod("ours", uid="2"))
    world.handlers.add_pod(make_pod("theirs", uid="3", scheduler="other"))
    assert world.cache.statistics().pods == 1
    assert [info.pod.name for info in world.queue.pending_pods()] == ["ours"]


def test_a_pod_that_somebody_else_bound_leaves_the_queue(world):
    pod = make_pod("a", uid="1")
    world.handlers.add_pod(pod)
    world.handlers.update_pod(pod, make_pod("a", uid="1", node="n1"))
    assert len(world.queue) == 0
    assert world.cache.statistics().pods == 1


def test_another_uid_under_the_same_name_is_another_pod(world):
    world.handlers.add_pod(make_pod("a", uid="1", node="n1"))
    world.handlers.update_pod(make_pod("a", uid="1", node="n1"), make_pod("a", uid="2"))
    assert world.cache.statistics().pods == 0
    assert world.queue.get(("default", "a")).pod.uid == "2"


def test_a_pod_seen_again_unchanged_is_not_touched(world):
    pod = changed(make_pod("a", uid="1"), resource_version="7")
    world.put_to_sleep(pod)
    world.handlers.update_pod(pod, changed(pod, labels={"new": "label"}))
    assert world.queue.get(("default", "a")).pod is pod


def test_a_heartbeat_neither_touches_the_cache_nor_wakes_anybody(world):
    node = make_node("n1")
    world.handlers.add_node(node)
    world.put_to_sleep(make_pod("a", uid="1"))
    before = world.cache.generation
    world.handlers.update_node(node, changed(node, resource_version="8"))
    assert world.cache.generation == before
    assert world.part("a") == "unschedulable"


def test_cordoning_reaches_the_cache_though_it_wakes_nobody(world):
    node = make_node("n1")
    world.handlers.add_node(node)
    world.put_to_sleep(make_pod("a", uid="1"))
    cordoned = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=True))
    world.handlers.update_node(node, cordoned)
    assert world.cache.node_info("n1").node.spec.unschedulable
    assert world.part("a") == "unschedulable"


def test_a_changed_label_wakes_who_waits_for_nodes(world):
    node = make_node("n1")
    world.handlers.add_node(node)
    world.put_to_sleep(make_pod("a", uid="1"))
    world.handlers.update_node(node, changed(node, labels={"zone": "b"}))
    assert world.part("a") == "active"


def test_a_deleted_node_leaves_the_cache_and_one_never_seen_is_no_error(world):
    world.handlers.add_node(make_node("n1"))
    world.handlers.delete_node(make_node("n1"))
    world.handlers.delete_node(make_node("n1"))
    assert world.cache.statistics().nodes == 0


def test_an_assumed_pod_that_begins_to_terminate_gives_its_room_back(world):
    pod = make_pod("a", uid="1")
    world.handlers.add_pod(pod)
    world.cache.assume(world.queue.pop(0.0).pod, "n1")
    world.put_to_sleep(make_pod("b", uid="2"))
    terminating = changed(pod, deletion_timestamp=make_now(), resource_version="2")
    world.handlers.update_pod(pod, terminating)
    assert world.cache.statistics().pods == 0
    assert world.part("b") == "active"
    assert world.rejected == ["1"]


def test_a_held_pod_that_is_deleted_is_rejected_and_undone_by_its_own_cycle(world):
    pod = make_pod("a", uid="held")
    world.handlers.add_pod(pod)
    world.cache.assume(world.queue.pop(0.0).pod, "n1")
    world.handlers.delete_pod(pod)
    assert world.rejected == ["held"]
    assert world.cache.statistics().pods == 1


def test_when_a_nominated_pod_goes_only_pods_of_no_higher_priority_wake(world):
    world.put_to_sleep(make_pod("low", uid="1", priority=1))
    world.put_to_sleep(make_pod("high", uid="2", priority=9))
    world.handlers.delete_pod(make_pod("promised", uid="3", priority=5, nominated_node="n1"))
    assert world.part("low") == "active"
    assert world.part("high") == "unschedulable"


def test_ended_pods_count_as_gone():
    assert is_live(make_pod("a", phase="Running"))
    assert not is_live(make_pod("a", phase="Succeeded"))
    assert not is_live(make_pod("a", phase="Failed"))


def test_only_what_plugins_asked_for_is_watched_beside_pods_and_nodes():
    rows = [
        [ClusterEventWithHint(NODE_ANY), ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, ActionType.ADD))],
        [ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, ActionType.DELETE))],
        [ClusterEventWithHint(ClusterEvent(WILDCARD, ActionType.ALL))],
    ]
    assert wanted_events(rows) == {STORAGE_CLASS: ActionType.ADD | ActionType.DELETE}


def test_resources_are_found_by_constant_or_by_plural_version_and_group():
    assert kind_of_resource(STORAGE_CLASS).plural == "storageclasses"
    custom = kind_of_resource("widgets.v1.example.com")
    assert (custom.group, custom.version, custom.plural) == ("example.com", "v1", "widgets")
    with pytest.raises(ConfigError):
        kind_of_resource("nonsense")


def make_now():
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, tzinfo=UTC)
