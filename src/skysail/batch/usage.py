"""Past use of queues, decaying: the part of the cluster a queue held, each moment counting half after a half-life.

Use is constant between two looks, so looking seldom loses nothing. Millionths of the cluster, whole numbers.
"""

from collections.abc import Iterable, Mapping

from skysail.batch.ledger import Column, Ledger
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY, FlavorResource

MILLION = 1_000_000


class Usage:
    """The account.

    Attributes:
        millionths: By queue; only queues with a half-life.
    """

    def __init__(self) -> None:
        self.millionths: dict[str, int] = {}
        self._at = 0.0

    def of(self, queue: Queue) -> int:
        """A queue's decayed use; what its status said while it was never looked at."""
        return self.millionths.get(queue.name, queue.spec.usage)

    def settle(self, queues: Iterable[Queue], ledger: Ledger, totals: Mapping[FlavorResource, int], now: float) -> None:
        """Count what queues held since the last time; before what they hold changes."""
        elapsed = max(0.0, now - self._at) if self._at else 0.0
        self._at = now
        found: dict[str, int] = {}
        for queue in queues:
            half_life = queue.spec.usage_half_life_seconds
            if half_life > 0:
                kept = 0.5 ** (elapsed / half_life)
                held = _part_held(queue, ledger, totals)
                found[queue.name] = round(self.of(queue) * kept + held * (1 - kept))
        self.millionths = found


def _part_held(queue: Queue, ledger: Ledger, totals: Mapping[FlavorResource, int]) -> int:
    """The largest part of any resource that it holds now."""
    most = 0
    for key, amount in ledger.vector(queue.name, Column.HELD).items():
        if key[0] == ANY and totals.get(key, 0) > 0:
            most = max(most, amount * MILLION // totals[key])
    return most
