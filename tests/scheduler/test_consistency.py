from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.consistency import compare
from skysail.testing.builders import make_node, make_pod
from tests.scheduler.queue_objects import make_queue

PROFILES = ("default-scheduler",)


def test_cache_queue_and_informers_that_agree_have_no_differences():
    cache, queue = ClusterCache(), make_queue()
    node, bound, pending = make_node("n1"), make_pod("a", uid="1", node="n1"), make_pod("b", uid="2")
    cache.add_node(node)
    cache.add_pod(bound)
    queue.add(pending, 0.0)
    assert not compare(cache, queue, PROFILES, [node], [bound, pending])


def test_pods_under_way_and_assumed_are_no_differences():
    cache, queue = ClusterCache(), make_queue()
    pods = [make_pod("a", uid="1"), make_pod("b", uid="2")]
    for pod in pods:
        queue.add(pod, 0.0)
    queue.pop(0.0)
    assumed = queue.pop(0.0)
    cache.assume(assumed.pod, "n1")
    queue.done("2")
    assert not compare(cache, queue, PROFILES, [], pods)


def test_every_kind_of_difference_is_named():
    cache, queue = ClusterCache(), make_queue()
    cache.add_node(make_node("ghost"))
    cache.add_pod(make_pod("gone", uid="1", node="n1"))
    cache.add_pod(make_pod("moved", uid="2", node="n1"))
    queue.add(make_pod("stale", uid="3"), 0.0)
    differences = compare(
        cache,
        queue,
        PROFILES,
        [make_node("n1")],
        [
            make_pod("moved", uid="2", node="n2"),
            make_pod("unseen", uid="4", node="n1"),
            make_pod("lost", uid="5"),
            make_pod("theirs", uid="6", scheduler="other"),
        ],
    )
    assert differences.as_raw() == {
        "missed_nodes": ["n1"],
        "redundant_nodes": ["ghost"],
        "missed_pods": ["default/unseen"],
        "redundant_pods": ["default/gone"],
        "misplaced_pods": ["default/moved"],
        "missed_pending": ["default/lost"],
        "redundant_pending": ["default/stale"],
    }
