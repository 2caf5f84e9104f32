"""Items added later: the earliest deadline wins, and nothing comes early."""

from hypothesis import given, settings
from hypothesis import strategies as st

from skysail.workqueue import DelayingQueue, ItemExponentialLimiter, PriorityOrder, RateLimitingQueue
from tests.workqueue.clocks import ManualClock


def test_a_delayed_item_is_released_when_its_time_has_come():
    clock = ManualClock()
    queue = DelayingQueue(clock)
    queue.add_after("a", 5)
    clock.advance(4.9)
    assert queue.release_due() == 0
    clock.advance(0.1)
    assert queue.release_due() == 1
    assert queue.get_nowait() == "a"


def test_no_delay_is_an_add():
    queue = DelayingQueue(ManualClock())
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert len(queue) == 2
    assert queue.next_ready_at() is None


def test_the_earlier_of_two_deadlines_wins_whichever_came_first():
    clock = ManualClock()
    queue = DelayingQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("b", 3)
    queue.add_after("b", 10)
    assert queue.delayed() == 2
    clock.advance(3)
    assert queue.release_due() == 2
    clock.advance(100)
    assert queue.release_due() == 0


def test_the_higher_of_two_priorities_wins_whichever_deadline_does():
    clock = ManualClock()
    queue = DelayingQueue(clock, order=PriorityOrder())
    queue.add_after("late but urgent", 1, priority=-1)
    queue.add_after("late but urgent", 9, priority=7)
    queue.add_after("other", 1, priority=3)
    clock.advance(1)
    queue.release_due()
    assert queue.get_nowait() == "late but urgent"


def test_next_ready_at_is_the_earliest_deadline_that_still_counts():
    clock = ManualClock()
    queue = DelayingQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("b", 20)
    queue.add_after("b", 4)
    assert queue.next_ready_at() == 4
    clock.advance(4)
    queue.release_due()
    assert queue.next_ready_at() == 10


def test_the_shell_is_told_when_the_earliest_deadline_moves_forward():
    told = []
    queue = DelayingQueue(ManualClock(), on_change=lambda: told.append(queue.next_ready_at()))
    queue.add_after("a", 10)
    queue.add_after("b", 20)
    queue.add_after("c", 5)
    assert told == [10, 5]


def test_shut_down_drops_what_is_delayed_and_takes_no_more():
    clock = ManualClock()
    queue = DelayingQueue(clock)
    queue.add_after("a", 1)
    queue.shut_down()
    queue.add_after("b", 1)
    clock.advance(10)
    assert queue.release_due() == 0
    assert queue.is_finished


def test_a_failing_item_waits_longer_each_time_until_it_is_forgotten():
    queue = RateLimitingQueue(ItemExponentialLimiter(), ManualClock())
    assert [queue.add_rate_limited("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
    assert queue.num_requeues("a") == 4
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert queue.add_rate_limited("a") == 0.005


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 30), st.integers(0, 10)), max_size=60))
def test_each_item_comes_out_at_the_earliest_deadline_asked_for(steps):
    clock = ManualClock()
    queue = DelayingQueue(clock)
    deadlines = {}
    for item, delay, pause in steps:
        queue.add_after(item, delay)
        wanted = clock.seconds + delay
        deadlines[item] = min(deadlines.get(item, wanted), wanted)
        clock.advance(pause)
        queue.release_due()
        due = {each for each, at in deadlines.items() if at <= clock.seconds}
        got = set()
        while (each := queue.get_nowait()) is not None:
            got.add(each)
            queue.done(each)
        assert got == due
        for each in due:
            del deadlines[each]
        assert queue.next_ready_at() == min(deadlines.values(), default=None)
