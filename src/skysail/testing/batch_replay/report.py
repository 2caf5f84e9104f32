"""The lines a replay prints: one for each cycle, and the final one. Pure."""

from collections.abc import Mapping
from hashlib import blake2b

from skysail.api.core import Pod
from skysail.api.raw import Raw
from skysail.batch.engine import Cycle
from skysail.batch.ledger import Column
from skysail.batch.model.claim import Claim
from skysail.batch.model.resources import ANY, FlavorResource, ResourceVector
from skysail.batch.shares import entitlements_of
from skysail.batch.world import World


def outcomes_of(world: World) -> Raw:
    """Every waiting unit and why it waits."""
    found: Raw = {}
    for key, job in sorted(world.jobs.items()):
        if job.outcome is not None:
            record = {"code": job.outcome.code.value, "numbers": dict(job.outcome.numbers)}
            found[key if job.name in found else job.name] = record
    return found


def unit_name(key: str) -> str:
    """A job's key as people know it: that of a pod without a group is the pod's name."""
    return key.removeprefix("pod:")


def cycle_line(number: int, at: float, world: World, cycle: Cycle | None, writes: int) -> Raw:
    """One cycle's line; with `faults` (tracebacks) or `problems` (broken invariants) only where there are some.

    Args:
        number: From 1.
        at: Seconds after the start.
        world: As it is after the cycle.
        cycle: What it gave; None for one in which nothing was to be done.
        writes: Requests of the engine since the line before that may have changed something.
    """
    effects = cycle.effects if cycle is not None else None
    binds = effects.binds if effects is not None else ()
    evictions = effects.evictions if effects is not None else ()
    claims = effects.claims if effects is not None else ()
    line: Raw = {
        "cycle": number,
        "at": round(at, 3),
        "binds": [{"pod": task.key, "node": task.node} for batch in binds for task in batch.tasks],
        "evictions": [{"pod": each.task.key, "for": unit_name(each.claim.job)} for each in evictions],
        "claims": [_claim(each) for each in claims],
        "outcomes": outcomes_of(world),
        "writes": writes,
    }
    if cycle is not None and cycle.faults:
        line["faults"] = list(cycle.faults)
    if cycle is not None and cycle.problems:
        line["problems"] = list(cycle.problems)
    return line


def _claim(claim: Claim) -> Raw:
    return {
        "id": claim.id,
        "for": unit_name(claim.job),
        "victims": sorted(claim.victims.values()),
        "capacity": dict(claim.capacity),
    }


def final_line(world: World, pods: list[Pod], digests: list[str], *, ledger_held: bool = True) -> Raw:
    """The last line.

    Args:
        world: At the end.
        pods: All there are on the server.
        digests: Of all cycles, in order.
        ledger_held: Whether no broken invariant was found after any cycle.
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
        "ledger_equals_rebuild": ledger_held and world.ledger == world.rebuilt_ledger(),
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
