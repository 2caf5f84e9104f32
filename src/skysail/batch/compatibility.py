"""The share arithmetic of the systems we learn from, as they compute it: for migration, comparison and tests.

Each mode answers as the original does, its rounding and its known oddities included. `entitlement` is what Skysail
itself decides by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

Number = int | Fraction
NO_LIMIT = -1


# -- Koordinator ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ElasticQuotaRow:
    """One quota: limited request, min, guarantee, shared weight, whether unused min is lent."""

    weight: int
    limited_request: int
    minimum: int
    guarantee: int = 0
    lends: bool = True


def koordinator_runtime(pool: int, rows: Mapping[str, ElasticQuotaRow]) -> dict[str, int]:
    """Koordinator's runtime quota of siblings: largest remainders, ties by name, min never scaled."""
    runtime: dict[str, int] = {}
    players: list[str] = []
    for name in sorted(rows):
        row = rows[name]
        floor = max(row.minimum, row.guarantee)
        if row.limited_request > floor:
            runtime[name] = floor
            players.append(name)
        else:
            runtime[name] = row.limited_request if row.lends else floor
    rest = pool - sum(runtime.values())
    while rest > 0 and players:
        given = _largest_remainder(rest, {name: rows[name].weight for name in players})
        rest = 0
        still: list[str] = []
        for name in players:
            room = rows[name].limited_request - runtime[name]
            runtime[name] += min(room, given[name])
            if given[name] >= room:
                rest += given[name] - room
            else:
                still.append(name)
        if len(still) == len(players) or not sum(rows[name].weight for name in still):
            break
        players = still
    return runtime


