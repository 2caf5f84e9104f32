import json
from pathlib import Path

import pytest

from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.queue.backoff import BackoffQueue, backoff_seconds
from tests.scheduler.queue_objects import order, pod

VECTORS = json.loads((Path(__file__).parents[1] / "golden/scheduler/functions/queue_backoff.json").read_text())


def test_backoff_agrees_with_every_recorded_vector():
    for vector in VECTORS:
        given = vector["input"]
        assert backoff_seconds(given["Initial"], given["Max"], given["Count"]) == vector["output"]["seconds"], given


def test_a_maximum_of_zero_switches_backoff_off():
    queue = BackoffQueue(1.0, 0.0, order)
    assert not queue.is_backing_off(QueuedPodInfo(pod("a"), 10.0, unschedulable_count=3), now=10.0)


def test_errors_in_a_row_decide_over_the_count_of_refusals():
    queue = BackoffQueue(1.0, 10.0, order)
    assert queue.expiration(QueuedPodInfo(pod("a"), 100.0, unschedulable_count=9, consecutive_errors_count=1)) == 101.0
    assert queue.expiration(QueuedPodInfo(pod("a"), 100.0, unschedulable_count=9)) == 110.0


@pytest.mark.parametrize(("count", "end"), [(1, 101.0), (2, 102.0), (3, 104.0), (4, 108.0), (5, 110.0)])
def test_the_wait_doubles_to_its_maximum_and_ends_on_a_whole_second(count, end):
    queue = BackoffQueue(1.0, 10.0, order)
    assert queue.expiration(QueuedPodInfo(pod("a"), 100.25, unschedulable_count=count)) == end


def test_the_first_end_of_a_wait_is_known():
    queue = BackoffQueue(1.0, 10.0, order)
    assert queue.next_expiration() is None
    queue.push(QueuedPodInfo(pod("a"), 100.0, unschedulable_count=3, unschedulable_plugins={"Fit"}))
    queue.push(QueuedPodInfo(pod("b"), 100.0, consecutive_errors_count=2))
    assert queue.next_expiration() == 102.0
