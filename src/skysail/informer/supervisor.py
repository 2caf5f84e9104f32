"""The one place where any exception is caught: code that others wrote may fail, the loop that calls it goes on.

Handlers, reconcilers and a reflector's rounds are run through `attempt`; their failure is a value for the caller to
count, log once and act upon. Cancellation passes through.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Failure:
    """What an attempt ended with instead of a result."""

    error: Exception


async def attempt(function: Callable[[], Awaitable[R]]) -> R | Failure:
    """Await a coroutine function, and give back any exception as a `Failure`."""
    try:
        return await function()
    except Exception as error:  # noqa: BLE001  (the one supervisor)
        return Failure(error)


async def attempt_call(function: Callable[[A], Awaitable[None] | None], argument: A) -> Failure | None:
    """Call a function that may be plain or async; None when it succeeded."""
    try:
        answer = function(argument)
        if answer is not None:
            await answer
    except Exception as error:  # noqa: BLE001  (the one supervisor)
        return Failure(error)
    return None
