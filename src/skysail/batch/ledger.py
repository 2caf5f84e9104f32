"""Who holds what: one ledger, keyed (flavor, resource), in integers, for every queue and all above it.

Three columns: `held` (bound, or about to be), `claimed` (promised, victims still leaving), `releasing` (leaving, room
not yet free). Invariants:
- charge is the check: `charge` walks leaf to root and either adds everywhere or nowhere;
- for all queues held + claimed + releasing <= capability, but for what was there before the ledger was asked (`force`:
  pods found running, limits lowered) and what a claim's own victims still hold;
- it equals a rebuild from tasks after every cycle.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import FlavorResource, ResourceVector


class Column(IntEnum):
    """Where an amount stands."""

    HELD = 0
    CLAIMED = 1
    RELEASING = 2


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a charge was not made.

    Attributes:
        queue: Where in the path.
        key: Of which flavor and resource.
        used: What counts there already.
        ask: What was asked for on top.
        limit: The queue's capability.
        words: What somebody else than the ledger said (a volume that is taken).
    """

    queue: str
    key: FlavorResource
    used: int
    ask: int
    limit: int
    words: str = ""

    @property
    def is_for_ever(self) -> bool:
        """Whether even an empty queue would refuse."""
        return self.ask > self.limit


Accounts: TypeAlias = dict[str, tuple[dict[FlavorResource, int], dict[FlavorResource, int], dict[FlavorResource, int]]]


class Ledger:
    """The accounts of all queues."""

    def __init__(self) -> None:
        self._accounts: Accounts = {}

    # -- reading ---------------------------------------------------------------------------------------------------

    def amount(self, queue: str, column: Column, key: FlavorResource) -> int:
        """One entry."""
        account = self._accounts.get(queue)
        return account[column].get(key, 0) if account is not None else 0

    def used(self, queue: str, key: FlavorResource) -> int:
        """Held and claimed: what an entitlement is compared with."""
        account = self._accounts.get(queue)
        return account[0].get(key, 0) + account[1].get(key, 0) if account is not None else 0

    def occupied(self, queue: str, key: FlavorResource) -> int:
        """All three columns: what a limit is compared with."""
        account = self._accounts.get(queue)
        return sum(column.get(key, 0) for column in account) if account is not None else 0

    def vector(self, queue: str, column: Column) -> ResourceVector:
        """A whole column of a queue."""
        account = self._accounts.get(queue)
        return ResourceVector(account[column]) if account is not None else ResourceVector()

    def room(
        self, path: Sequence[Queue], vector: ResourceVector, *, releasing_counts: bool = True
    ) -> tuple[int | None, Refusal | None]:
        """How many times a vector may be charged, None for any number, and what sets the bound."""
        least: int | None = None
        bound: Refusal | None = None
        for queue in path:
            if not queue.spec.figures:
                continue
            for key, amount in vector.items():
                limit = queue.limit(key)
                if limit is None:
                    continue
                used = self.occupied(queue.name, key) if releasing_counts else self.used(queue.name, key)
                times = max(0, limit - used) // amount
                if least is None or times < least:
                    least, bound = times, Refusal(queue.name, key, used, amount, limit)
        return least, bound

    def over_limits(self, queues: Iterable[Queue]) -> dict[str, Refusal]:
        """Queues that hold more than their capability: the excess stays, nothing is added."""
        found: dict[str, Refusal] = {}
        for queue in queues:
            for key in queue.spec.figures:
                limit, used = queue.limit(key), self.occupied(queue.name, key)
                if limit is not None and used > limit:
                    found.setdefault(queue.name, Refusal(queue.name, key, used, 0, limit))
        return found

    # -- changing --------------------------------------------------------------------------------------------------

    def charge(
        self,
        path: Sequence[Queue],
        vector: ResourceVector,
        column: Column = Column.HELD,
        *,
        releasing_counts: bool = True,
    ) -> Refusal | None:
        """Add a vector to a queue and all above it, or nowhere.

        Args:
            path: Leaf to root.
            vector: With `over_all_flavors` sums.
            column: Where.
            releasing_counts: Whether what is leaving still counts; a claim on exactly that room says no.

        Returns:
            None, or the first refusal from the leaf upwards.
        """
        for queue in path:
            if not queue.spec.figures:
                continue
            for key, amount in vector.items():
                limit = queue.limit(key)
                if limit is None:
                    continue
                used = self.occupied(queue.name, key) if releasing_counts else self.used(queue.name, key)
                if used + amount > limit:
                    return Refusal(queue.name, key, used, amount, limit)
        self.force(path, vector, column)
        return None

    def force(self, path: Sequence[Queue], vector: ResourceVector, column: Column = Column.HELD) -> None:
        """Add without asking: what already runs, runs."""
        self._add(path, vector, column, 1)

    def release(self, path: Sequence[Queue], vector: ResourceVector, column: Column = Column.HELD) -> None:
        """Take a charge back."""
        self._add(path, vector, column, -1)

    def move(self, path: Sequence[Queue], vector: ResourceVector, source: Column, target: Column) -> None:
        """From one column to another."""
        self._add(path, vector, source, -1)
        self._add(path, vector, target, 1)

    def _add(self, path: Sequence[Queue], vector: ResourceVector, column: Column, sign: int) -> None:
        for queue in path:
            account = self._accounts.get(queue.name)
            if account is None:
                account = self._accounts[queue.name] = ({}, {}, {})
            amounts = account[column]
            for key, amount in vector.items():
                total = amounts.get(key, 0) + sign * amount
                if total:
                    amounts[key] = total
                else:
                    del amounts[key]
            if sign < 0 and not any(account):
                del self._accounts[queue.name]

    # -- comparing -------------------------------------------------------------------------------------------------

    def entries(self) -> Mapping[tuple[str, str, FlavorResource], int]:
        """Everything that is not zero, by queue, column and key: two ledgers are equal when these are."""
        return {
            (queue, Column(place).name.lower(), key): amount
            for queue, account in self._accounts.items()
            for place, column in enumerate(account)
            for key, amount in column.items()
            if amount
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.entries() == other.entries()

    __hash__ = None  # type: ignore[assignment]
