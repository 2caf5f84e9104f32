"""Who may hold what: exact water-filling over the queue tree, in integers.

For siblings that share a pool, per (flavor, resource):

    0. guarantees are set aside; deserved shares come next; where their sums exceed the pool they are scaled, and it is
       said so;
    1. each has what it asks for up to its deserved share, and its guarantee in any case (a guarantee is not lent);
    2. the rest goes by priority level, high to low, in proportion to weight, up to what is asked for and may be had.

Shares are whole units. Proportions are rounded by a divisor method (each next unit goes to the queue whose share would
be exceeded least, Sainte-Laguë), ties by age and name: unlike largest remainders this can never take from a queue
because the pool grew, nor depend on queues that want nothing.
Differs: the source systems round by largest remainder; `compatibility` has their figures.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Rank = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Claimant:
    """One queue's part in a division.

    Attributes:
        name: The queue.
        request: What it holds and waits for.
        guarantee: Set aside for it whether it asks or not.
        deserved: Its own share, lent while it does not ask for it; None claims nothing.
        capability: The most it may have; None is no limit.
        weight: Its part of the surplus; 0 takes none.
        priority: Of surplus, higher first.
        usage: Past use in millionths of the pool.
        usage_weight: How much that counts, in thousandths.
        created: Older first when all else is equal.
    """

    name: str
    request: int
    guarantee: int = 0
    deserved: int | None = None
    capability: int | None = None
    weight: int = 1
    priority: int = 0
    usage: int = 0
    usage_weight: int = 0
    created: float = 0.0

    @property
    def rank(self) -> Rank:
        """Breaks ties."""
        return self.created, self.name

    @property
    def wanted(self) -> int:
        """What it asks for, up to its capability."""
        return self.request if self.capability is None else min(self.request, self.capability)

    @property
    def base(self) -> int:
        """What it has before any surplus is given."""
        return max(min(self.wanted, self.deserved or 0), self.guarantee)


@dataclass(frozen=True, slots=True)
class Division:
    """The shares of siblings.

    Attributes:
        shares: By name; they add up to the pool at most.
        scaled: Whether guarantees or deserved shares had to be scaled down.
    """

    shares: Mapping[str, int]
    scaled: bool = False


def divide(pool: int, claimants: Sequence[Claimant]) -> Division:
    """Divide a pool among siblings.

    Cost: n log n in the number of siblings.
    """
    pool = max(0, pool)
    guaranteed, base = sum(each.guarantee for each in claimants), sum(each.base for each in claimants)
    if guaranteed > pool:
        return Division(
            proportional(pool, claimants, {each.name: (each.guarantee, each.guarantee) for each in claimants}), True
        )
    shares = {each.name: each.guarantee for each in claimants}
    if base > pool:
        above = {each.name: (each.base - each.guarantee, each.base - each.guarantee) for each in claimants}
        for name, more in proportional(pool - guaranteed, claimants, above).items():
            shares[name] += more
        return Division(shares, True)
    shares = {each.name: each.base for each in claimants}
    _give_surplus(pool - base, claimants, shares)
    return Division(shares)


def _give_surplus(rest: int, claimants: Sequence[Claimant], shares: dict[str, int]) -> None:
    for priority in sorted({each.priority for each in claimants}, reverse=True):
        level = [each for each in claimants if each.priority == priority and each.weight > 0]
        for weights in (effective_weights(level), {each.name: each.weight for each in level}):
            if rest <= 0:
                return
            wishes = {each.name: (weights[each.name], max(0, each.wanted - shares[each.name])) for each in level}
            given = proportional(rest, level, wishes)
            for name, more in given.items():
                shares[name] += more
            rest -= sum(given.values())


def effective_weights(level: Sequence[Claimant]) -> dict[str, int]:
    """Weights with past use counted against them; a queue far above its part may come to 0, and is served last."""
    hungry = [each for each in level if each.request > 0]
    total = sum(each.weight for each in hungry)
    weights = {each.name: 0 for each in level}
    for each in hungry:
        surplus = each.weight * 1_000_000 - each.usage * total
        weights[each.name] = max(0, each.weight * 1_000_000_000 + each.usage_weight * surplus)
    return weights


def proportional(amount: int, claimants: Sequence[Claimant], wishes: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Give out an amount in proportion to weights, up to caps; what the caps leave over is not given.

    Args:
        amount: How much there is.
        claimants: For their ranks, which break ties.
        wishes: Weight and cap, by name.

    Returns:
        Whole shares: the first `amount` awards of a sequence that does not depend on it.
    """
    shares = {each.name: 0 for each in claimants}
    ranks = {each.name: each.rank for each in claimants}
    open_wishes = {name: wish for name, wish in wishes.items() if wish[0] > 0 and wish[1] > 0}
    if amount >= sum(cap for _, cap in open_wishes.values()):
        return shares | {name: cap for name, (_, cap) in open_wishes.items()}
    if amount <= 0:
        return shares
    level = _water_level(amount, list(open_wishes.values()))
    for name, (weight, cap) in open_wishes.items():
        shares[name] = min(cap, (2 * weight * level.numerator + level.denominator) // (2 * level.denominator))
    _settle(amount - sum(shares.values()), shares, open_wishes, ranks)
    return shares


def _water_level(amount: int, wishes: Sequence[tuple[int, int]]) -> Fraction:
    """The level at which `sum(min(cap, weight * level))` is the amount; one pass over caps in order."""
    weights = sum(weight for weight, _ in wishes)
    for weight, cap in sorted(wishes, key=lambda wish: Fraction(wish[1], wish[0])):
        if cap * weights > amount * weight:
            break
        amount -= cap
        weights -= weight
    return Fraction(amount, weights)


def _settle(
    missing: int, shares: dict[str, int], wishes: Mapping[str, tuple[int, int]], ranks: Mapping[str, Rank]
) -> None:
    """Award the missing units, or take back the surplus ones, in the order of the divisor method."""
    if missing > 0:
        heap = [
            (Fraction(2 * shares[name] + 1, 2 * weight), ranks[name], name)
            for name, (weight, cap) in wishes.items()
            if shares[name] < cap
        ]
        heapq.heapify(heap)
        for _ in range(missing):
            _, rank, name = heapq.heappop(heap)
            shares[name] += 1
            weight, cap = wishes[name]
            if shares[name] < cap:
                heapq.heappush(heap, (Fraction(2 * shares[name] + 1, 2 * weight), rank, name))
    for _ in range(-missing):
        last = max(
            (name for name in wishes if shares[name] > 0),
            key=lambda name: (Fraction(2 * shares[name] - 1, 2 * wishes[name][0]), ranks[name]),
        )
        shares[last] -= 1
