"""How long a failed item waits."""

import pytest

from skysail.workqueue import (
    BucketLimiter,
    ItemExponentialLimiter,
    ItemFastSlowLimiter,
    MaxOfLimiter,
    MaxWaitLimiter,
    default_controller_limiter,
)
from tests.workqueue.clocks import ManualClock


def test_each_item_doubles_its_own_delay_up_to_the_maximum():
    limiter = ItemExponentialLimiter(0.005, 1000)
    delays = [limiter.when("a") for _ in range(20)]
    assert delays[:5] == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert delays[17] == 0.005 * 2**17
    assert delays[18:] == [1000, 1000]
    assert limiter.when("b") == 0.005
    assert limiter.num_requeues("a") == 20


def test_a_delay_never_overflows():
    limiter = ItemExponentialLimiter(0.005, 1000)
    for _ in range(5000):
        last = limiter.when("a")
    assert last == 1000


def test_the_bucket_lets_a_burst_through_and_then_makes_items_wait_in_turn():
    clock = ManualClock()
    limiter = BucketLimiter(clock, per_second=10, burst=3)
    assert [limiter.when(item) for item in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.advance(0.2)
    assert limiter.when("x") == pytest.approx(0.1)
    clock.advance(100)
    assert [limiter.when(item) for item in range(4)] == pytest.approx([0, 0, 0, 0.1])
    assert limiter.num_requeues("x") == 0


def test_the_first_attempts_are_fast_and_the_later_ones_slow():
    limiter = ItemFastSlowLimiter(0.005, 10, 3)
    assert [limiter.when("a") for _ in range(5)] == [0.005, 0.005, 0.005, 10, 10]
    assert limiter.num_requeues("a") == 5
    limiter.forget("a")
    assert limiter.when("a") == 0.005


def test_the_longest_delay_of_several_limiters_counts():
    limiter = MaxOfLimiter((ItemExponentialLimiter(1, 100), ItemFastSlowLimiter(3, 50, 2)))
    assert [limiter.when("a") for _ in range(4)] == [3, 3, 50, 50]
    assert limiter.num_requeues("a") == 4
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


def test_a_maximum_cuts_another_limiters_delays():
    limiter = MaxWaitLimiter(ItemExponentialLimiter(1, 100), 3)
    assert [limiter.when("a") for _ in range(4)] == [1, 2, 3, 3]
    assert limiter.num_requeues("a") == 4
    limiter.forget("a")
    assert limiter.when("a") == 1


def test_controllers_retry_each_item_from_5_ms_and_all_together_10_a_second_after_100():
    limiter = default_controller_limiter(ManualClock())
    assert [limiter.when(item) for item in range(100)] == [0.005] * 100
    assert limiter.when("one more") == pytest.approx(0.1)
