"""Doing many things that may all fail for the same reason: start with one, then double while it goes well.

Source: kubernetes/pkg/controller/replicaset/replica_set.go `slowStartBatch`, v1.36.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from skysail.informer.supervisor import Failure, attempt


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """How far a slow-start batch came.

    Attributes:
        successes: Calls that succeeded.
        skipped: Calls not made, because an earlier batch had a failure.
        errors: What the failed calls ended with.
    """

    successes: int
    skipped: int
    errors: tuple[Exception, ...]


async def slow_start_batch(count: int, call: Callable[[int], Awaitable[None]], initial_size: int = 1) -> BatchOutcome:
    """Make `count` calls, in batches of 1, 2, 4, ... that run side by side; stop after a batch with a failure.

    Args:
        count: How many calls are wanted.
        call: Takes the number of the call, from 0.
        initial_size: The first batch's size.
    """
    done = successes = 0
    size = min(count, initial_size)
    while size > 0:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(attempt(lambda n=number: call(n))) for number in range(done, done + size)]  # type: ignore[misc]
        errors = tuple(outcome.error for task in tasks if isinstance(outcome := task.result(), Failure))
        done += size
        successes += size - len(errors)
        if errors:
            return BatchOutcome(successes, count - done, errors)
        size = min(2 * size, count - done)
    return BatchOutcome(successes, 0, ())
