"""The queue of three sets: nothing lost, nothing doubled, nothing in parallel."""

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skysail.api.errors import InvariantBroken
from skysail.workqueue import PriorityOrder, QueueStatistics, WorkQueue


def drain(queue):
    items = []
    while (item := queue.get_nowait()) is not None:
        items.append(item)
        queue.done(item)
    return items


def test_items_come_out_in_the_order_they_were_added():
    queue = WorkQueue()
    for item in "abc":
        queue.add(item)
    assert drain(queue) == ["a", "b", "c"]


def test_an_item_added_twice_is_worked_on_once():
    queue = WorkQueue()
    queue.add("a")
    queue.add("a")
    assert drain(queue) == ["a"]


def test_an_item_that_gets_dirty_in_work_runs_again_but_only_after_done():
    queue = WorkQueue()
    queue.add("a")
    assert queue.get_nowait() == "a"
    queue.add("a")
    assert queue.get_nowait() is None
    assert queue.statistics() == QueueStatistics(0, 1, 1, False)
    queue.done("a")
    assert queue.get_nowait() == "a"


def test_done_of_an_item_nobody_works_on_is_a_bug_and_says_so():
    with pytest.raises(InvariantBroken, match="done called for 'a'"):
        WorkQueue().done("a")


def test_a_queue_shutting_down_takes_nothing_in_and_hands_out_what_waits():
    queue = WorkQueue()
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert not queue.is_finished
    assert drain(queue) == ["a"]
    assert queue.is_finished
    assert queue.shutting_down


def test_an_item_dirty_in_work_is_still_handed_out_after_shut_down():
    queue = WorkQueue()
    queue.add("a")
    queue.get_nowait()
    queue.add("a")
    queue.shut_down()
    queue.done("a")
    assert queue.get_nowait() == "a"


def test_drain_waits_for_work_in_progress_and_for_what_waits():
    queue = WorkQueue()
    queue.add("a")
    queue.add("b")
    queue.get_nowait()
    queue.shut_down(drain=True)
    assert not queue.is_drained
    queue.done("a")
    assert not queue.is_drained
    queue.get_nowait()
    queue.done("b")
    assert queue.is_drained


def test_a_shut_down_without_drain_ends_the_waiting_of_an_earlier_one_with_drain():
    queue = WorkQueue()
    queue.add("a")
    queue.get_nowait()
    queue.shut_down(drain=True)
    assert not queue.is_drained
    queue.shut_down()
    assert queue.is_drained


def test_the_shell_is_woken_for_every_item_that_becomes_available():
    woken = []
    queue = WorkQueue(on_change=lambda: woken.append(len(queue)))
    queue.add("a")
    queue.add("a")
    queue.get_nowait()
    queue.add("a")
    queue.done("a")
    assert woken == [1, 1]


def test_higher_priority_goes_first_and_equal_priority_in_order_of_arrival():
    queue = WorkQueue(order=PriorityOrder())
    for item, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -100)):
        queue.add(item, priority)
    assert drain(queue) == ["b", "d", "a", "c", "e"]


def test_a_waiting_item_added_again_moves_up_with_a_higher_priority_only():
    queue = WorkQueue(order=PriorityOrder())
    queue.add("a")
    queue.add("b")
    queue.add("c", -1)
    queue.add("c", 1)
    queue.add("a", -5)
    assert drain(queue) == ["c", "a", "b"]


def test_the_priority_of_a_change_during_work_is_remembered():
    queue = WorkQueue(order=PriorityOrder())
    queue.add("a", -100)
    assert queue.get_nowait() == "a"
    assert queue.priority_of("a") == -100
    queue.add("a", -100)
    queue.add("a", 3)
    queue.add("b")
    queue.done("a")
    assert queue.get_nowait() == "a"
    assert queue.priority_of("a") == 3


@pytest.mark.parametrize("order", [None, PriorityOrder])
def test_no_interleaving_of_adds_gets_and_dones_loses_a_key_or_runs_it_twice_at_once(order):
    """A model check: every sequence of six steps over two keys and two workers."""
    steps = ("add a", "add b", "get 1", "get 2", "done 1", "done 2")
    for sequence in itertools.product(steps, repeat=6):
        _play(sequence, WorkQueue(order=order() if order else None))


def _play(sequence, queue):
    owed: set[str] = set()  # keys that changed and have not been started since
    workers: dict[str, str] = {}
    for step in sequence:
        verb, what = step.split()
        if verb == "add":
            queue.add(what)
            owed.add(what)
        elif verb == "get" and what not in workers:
            item = queue.get_nowait()
            if item is not None:
                assert item not in workers.values(), f"{sequence}: {item} runs twice at once"
                workers[what] = item
                owed.discard(item)
        elif verb == "done" and what in workers:
            queue.done(workers.pop(what))
        queue.validate()
    for item in list(workers.values()):
        queue.done(item)
    left = drain(queue)
    assert set(left) == owed, f"{sequence}: {owed} were owed, {left} came"
    assert len(left) == len(owed), f"{sequence}: {left} has an item twice"


class QueueMachine(RuleBasedStateMachine):
    """The same promise, over long histories, many keys, priorities and shut-down."""

    def __init__(self):
        super().__init__()
        self.queue = WorkQueue(order=PriorityOrder())
        self.owed: set[int] = set()
        self.in_work: set[int] = set()
        self.closed = False

    @rule(item=st.integers(0, 9), priority=st.integers(-2, 2))
    def add(self, item, priority):
        self.queue.add(item, priority)
        if not self.closed:
            self.owed.add(item)

    @rule()
    def get(self):
        item = self.queue.get_nowait()
        available = self.owed - self.in_work
        assert (item is None) == (not available)
        if item is not None:
            assert item in available
            self.owed.discard(item)
            self.in_work.add(item)

    @precondition(lambda self: self.in_work)
    @rule(data=st.data())
    def done(self, data):
        item = data.draw(st.sampled_from(sorted(self.in_work)))
        self.queue.done(item)
        self.in_work.discard(item)

    @rule(drain=st.booleans())
    def shut_down(self, drain):
        self.queue.shut_down(drain=drain)
        self.closed = True

    @invariant()
    def sets_agree(self):
        self.queue.validate()
        assert len(self.queue) == len(self.owed - self.in_work)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueueMachine = QueueMachine.TestCase
