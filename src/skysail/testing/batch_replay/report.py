"""The lines a replay prints: one for each cycle, and the final one. Pure."""

from collections.abc import Mapping
from hashlib import blake2b

from skysail.api.core import Pod
from skysail.api.raw import Raw
from skysail.batch.engine import Cycle
from skysail.batch.ledger import Column
from skysail.batch.model.resources import ANY, FlavorResource, ResourceVector
from skysail.batch.shares import entitlements_of
from skysail.batch.world import World


def outcomes_of(world: World) -> Raw:
    """Every waiting unit and why it waits."""
    return {
        job.name: {"code": job.outcome.code.value, "numbers": dict(job.outcome.numbers)}
        for _, job in sorted(world.jobs.items())
        if job.outcome is not None
    }


def cycle_line(number: int, at: float, world: World, cycle: Cycle | None, writes: int) -> Raw:
    """One cycle's line.

    Args:
        number: From 1.
        at: Seconds after the start.
        world: As it is after the cycle.
        cycle: What it gave; None for one in which nothing was to be done.
        writes: Requests of the engine since the line before that may have changed something.
    """
    effects = cycle.effects if cycle is not None else None
    return {
        "cycle": number,
        "at": round(at, 3),
        "binds": [
            {"pod": task.key, "node": task.node} for batch in (effects.binds if effects else ()) for task in batch.tasks
        ],
        "evictions": [{"pod": each.task.key, "for": each.claim.job} for each in (effects.evictions if effects else ())],
        "claims": [
            {"id": each.id, "for": each.job, "victims": sorted(each.victims.values()), "capacity": dict(each.capacity)}
            for each in (effects.claims if effects else ())
        ],
        "outcomes": outcomes_of(world),
        "writes": writes,
    }


def final_line(world: World, pods: list[Pod], digests: list[str]) -> Raw:
    """The last line.

    Args:
        world: At the end.
        pods: All there are on the server.
        digests: Of all cycles, in order.
    """
    phases: dict[str, int] = {}
    for pod in pods:
        phase = pod.status.phase or "Pending"
        phases[phase] = phases.get(phase, 0) + 1
    entitlements = entitlements_of(world)
    queues: Raw = {}
    for name in sorted(world.tree):
        shares = entitlements.shares.get(name, {})
        queues[name] = {
            "held": _figures(world.ledger.vector(name, Column.HELD)),
            "claimed": _figures(world.ledger.vector(name, Column.CLAIMED)),
            "entitlement": _figures(_over_flavors(shares)),
        }
    total = blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()
    final: Raw = {
        "pods": dict(sorted(phases.items())),
        "queues": queues,
        "ledger_equals_rebuild": world.ledger == world.rebuilt_ledger(),
        "digest": total,
    }
    return {"final": final}


def _over_flavors(shares: Mapping[FlavorResource, int]) -> ResourceVector:
    """A queue is measured over all flavors, or on each it names."""
    if any(flavor != ANY for flavor, _ in shares):
        return ResourceVector(shares).over_all_flavors()
    return ResourceVector(shares)


def _figures(vector: ResourceVector) -> dict[str, int]:
    """Sums over all flavors; cpu in milli, the rest in units."""
    return {name: amount for (flavor, name), amount in sorted(vector.items()) if flavor == ANY}
