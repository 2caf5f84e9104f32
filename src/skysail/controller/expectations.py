"""What a controller has done and not seen yet: it must not act again until its cache has caught up.

After creating or deleting children a controller expects to see that in its cache. Until it has, or five minutes have
passed, the cache is known to be behind, and a reconcile that counts children there would create them twice.

| call                  | counts                                                                                 |
| --------------------- | -------------------------------------------------------------------------------------- |
| `expect(key, a, d)`   | a creations and d deletions are awaited; what was awaited before is forgotten          |
| `raise_expected`      | some more, if anything is awaited at all                                               |
| `creation_observed`   | one creation less                                                                      |
| `deletion_observed`   | one deletion less; with uids only the first time for each awaited uid                  |
| `satisfied`           | True when nothing is awaited (any more), or it has been for longer than the time-out   |

Counts may fall below zero (an event that came before `expect`): that is satisfied, too.

Source: kubernetes/pkg/controller/controller_utils.go (`ControllerExpectations`, `UIDTrackingControllerExpectations`),
v1.36.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from skysail.api.ports import Clock

K = TypeVar("K", bound=Hashable)

EXPECTATIONS_TIMEOUT_SECONDS = 300.0
"""How long to believe in an event that does not come."""


@dataclass(slots=True)
class Expected:
    """What is still awaited for one key."""

    creations: int
    deletions: int
    since: float

    @property
    def is_fulfilled(self) -> bool:
        """Whether nothing is awaited any more."""
        return self.creations <= 0 and self.deletions <= 0


class Expectations(Generic[K]):
    """Counts of awaited creations and deletions by the key of the controlling object.

    Args:
        clock: Measures the time-out.
        timeout_seconds: After which an expectation no longer holds anybody up.
    """

    def __init__(self, clock: Clock, timeout_seconds: float = EXPECTATIONS_TIMEOUT_SECONDS) -> None:
        self._clock, self._timeout = clock, timeout_seconds
        self._expected: dict[K, Expected] = {}

    def expect(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        """Await so many creations and deletions from now on, and nothing else."""
        self._expected[key] = Expected(creations, deletions, self._clock.monotonic())

    def expect_creations(self, key: K, count: int) -> None:
        """Await so many creations."""
        self.expect(key, creations=count)

    def expect_deletions(self, key: K, count: int) -> None:
        """Await so many deletions."""
        self.expect(key, deletions=count)

    def raise_expected(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        """Await more; nothing happens when nothing was awaited."""
        self.lower_expected(key, -creations, -deletions)

    def lower_expected(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        """Await less, as after a creation that failed; nothing happens when nothing was awaited."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.creations -= creations
            expected.deletions -= deletions

    def creation_observed(self, key: K) -> None:
        """The cache shows a new child."""
        self.lower_expected(key, creations=1)

    def deletion_observed(self, key: K) -> None:
        """The cache lost a child."""
        self.lower_expected(key, deletions=1)

    def satisfied(self, key: K) -> bool:
        """Whether the controller may act: its cache shows what it did, or has had its time to."""
        expected = self._expected.get(key)
        return expected is None or expected.is_fulfilled or self._clock.monotonic() - expected.since > self._timeout

    def forget(self, key: K) -> None:
        """The controlling object is gone."""
        self._expected.pop(key, None)

    def get(self, key: K) -> Expected | None:
        """What is awaited for a key; None when nothing ever was."""
        return self._expected.get(key)

    def __len__(self) -> int:
        return len(self._expected)


class UIDTrackingExpectations(Expectations[K], Generic[K]):
    """`Expectations` that knows which objects it awaits the deletion of.

    A pod that terminates gracefully is first updated (deletionTimestamp) and later deleted; either shows that the
    deletion was seen, and it must count once.
    """

    def __init__(self, clock: Clock, timeout_seconds: float = EXPECTATIONS_TIMEOUT_SECONDS) -> None:
        super().__init__(clock, timeout_seconds)
        self._uids: dict[K, set[str]] = {}

    def expect_deletions_of(self, key: K, uids: Iterable[str]) -> None:
        """Await the deletion of exactly these objects."""
        awaited = self._uids[key] = set(uids)
        self.expect(key, deletions=len(awaited))

    def deletion_of_observed(self, key: K, uid: str) -> None:
        """The cache shows that this object goes or is gone; counts only if awaited, and once."""
        awaited = self._uids.get(key)
        if awaited is not None and uid in awaited:
            awaited.remove(uid)
            self.deletion_observed(key)

    def awaited_uids(self, key: K) -> frozenset[str]:
        """Whose deletion is still awaited."""
        return frozenset(self._uids.get(key, ()))

    def forget(self, key: K) -> None:
        """The controlling object is gone."""
        super().forget(key)
        self._uids.pop(key, None)
