"""The entitlement of every queue of a world, and what it says about moves between queues.

Plain queues are measured over all flavors together (`ANY`), queues that name flavors on each of them; what the latter
are entitled to is not divided again among the former.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from skysail.batch.entitlement import Claimant, divide
from skysail.batch.ledger import Column
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY, PODS, FlavorResource
from skysail.batch.world import World

Amounts = Mapping[str, Mapping[FlavorResource, int]]
"""By queue and key."""


@dataclass(slots=True)
class Beyond:
    """A part of a queue's demand that is left out: of its own jobs, not of the queues below.

    Attributes:
        used: Held and claimed, by key.
        wanted: Waited for, by resource.
    """

    used: dict[FlavorResource, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)


_NONE_BEYOND: Final[Mapping[str, Beyond]] = MappingProxyType({})


@dataclass(slots=True)
class Entitlements:
    """What each queue may hold.

    Attributes:
        shares: By queue name and key; a key that is not there is not measured.
        demand: What each queue holds and waits for, alike.
        scaled: Queues whose guarantee or deserved share had to be scaled down, with the keys.
        totals: What the cluster offers, by key.
        usage: Decayed past use, by queue.
    """

    shares: dict[str, dict[FlavorResource, int]] = field(default_factory=dict)
    demand: dict[str, dict[FlavorResource, int]] = field(default_factory=dict)
    scaled: dict[str, set[FlavorResource]] = field(default_factory=dict)
    totals: dict[FlavorResource, int] = field(default_factory=dict)
    usage: Mapping[str, int] = field(default_factory=dict)

    def of(self, queue: str, key: FlavorResource) -> int | None:
        """A queue's share; None when it is not measured there."""
        return self.shares.get(queue, {}).get(key)

    def claim(self, queue: Queue, key: FlavorResource) -> int | None:
        """Up to where a queue may take back: its share, or nothing in a dimension in which it states no claim.

        A queue that states a deserved share somewhere states by that where it does not; one that states none anywhere
        claims by weight.
        """
        share = self.of(queue.name, key)
        if share is None or queue.is_spot:
            return None
        states = any(figures.deserved is not None for figures in queue.spec.figures.values())
        if states and queue.figures(key).deserved is None:
            return queue.figures(key).guarantee or 0
        return share

    def dominant_use(self, queue: str, used: Mapping[FlavorResource, int]) -> Fraction:
        """The largest part of its share that a queue uses; above 1 it borrows.

        At least 1 for a queue that is entitled to nothing of what it wants: others would take it back at once.
        """
        demand = self.demand.get(queue, {})
        wanted = [share for key, share in self.shares.get(queue, {}).items() if demand.get(key) and key[1] != PODS]
        most = Fraction(1 if wanted and not any(wanted) else 0)
        for key, share in self.shares.get(queue, {}).items():
            amount = used.get(key, 0)
            if amount:
                most = max(most, Fraction(amount, share) if share else Fraction(amount * 1_000_000))
        return most

    def potential(self, used: Amounts, demand: Amounts | None = None) -> tuple[Fraction, Fraction]:
        """(unserved entitlement, use above entitlement), each in parts of the cluster: what every move must lower.

        Args:
            used: Held and claimed, by queue and key.
            demand: What queues hold and wait for that could be served within their entitlement; None is all of it.
        """
        asked = self.demand if demand is None else demand
        unserved = over = Fraction(0)
        for queue, shares in self.shares.items():
            amounts, wishes = used.get(queue, {}), asked.get(queue, {})
            for key, share in shares.items():
                total = self.totals.get(key, 0)
                if total > 0:
                    amount = amounts.get(key, 0)
                    unserved += Fraction(max(0, min(share, wishes.get(key, 0)) - amount), total)
                    over += Fraction(max(0, amount - share), total)
        return unserved, over


def entitlements_of(world: World) -> Entitlements:
    """Divide the cluster among all queues.

    Cost: Grows with queues times resources, not with jobs or nodes.
    """
    found = Entitlements(usage=world.usage.millionths)
    flavored = {key for queue in world.tree.values() for key in queue.spec.figures if key[0] != ANY}
    resources = {resource for _, resource in flavored} | _resources(world)
    for queue in world.tree.values():
        found.demand[queue.name] = {}
        found.shares[queue.name] = {}
    keys = [*sorted(flavored), *((ANY, resource) for resource in sorted(resources))]
    for key in keys:
        found.totals[key] = max(0, world.flavors.total(key) - world.foreign_use.get(key, 0))
        for root in world.tree.roots:
            _add_demand(world, root, key, found)
    for key in keys:
        taken = 0
        if key[0] == ANY:
            same = [each for each in flavored if each[1] == key[1]]
            taken = sum(found.shares[root.name].get(each, 0) for root in world.tree.roots for each in same)
        _divide(world, world.tree.roots, found.totals[key] - taken, key, found)
    return found


