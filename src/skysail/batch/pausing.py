"""How a long cycle lets others have their turn: it is a generator that pauses, stepped by the shell.

    BETWEEN   nothing is open: the world may change now; the session catches up when it goes on
    WITHIN    a search or a transaction is open: changes wait in the `Inbox` until it is over

The shared cluster cache is not the world: the other engine may change it at any pause. What is committed is therefore
held against rows that are newer than the snapshot (`skysail.batch.freshness`).
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from enum import Enum
from typing import TypeAlias, TypeVar

T = TypeVar("T")


class Pause(Enum):
    """Where a cycle stands when it pauses."""

    BETWEEN = "between"
    WITHIN = "within"


Steps: TypeAlias = Iterator[Pause]
"""What takes several steps and has no answer."""
StepsTo: TypeAlias = Generator[Pause, None, T]
"""What takes several steps to an answer."""


def finish(steps: StepsTo[T]) -> T:
    """Take all steps at once; for those who have nobody to let in between."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: T = end.value
            return answer


class Inbox:
    """Changes of the world: made at once while nothing is open, else when that is over, in their order."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._held = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def submit(self, change: Callable[[], None]) -> None:
        """Make a change, now or later."""
        if self._held:
            self._waiting.append(change)
        else:
            change()

    def hold(self) -> None:
        """From now on changes wait."""
        self._held = True

    def open(self) -> None:
        """Make those that waited; from now on they are made at once.

        A fault in one does not keep the others from being made; the first is raised at the end.
        """
        self._held = False
        fault: Exception | None = None
        while self._waiting:
            try:
                self._waiting.popleft()()
            except Exception as error:  # noqa: BLE001 - raised again below
                fault = fault or error
        if fault is not None:
            raise fault
