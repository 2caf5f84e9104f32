"""Starting slowly: what fails once is not tried a thousand times."""

import asyncio

import pytest

from skysail.controller import BatchOutcome, slow_start_batch
from skysail.simulator.clock import run_virtual


def batches_of(count, fails=lambda number: False, initial=1):
    """The sizes of the batches, and the outcome."""
    started: list[float] = []

    async def main(clock):
        async def call(number):
            started.append(clock.monotonic())
            await asyncio.sleep(1)
            if fails(number):
                raise ValueError(number)

        return await slow_start_batch(count, call, initial)

    outcome = run_virtual(main)
    return [started.count(moment) for moment in sorted(set(started))], outcome


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (2, [1, 1]), (10, [1, 2, 4, 3]), (15, [1, 2, 4, 8]), (-3, [])]
)
def test_batches_double_while_all_goes_well(count, sizes):
    assert batches_of(count) == (sizes, BatchOutcome(max(count, 0), 0, ()))


def test_the_first_batch_may_be_larger():
    assert batches_of(100, initial=10)[0] == [10, 20, 40, 30]


def test_one_failure_lets_its_batch_end_and_skips_the_rest():
    sizes, outcome = batches_of(500, fails=lambda number: number == 4)
    assert sizes == [1, 2, 4]
    assert (outcome.successes, outcome.skipped) == (6, 493)
    assert [str(error) for error in outcome.errors] == ["4"]


def test_a_failing_first_call_is_the_only_one():
    sizes, outcome = batches_of(500, fails=lambda number: True)
    assert sizes == [1]
    assert (outcome.successes, outcome.skipped) == (0, 499)