def _resources(world: World) -> set[str]:
    wanted = {resource for amounts in world.wanted.values() for resource, amount in amounts.items() if amount}
    named = {resource for queue in world.tree.values() for _, resource in queue.spec.figures}
    held = {key[1] for root in world.tree.roots for column in Column for key in world.ledger.vector(root.name, column)}
    return wanted | named | held


def _is_measured(queue: Queue, key: FlavorResource) -> bool:
    if queue.names_flavors:
        return key[0] != ANY and (
            key in queue.spec.figures or any(_is_measured(child, key) for child in queue.children)
        )
    if key[0] == ANY:
        return not queue.children or any(_is_measured(child, key) for child in queue.children)
    return any(_is_measured(child, key) for child in queue.children)


def demand_without(world: World, entitlements: Entitlements, beyond: Mapping[str, Beyond]) -> Amounts:
    """What each queue holds and waits for, a part of it left out.

    Args:
        world: Whose ledger and wishes.
        entitlements: In which dimensions each is measured.
        beyond: What is left out, by queue.
    """
    found = Entitlements(totals=entitlements.totals, demand={queue: {} for queue in world.tree})
    for key in entitlements.totals:
        for root in world.tree.roots:
            _add_demand(world, root, key, found, beyond)
    return found.demand


def _add_demand(
    world: World, queue: Queue, key: FlavorResource, found: Entitlements, beyond: Mapping[str, Beyond] = _NONE_BEYOND
) -> int:
    flavor, resource = key
    demand = world.ledger.used(queue.name, key)
    if queue.children:
        own = demand - sum(world.ledger.used(child.name, key) for child in queue.children)
        demand = own + sum(
            _capped(child, key, _add_demand(world, child, key, found, beyond)) for child in queue.children
        )
    demand += world.wanted.get(queue.name, {}).get(resource, 0)
    without = beyond.get(queue.name)
    if without is not None:
        demand = max(0, demand - without.used.get(key, 0) - without.wanted.get(resource, 0))
    if flavor != ANY:
        demand = min(demand, max(found.totals[key], world.ledger.used(queue.name, key)))
    found.demand[queue.name][key] = demand
    return demand


def _capped(queue: Queue, key: FlavorResource, demand: int) -> int:
    limit = queue.limit(key)
    return demand if limit is None else min(demand, limit)


def _divide(world: World, siblings: Sequence[Queue], pool: int, key: FlavorResource, found: Entitlements) -> None:
    """Divide a pool among siblings.

    What a queue that may not be taken from holds above its share is not there for others: it keeps that, and the rest
    is divided among the rest, so that they give back to each other what one of them is entitled to.
    """
    measured = [queue for queue in siblings if not queue.is_spot and _is_measured(queue, key)]
    kept: dict[str, int] = {}
    while rest := [queue for queue in measured if queue.name not in kept]:
        division = divide(max(0, pool - sum(kept.values())), [_claimant(found, queue, key) for queue in rest])
        above = {queue.name: world.ledger.used(queue.name, key) for queue in rest if not queue.spec.reclaimable}
        above = {name: held for name, held in above.items() if held > division.shares[name]}
        if above:
            kept |= above
            continue
        for queue in rest:
            found.shares[queue.name][key] = division.shares[queue.name]
            if division.scaled:
                found.scaled.setdefault(queue.name, set()).add(key)
        break
    for queue in measured:
        if queue.name in kept:
            found.shares[queue.name][key] = kept[queue.name]
        if queue.children:
            _divide(world, queue.children, found.shares[queue.name][key], key, found)


def _claimant(found: Entitlements, queue: Queue, key: FlavorResource) -> Claimant:
    spec, figures = queue.spec, queue.figures(key)
    return Claimant(
        queue.name,
        found.demand[queue.name].get(key, 0),
        guarantee=_summed(queue, key, "guarantee") or 0,
        deserved=_summed(queue, key, "deserved"),
        capability=figures.capability,
        weight=spec.weight if figures.weight is None else figures.weight,
        priority=spec.priority,
        usage=found.usage.get(queue.name, spec.usage),
        usage_weight=spec.usage_weight,
        created=spec.created,
    )


def _summed(queue: Queue, key: FlavorResource, figure: str) -> int | None:
    """A figure of the queue itself, or, where it states none, the sum of its children's."""
    own: int | None = getattr(queue.figures(key), figure)
    if own is not None or not queue.children:
        return own
    stated = [amount for child in queue.children if (amount := _summed(child, key, figure)) is not None]
    return sum(stated) if stated else None


def used_by(world: World, queues: Iterable[str]) -> dict[str, dict[FlavorResource, int]]:
    """Held and claimed, by queue and key, in the form `Entitlements.potential` takes."""
    found: dict[str, dict[FlavorResource, int]] = {}
    for name in queues:
        amounts: dict[FlavorResource, int] = dict(world.ledger.vector(name, Column.HELD))
        for key, amount in world.ledger.vector(name, Column.CLAIMED).items():
            amounts[key] = amounts.get(key, 0) + amount
        found[name] = amounts
    return found
