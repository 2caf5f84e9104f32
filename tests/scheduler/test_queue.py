import pytest

from skysail.scheduler.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    NODE,
    POD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from tests.scheduler.queue_objects import (
    NODE_ADD,
    POD_DELETE,
    always,
    gate_check,
    make_queue,
    names,
    order,
    pod,
    refuse,
)

GATES_GONE = ClusterEvent(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
GATED = {"SchedulingGates": [ClusterEventWithHint(GATES_GONE)], "Fit": [ClusterEventWithHint(NODE_ADD)]}


def test_pods_come_out_by_priority_then_by_age():
    queue = make_queue()
    for number, (name, priority) in enumerate([("old", 0), ("young", 0), ("vip", 9)]):
        queue.add(pod(name, priority=priority), now=float(number))
    assert names(queue, 5.0) == ["vip", "old", "young"]


def test_an_empty_queue_pops_nothing():
    assert make_queue().pop(0.0) is None


def test_a_refused_pod_sleeps_until_an_event_its_refuser_registered_for():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    assert queue.part_of(("default", "a")) == "unschedulable"
    assert queue.move_all_to_active_or_backoff(EVENT_ASSIGNED_POD_DELETE, pod("x"), None, 0.1) == 0
    assert queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1) == 1
    assert queue.part_of(("default", "a")) == "backoff"


def test_only_the_hints_of_plugins_that_refused_the_pod_are_asked():
    asked = []

    def ask(candidate, old, new):
        asked.append(candidate.metadata.name)
        return QueueingHint.QUEUE

    queue = make_queue(
        {
            "Fit": [ClusterEventWithHint(NODE_ADD, always(QueueingHint.SKIP))],
            "Other": [ClusterEventWithHint(NODE_ADD, ask)],
        }
    )
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert not asked
    assert queue.part_of(("default", "a")) == "unschedulable"


def test_five_thousand_sleepers_are_not_asked_about_at_an_event_their_refuser_did_not_ask_for():
    asked = []

    def ask(candidate, old, new):
        asked.append(candidate.metadata.name)
        return QueueingHint.SKIP

    labels = ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL)
    queue = make_queue(
        {"Fit": [ClusterEventWithHint(NODE_ADD, ask)], "Spread": [ClusterEventWithHint(labels, ask)]},
    )
    for number in range(5_000):
        queue.add(pod(f"p{number}"), 0.0)
        refuse(queue, queue.pop(0.0), 0.0, "Fit")
    assert queue.move_all_to_active_or_backoff(POD_DELETE, pod("x"), None, 1.0) == 0
    assert queue.move_all_to_active_or_backoff(labels, "old", "new", 1.0) == 0
    assert not asked
    assert queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 1.0) == 0
    assert len(asked) == 5_000


def test_a_woken_pod_whose_backoff_is_over_goes_straight_to_the_active_queue():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 60.0)
    assert queue.part_of(("default", "a")) == "active"


def test_a_plugin_that_answered_pending_sends_the_pod_back_past_its_backoff():
    queue = make_queue({"Claims": [ClusterEventWithHint(NODE_ADD)], "Fit": [ClusterEventWithHint(NODE_ADD)]})
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit", pending=["Claims"])
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert queue.part_of(("default", "a")) == "active"


def test_a_hint_that_raises_wakes_the_pod():
    def broken(candidate, old, new):
        raise RuntimeError("bug")

    queue = make_queue({"Fit": [ClusterEventWithHint(NODE_ADD, broken)]})
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    assert queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1) == 1


def test_an_event_during_the_attempt_wakes_the_pod_when_it_comes_back():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    info = queue.pop(0.0)
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    refuse(queue, info, 0.2, "Fit")
    assert queue.part_of(("default", "a")) == "backoff"


def test_an_event_before_the_attempt_does_not():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.add(pod("b"), 0.0)
    first = queue.pop(0.0)
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    second = queue.pop(0.2)
    refuse(queue, second, 0.3, "Fit")
    refuse(queue, first, 0.4, "Fit")
    assert queue.part_of(second.key) == "unschedulable"
    assert queue.part_of(first.key) == "backoff"