def _largest_remainder(amount: int, weights: Mapping[str, int]) -> dict[str, int]:
    total = sum(weights.values())
    if not total:
        return dict.fromkeys(weights, 0)
    shares = {name: amount * weight // total for name, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda name: (-(amount * weights[name] % total), name))
    for name in by_remainder[: amount - sum(shares.values())]:
        shares[name] += 1
    return shares


# -- KAI -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KaiQueue:
    """One queue: -1 is no limit, and no bound to what is deserved. Queues are given oldest first."""

    request: Number
    deserved: Number = 0
    limit: Number = NO_LIMIT
    weight: Number = 1
    priority: int = 0
    usage: Number = 0


def kai_fair_share(total: Number, queues: Mapping[str, KaiQueue], k: Number = 0) -> dict[str, Fraction]:
    """KAI's fair share of siblings: deserved first and never scaled, then by priority level and weight."""
    share: dict[str, Fraction] = {}
    for name, queue in queues.items():
        deserved = queue.request if queue.deserved == NO_LIMIT else queue.deserved
        share[name] = Fraction(min(deserved, queue.request))
    remaining = Fraction(total) - sum(share.values())
    for priority in sorted({queue.priority for queue in queues.values()}, reverse=True):
        level = {name: queue for name, queue in queues.items() if queue.priority == priority}
        remaining = _kai_level(remaining, level, share, Fraction(k))
    return share


def _kai_level(remaining: Fraction, level: Mapping[str, KaiQueue], share: dict[str, Fraction], k: Fraction) -> Fraction:
    remainders: dict[str, Fraction] = {}
    while remaining > 0:
        hungry = {name: queue for name, queue in level.items() if queue.weight and _kai_room(queue, share[name]) > 0}
        weights = _kai_weights(hungry, k)
        remainders, again, pool = {}, False, remaining
        for name, weight in weights.items():
            fair = pool * weight
            room = _kai_room(hungry[name], share[name])
            given = min(Fraction(fair.numerator // fair.denominator), room)
            again = again or (given == room and given > 0)
            if given < room:
                remainders[name] = fair - given
            share[name] += given
            remaining -= given
        if not again:
            break
    for name in sorted(remainders, key=lambda name: -remainders[name]):
        given = min(Fraction(1), remaining, _kai_room(level[name], share[name]))
        share[name] += max(given, Fraction(0))
        remaining -= max(given, Fraction(0))
    return remaining


def _kai_room(queue: KaiQueue, share: Fraction) -> Fraction:
    most = queue.request if queue.limit == NO_LIMIT else min(queue.limit, queue.request)
    return Fraction(most) - share


def _kai_weights(hungry: Mapping[str, KaiQueue], k: Fraction) -> dict[str, Fraction]:
    total = sum((Fraction(queue.weight) for queue in hungry.values()), Fraction(0))
    raw = {}
    for name, queue in hungry.items():
        normal = Fraction(queue.weight) / total
        raw[name] = max(Fraction(0), normal + k * (normal - Fraction(queue.usage)))
    whole = sum(raw.values(), Fraction(0))
    return {name: weight / whole for name, weight in raw.items() if weight} if whole else {}


# -- Volcano's proportion ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProportionQueue:
    """One queue's figures for one resource; capability None is no limit."""

    request: int
    weight: int = 1
    guarantee: int = 0
    capability: int | None = None


def proportion_deserved(total: int, queues: Mapping[str, ProportionQueue]) -> dict[str, Fraction]:
    """Deserved amounts of one resource: the exact limit of Volcano's loop, which halves its way towards it."""
    guaranteed = sum(queue.guarantee for queue in queues.values())
    caps = {}
    for name, queue in queues.items():
        real = total - guaranteed + queue.guarantee
        real = real if queue.capability is None else min(real, queue.capability)
        caps[name] = max(min(real, queue.request), queue.guarantee)
    deserved = {name: Fraction(queue.guarantee) for name, queue in queues.items()}
    active = {name for name in queues if queues[name].weight}
    while active:
        spent = sum(deserved[name] for name in queues if name not in active)
        level = Fraction(total - spent) / sum(queues[name].weight for name in active)
        wished = {name: queues[name].weight * level for name in active}
        low = {name for name in active if wished[name] <= queues[name].guarantee}
        high = {name for name in active if wished[name] >= caps[name]} - low
        if low:
            active -= low
        elif high:
            deserved |= {name: Fraction(caps[name]) for name in high}
            active -= high
        else:
            return deserved | wished
    return deserved


# -- Kueue ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CohortNode:
    """A ClusterQueue or Cohort, for one flavor and resource; `parent` is a name of another, or of the bare root."""

    parent: str = ""
    nominal: int = 0
    lending_limit: int | None = None
    borrowing_limit: int | None = None
    usage: int = 0
    weight: Fraction = Fraction(1)
    is_cohort: bool = False


class CohortTree:
    """Kueue's arithmetic on one tree of cohorts."""

    def __init__(self, nodes: Mapping[str, CohortNode]) -> None:
        roots = {node.parent for node in nodes.values() if node.parent and node.parent not in nodes}
        self._nodes = {**dict.fromkeys(sorted(roots), CohortNode(is_cohort=True)), **nodes}

    def _children(self, name: str) -> list[str]:
        return [child for child, node in self._nodes.items() if node.parent == name]

    def subtree(self, name: str) -> int:
        """Own quota and what children lend."""
        lent = sum(self.subtree(child) - self.local(child) for child in self._children(name))
        return self._nodes[name].nominal + lent

    def local(self, name: str) -> int:
        """What is kept from the parent."""
        limit = self._nodes[name].lending_limit
        return 0 if limit is None else max(0, self.subtree(name) - limit)

    def usage(self, name: str) -> int:
        """Own usage, or what children use beyond what is local to them."""
        children = self._children(name)
        over = sum(max(0, self.usage(child) - self.local(child)) for child in children)
        return over if self._nodes[name].is_cohort else self._nodes[name].usage

    def available(self, name: str, *, if_unused: bool = False) -> int:
        """What may still be admitted; with `if_unused`, what an empty tree would admit."""
        node, subtree, local = self._nodes[name], self.subtree(name), self.local(name)
        usage = 0 if if_unused else self.usage(name)
        if not node.parent:
            return subtree - usage
        above = self.available(node.parent, if_unused=if_unused)
        if node.borrowing_limit is not None:
            above = min(above, (subtree - local) - max(0, usage - local) + node.borrowing_limit)
        return max(0, local - usage) + above

    def dominant_share(self, name: str, request: int = 0) -> Fraction | None:
        """Thousandths of what is lendable that it uses above its own; None is infinite (weight 0)."""
        node = self._nodes[name]
        over = max(0, self.usage(name) + request - self.subtree(name))
        if not over or not node.parent:
            return Fraction(0)
        lendable = self.available(node.parent, if_unused=True)
        if not node.weight:
            return None
        return Fraction(1000 * over, lendable) / node.weight if lendable else Fraction(0)
