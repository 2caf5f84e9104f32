"""The queue's metrics, under upstream's names."""

from prometheus_client import CollectorRegistry

from skysail.workqueue import DelayingQueue, WorkQueueMetrics
from tests.workqueue.clocks import ManualClock


def queue_with_metrics():
    clock, registry = ManualClock(), CollectorRegistry()
    queue = DelayingQueue(clock, metrics=WorkQueueMetrics(registry, clock).for_queue("pods"))
    return queue, clock, lambda name: registry.get_sample_value(name, {"name": "pods"})


def test_depth_counts_what_waits_and_adds_only_what_was_clean():
    queue, _, value = queue_with_metrics()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert value("workqueue_depth") == 2
    assert value("workqueue_adds_total") == 2
    queue.get_nowait()
    assert value("workqueue_depth") == 1


def test_time_in_the_queue_and_time_in_work_are_observed():
    queue, clock, value = queue_with_metrics()
    queue.add("a")
    clock.advance(3)
    queue.get_nowait()
    clock.advance(2)
    queue.done("a")
    assert value("workqueue_queue_duration_seconds_sum") == 3
    assert value("workqueue_work_duration_seconds_sum") == 2


def test_unfinished_work_and_the_longest_running_processor_are_read_as_of_now():
    queue, clock, value = queue_with_metrics()
    assert value("workqueue_longest_running_processor_seconds") == 0
    queue.add("a")
    queue.add("b")
    queue.get_nowait()
    clock.advance(5)
    queue.get_nowait()
    clock.advance(1)
    assert value("workqueue_unfinished_work_seconds") == 7
    assert value("workqueue_longest_running_processor_seconds") == 6


def test_every_delayed_add_is_a_retry():
    queue, _, value = queue_with_metrics()
    queue.add_after("a", 0)
    queue.add_after("b", 5)
    assert value("workqueue_retries_total") == 2