def test_the_log_of_events_is_dropped_with_the_last_pod_that_may_ask():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.add(pod("b"), 0.0)
    first, second = queue.pop(0.0), queue.pop(0.0)
    for _ in range(3):
        queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert queue.in_flight_events_by_label == {"NodeAdd": 3}
    queue.done(first.pod.metadata.uid)
    assert queue.statistics().in_flight_events == 3
    queue.done(second.pod.metadata.uid)
    assert queue.statistics().in_flight_events == 0
    assert queue.in_flight_events_by_label == {}


def test_a_pod_that_failed_with_an_error_backs_off_and_is_not_popped_early():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0)
    assert queue.part_of(("default", "a")) == "backoff"
    assert queue.pop(0.5) is None
    assert queue.flush_backoff_completed(2.0) == 1
    assert queue.pop(2.0).attempts == 2


def test_a_refused_pod_in_backoff_is_popped_early_when_nothing_is_active():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    queue.add(pod("b"), 0.2)
    assert names(queue, 0.3) == ["b", "a"]


def test_backoff_ends_with_the_second_in_which_it_expires():
    queue = make_queue()
    queue.add(pod("a"), 0.5)
    refuse(queue, queue.pop(0.5), 0.5, "Fit")
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.6)
    assert queue.flush_backoff_completed(1.9) == 0
    assert queue.flush_backoff_completed(2.0) == 1


def test_pods_of_one_second_leave_backoff_in_the_active_queues_order():
    queue = make_queue()
    for name, priority, now in (("low", 1, 0.1), ("high", 5, 0.3)):
        queue.add(pod(name, priority=priority), now)
    infos = [queue.pop(0.4), queue.pop(0.4)]
    for offset, info in enumerate(reversed(infos)):
        refuse(queue, info, 0.4 + offset / 10, "Fit")
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.9)
    assert names(queue, 0.95) == ["high", "low"]


def test_a_pod_that_slept_too_long_is_tried_again():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    assert queue.flush_unschedulable_leftover(300.0) == 0
    assert queue.flush_unschedulable_leftover(300.5) == 1
    info = queue.pop(300.5)
    assert info.was_flushed_from_unschedulable


def test_a_gated_pod_waits_outside_and_remembers_who_holds_it():
    queue = make_queue(GATED, gates=[("SchedulingGates", gate_check)])
    queue.add(pod("a", gates=["quota"]), 0.0)
    info = queue.get(("default", "a"))
    assert (queue.part_of(info.key), info.gating_plugin, info.attempts) == ("gated", "SchedulingGates", 0)
    assert queue.statistics().gated == 1
    assert queue.pop(1.0) is None


def test_a_gated_pod_is_not_looked_at_for_events_its_gate_does_not_know():
    queue = make_queue(GATED, gates=[("SchedulingGates", gate_check)])
    queue.add(pod("a", gates=["quota"]), 0.0)
    queue.get(("default", "a")).unschedulable_plugins.add("Fit")
    assert queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 1.0) == 0


def test_a_pod_whose_gates_are_all_gone_becomes_active():
    queue = make_queue(GATED, gates=[("SchedulingGates", gate_check)])
    gated = pod("a", gates=["quota"])
    queue.add(gated, 0.0)
    queue.update(gated, pod("a"), 1.0)
    assert queue.part_of(("default", "a")) == "active"
    assert queue.get(("default", "a")).initial_attempt_timestamp == 1.0


def test_the_five_minute_flush_does_not_open_a_gate():
    queue = make_queue(GATED, gates=[("SchedulingGates", gate_check)])
    queue.add(pod("a", gates=["quota"]), 0.0)
    queue.flush_unschedulable_leftover(1000.0)
    assert queue.part_of(("default", "a")) == "gated"


