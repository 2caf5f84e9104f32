"""Promises made durable: written before the first eviction, erased when they end, found again after a restart.

A job with a PodGroup of ours has its claim in that object's status. Any other job (a lone pod, a gang of another API,
one that its pods imply) has it in a condition of a promised pod, the first by uid: when that pod goes, so does
the claim. Writes about one job are in order: a claim is never erased before it is written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from skysail.api.core import Pod
from skysail.api.kinds import PODS, Kind
from skysail.api.meta import format_time
from skysail.api.raw import Raw
from skysail.batch.feeding import Feeding
from skysail.batch.kinds import POD_GROUPS, PodGroup
from skysail.batch.kinds import reading as own
from skysail.batch.model.claim import Claim
from skysail.batch.world import World

CLAIM: Final = "scheduling.skysail.io/Claim"
"""The type of a pod's condition that holds a promise; its message is the promise as JSON."""
ERASE_TRIES: Final = 10
ERASE_REST_SECONDS: Final = 1.0
Patch = Callable[..., Awaitable[bool]]


class StoredClaim(msgspec.Struct, frozen=True):
    """A claim as a pod's condition holds it; fields as in `Claim`."""

    id: str
    job: str
    placement: dict[str, str]
    victims: dict[str, str]
    deadline: float
    reason: str


def claim_status(claim: Claim | None) -> Raw:
    """The merge patch of a PodGroup that writes a promise, or takes it away."""
    if claim is None:
        return {"status": {"claim": None}}
    return {
        "status": {
            "claim": {
                "id": claim.id,
                "reason": claim.reason,
                "placement": dict(claim.placement),
                "victims": dict(claim.victims),
                "capacity": dict(claim.capacity),
                "expires": format_time(datetime.fromtimestamp(claim.deadline, UTC)),
            }
        }
    }


def claim_condition(claim: Claim, now: datetime) -> Raw:
    """The strategic merge patch of a pod that writes a promise."""
    stored = StoredClaim(
        claim.id, claim.job, dict(claim.placement), dict(claim.victims), claim.deadline, claim.reason
    )  # fmt: skip
    condition = {
        "type": CLAIM,
        "status": "True",
        "reason": claim.reason.capitalize(),
        "message": msgspec.json.encode(stored).decode(),
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
    }
    return {"status": {"conditions": [condition]}}


ERASED: Final[Raw] = {"status": {"conditions": [{"$patch": "delete", "type": CLAIM}]}}


def read_pod_claim(pod: Pod) -> Claim | None:
    """The promise a pod's condition holds; None when there is none, or it cannot be read."""
    message = next((each.message for each in pod.status.conditions if each.type == CLAIM), None)
    if not message:
        return None
    try:
        stored = msgspec.json.decode(message, type=StoredClaim)
    except msgspec.MsgspecError:
        return None
    return Claim(stored.id, stored.job, stored.placement, stored.victims, stored.deadline, stored.reason)


def stored_claims(world: World, feeding: Feeding) -> Iterator[Claim]:
    """Every promise that any object holds, those of groups first, by key."""
    for _, (kind, group) in sorted(feeding.groups.items()):
        claim = own.read_claim(group) if kind is POD_GROUPS else None
        if claim is not None:
            yield claim
    for task in sorted(world.tasks.values(), key=lambda task: task.key):
        claim = read_pod_claim(task.pod)
        if claim is not None:
            yield claim


class ClaimWriting:
    """Writes and erases.

    Args:
        world: Knows which claims live.
        feeding: Knows the object behind each group.
        patch: Patches the status of `(kind, "namespace/name", body, strategic=...)`; whether that is done.
        now: For conditions.
    """

    def __init__(self, world: World, feeding: Feeding, patch: Patch, now: Callable[[], datetime]) -> None:
        self._world, self._feeding, self._patch, self._now = world, feeding, patch, now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By job; those that nobody holds or waits for are gone."""

    async def write(self, claim: Claim) -> bool:
        """Write a promise, if it still lives; whether it stands written."""
        async with self._lock(claim.job):
            if self._world.claims.get(claim.job) is not claim:
                return False
            kind, key = self._target(claim)
            if kind is None:
                return False
            body = claim_status(claim) if kind is POD_GROUPS else claim_condition(claim, self._now())
            return await self._patch(kind, key, body, strategic=kind is PODS)

    async def erase(self, claim: Claim) -> None:
        """Erase a promise that ended or was kept, unless the job's next one stands there already."""
        async with self._lock(claim.job):
            for _ in range(ERASE_TRIES):
                kind, key = self._target(claim)
                if kind is None or (kind is POD_GROUPS and claim.job in self._world.claims):
                    break
                body = claim_status(None) if kind is POD_GROUPS else ERASED
                if await self._patch(kind, key, body, strategic=kind is PODS):
                    break
                await asyncio.sleep(ERASE_REST_SECONDS)

    def _lock(self, job: str) -> asyncio.Lock:
        return self._locks.setdefault(job, asyncio.Lock())

    def _target(self, claim: Claim) -> tuple[Kind[Any] | None, str]:
        """Where a promise stands, or would; None when the object is gone."""
        known = self._feeding.groups.get(claim.job)
        if known is not None and known[0] is POD_GROUPS and isinstance(known[1], PodGroup):
            return POD_GROUPS, claim.job
        task = self._world.tasks.get(min(claim.placement, default=""))
        return (PODS, task.key) if task is not None else (None, "")