def test_an_update_that_can_help_wakes_the_pod_and_one_that_cannot_does_not():
    label = ClusterEvent(POD, ActionType.UPDATE_POD_LABEL)
    queue = make_queue({"Affinity": [ClusterEventWithHint(label)]})
    old = pod("a")
    queue.add(old, 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Affinity")
    newer = pod("a", phase="Pending")
    queue.update(old, newer, 60.0)
    assert queue.part_of(("default", "a")) == "unschedulable"
    assert queue.get(("default", "a")).pod is newer
    queue.update(newer, pod("a", labels={"app": "web"}), 60.0)
    assert queue.part_of(("default", "a")) == "active"


def test_an_update_in_mid_flight_wakes_the_pod_when_it_comes_back_refused():
    label = ClusterEvent(POD, ActionType.UPDATE_POD_LABEL)
    queue = make_queue({"Affinity": [ClusterEventWithHint(label)]})
    queue.add(pod("a"), 0.0)
    info = queue.pop(0.0)
    queue.update(pod("a"), pod("a", labels={"app": "web"}), 0.1)
    assert ("default", "a") not in queue
    refuse(queue, info, 0.2, "Affinity")
    assert queue.part_of(("default", "a")) == "backoff"


@pytest.mark.parametrize("part", ["active", "backoff", "unschedulable"])
def test_an_updated_pod_is_the_one_that_is_popped(part):
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    if part != "active":
        refuse(queue, queue.pop(0.0), 0.0, "Fit")
    if part == "backoff":
        queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert queue.part_of(("default", "a")) == part
    newer = pod("a", phase="Pending")
    queue.update(pod("a"), newer, 0.2)
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.3)
    assert queue.pop(0.4).pod is newer


@pytest.mark.parametrize("part", ["active", "backoff", "unschedulable"])
def test_a_deleted_pod_leaves_the_queue(part):
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    if part != "active":
        refuse(queue, queue.pop(0.0), 0.0, "Fit")
    if part == "backoff":
        queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    queue.delete(pod("a"))
    assert len(queue) == 0
    assert queue.pop(100.0) is None


def test_activate_moves_sleeping_and_backing_off_pods_to_the_active_queue():
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(pod(name), 0.0)
        refuse(queue, queue.pop(0.0), 0.0, *(["Fit"] if name == "a" else []))
    assert [queue.part_of(("default", name)) for name in ("a", "b")] == ["unschedulable", "backoff"]
    queue.activate([pod("a"), pod("b"), pod("unknown")], 0.1)
    assert names(queue, 0.2) == ["a", "b"]


def test_activate_of_a_pod_under_way_brings_it_back_and_no_other():
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(pod(name), 0.0)
    first, second = queue.pop(0.0), queue.pop(0.0)
    queue.activate([pod("a")], 0.1)
    refuse(queue, first, 0.2, "Fit")
    refuse(queue, second, 0.2, "Fit")
    assert queue.part_of(first.key) == "backoff"
    assert queue.part_of(second.key) == "unschedulable"


def test_a_pod_made_anew_while_its_namesake_is_under_way_keeps_its_place():
    queue = make_queue()
    queue.add(pod("a", uid="1"), 0.0)
    info = queue.pop(0.0)
    queue.add(pod("a", uid="2"), 0.1)
    assert not queue.add_unschedulable_if_not_present(info, 0.2)
    assert queue.pop(0.3).pod.metadata.uid == "2"
    assert not queue.statistics().in_flight_events


def test_an_addition_seen_twice_is_one_pod():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.add(pod("a"), 1.0)
    assert names(queue, 2.0) == ["a"]
    queue.add(pod("a"), 3.0)
    assert len(queue) == 0


def test_the_queue_says_when_there_is_something_to_pop():
    calls = []
    queue = make_queue(on_ready=lambda: calls.append(1))
    queue.add(pod("a"), 0.0)
    assert len(calls) == 1
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    assert len(calls) == 1
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert len(calls) == 2


def test_the_counts_say_what_came_in_by_which_event():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    refuse(queue, queue.pop(0.0), 0.0, "Fit")
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert queue.statistics().incoming == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
    }
    assert queue.unschedulable_reasons() == {("Fit", "default-scheduler"): 1}


def test_an_event_nobody_registered_for_is_not_even_logged_for_pods_under_way():
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.pop(0.0)
    queue.move_all_to_active_or_backoff(ClusterEvent(NODE, ActionType.UPDATE_NODE_CONDITION), "n", "n", 0.1)
    assert queue.statistics().in_flight_events == 0


def test_waking_follows_the_order_in_which_pods_fell_asleep():
    queue = make_queue(max_backoff_seconds=0)
    for name in ("c", "a", "b"):
        queue.add(pod(name), 0.0)
    for info in (queue.pop(0.0), queue.pop(0.0), queue.pop(0.0)):
        refuse(queue, info, 0.0, "Fit")
    queue.move_all_to_active_or_backoff(POD_DELETE, None, None, 0.1)
    queue.move_all_to_active_or_backoff(NODE_ADD, None, "node", 0.1)
    assert names(queue, 0.2) == ["c", "a", "b"]
    assert order is not None
