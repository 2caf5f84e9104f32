"""Carries out what preemption decided: evicts the victims, in tasks of their own. Shell, not core.

    submit ─▶ the preemptor is held back (PreEnqueue) ─▶ lower nominations on the node are taken back
           ─▶ all victims but the last, side by side ─▶ the last ─▶ the preemptor is let go

A victim that a Permit plugin still holds goes back to the queue; every other gets the condition DisruptionTarget and is
deleted. If anything fails the preemptor is tried again at once: its room may never come. While only the last victim is
missing, the preemptor is let go as soon as that one is seen to terminate: otherwise the event that frees the room could
come before the preemptor listens for it.

Source: pkg/scheduler/framework/preemption/executor.go, v1.36.
Differs: a victim in PreBind is deleted, its binding is not interrupted; a deletion names the victim's uid. A deletion
    whose answer is lost is looked up; and who was deleted is known at once, not only from the informers: a preemptor
    that is tried again because one of several evictions failed waits for those that went well.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Conflict, NotFound, Unreachable
from skysail.api.kinds import PODS, Kind
from skysail.api.meta import format_time
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.bodies import STRATEGIC, PatchType

_log = logging.getLogger(__name__)

PLUGIN = "DefaultPreemption"
TARGET = "DisruptionTarget"


class EvictingClient(Protocol):
    """The part of the client that is used here."""

    async def patch(
        self,
        kind: Kind[Pod],
        name: str,
        namespace: str,
        patch: Raw,
        *,
        patch_type: PatchType = STRATEGIC,
        subresource: str = "",
    ) -> Pod:
        """Change parts of an object."""
        ...

    async def get(self, kind: Kind[Pod], name: str, namespace: str = "") -> Pod:
        """Read an object."""
        ...

    async def delete(self, kind: Kind[Pod], name: str, namespace: str = "", *, uid: str = "") -> None:
        """Delete an object."""
        ...


@dataclass(frozen=True, slots=True)
class Eviction:
    """Whom to evict, for whom.

    Attributes:
        preemptor: The pod that gets the room.
        profile: Its scheduler name.
        node_name: Where.
        victims: The most important first.
    """

    preemptor: Pod
    profile: str
    node_name: str
    victims: tuple[Pod, ...]


@dataclass(frozen=True)
class Surroundings:
    """The scheduler around the evictor.

    Attributes:
        current: The pod as the informers know it; None when it is gone.
        activate: Moves pods to the active queue.
        preempt_waiting: Sends a pod that Permit holds back to the queue; False when Permit holds no such pod.
        nominated_to: Pods nominated to a node.
        clear_nomination: Takes a pod's nomination back.
        tell: `(profile, victim, message)`: writes the event about a victim.
        done: `(whether all went well, seconds)`: told when all victims of one preemption were dealt with.
    """

    current: Callable[[Pod], Pod | None]
    activate: Callable[[Iterable[Pod]], None]
    preempt_waiting: Callable[[str], bool]
    nominated_to: Callable[[str], Iterable[Pod]]
    clear_nomination: Callable[[Pod], None]
    tell: Callable[[str, Pod, str], None]
    done: Callable[[bool, float], None] = lambda ok, seconds: None


class Evictor:
    """Evicts.

    Args:
        client: Patches and deletes pods.
        clock: Stamps conditions.
        around: The scheduler.
    """

    def __init__(self, client: EvictingClient, clock: Clock, around: Surroundings) -> None:
        self._client, self._clock, self._around = client, clock, around
        self._waiting: list[Eviction] = []
        self._wake = asyncio.Event()
        self._preempting: set[str] = set()
        self._last_victims: dict[str, Pod] = {}
        self._evicted: dict[str, Pod] = {}

    def submit(self, eviction: Eviction) -> None:
        """Take a decision over; the preemptor is held back from now on. Never waits."""
        if all(victim.metadata.deletion_timestamp is not None for victim in eviction.victims):
            return
        self._preempting.add(eviction.preemptor.uid)
        self._waiting.append(eviction)
        self._wake.set()

    def is_preempting(self, uid: str) -> bool:
        """Whether the pod's victims are still being evicted."""
        if uid not in self._preempting:
            return False
        last = self._last_victims.get(uid)
        if last is None:
            return True
        current = self._around.current(last)
        return current is not None and current.uid == last.uid and current.metadata.deletion_timestamp is None

    def is_going(self, uid: str) -> bool:
        """Whether a pod was deleted here and is not gone yet: known before the informers have seen it end."""
        victim = self._evicted.get(uid)
        if victim is None:
            return False
        current = self._around.current(victim)
        if current is not None and current.uid == uid:
            return True
        del self._evicted[uid]
        return False

    async def run(self) -> None:
        """Evict until cancelled."""
        async with asyncio.TaskGroup() as evictions:
            while True:
                while self._waiting:
                    eviction = self._waiting.pop(0)
                    evictions.create_task(self._evict(eviction), name=f"evict for {eviction.preemptor.key}")
                self._wake.clear()
                await self._wake.wait()

    async def _evict(self, eviction: Eviction) -> None:
        preemptor, start, results = eviction.preemptor, self._clock.monotonic(), [False]
        try:
            self._clear_lower_nominations(eviction)
            victims = [victim for victim in eviction.victims if victim.metadata.deletion_timestamp is None]
            results = await self._side_by_side(eviction, victims[:-1])
            if all(results):
                self._last_victims[preemptor.uid] = victims[-1]
                results = [await self._evict_one(eviction, victims[-1])]
        finally:
            self._preempting.discard(preemptor.uid)
            self._last_victims.pop(preemptor.uid, None)
            self._around.done(all(results), self._clock.monotonic() - start)
        if not all(results):
            self._around.activate([preemptor])

    def _clear_lower_nominations(self, eviction: Eviction) -> None:
        priority = eviction.preemptor.spec.priority or 0
        for other in list(self._around.nominated_to(eviction.node_name)):
            if (other.spec.priority or 0) < priority:
                self._around.clear_nomination(other)

    async def _side_by_side(self, eviction: Eviction, victims: list[Pod]) -> list[bool]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._evict_one(eviction, victim)) for victim in victims]
        return [task.result() for task in tasks]

    async def _evict_one(self, eviction: Eviction, victim: Pod) -> bool:
        """Evict one victim; False when it could not be done."""
        message = f"Preempted by pod {eviction.preemptor.uid} on node {eviction.node_name}"
        if self._around.preempt_waiting(victim.uid):
            self._around.tell(eviction.profile, victim, f"{message} (in kube-scheduler memory).")
            return True
        try:
            patch = disruption_patch(victim, eviction.profile, format_time(self._clock.now()))
            await self._client.patch(
                PODS, victim.name, victim.namespace, patch, patch_type=STRATEGIC, subresource="status"
            )
            await self._client.delete(PODS, victim.name, victim.namespace, uid=victim.uid)
        except (NotFound, Conflict):
            _log.info("victim is gone already", extra={"pod": victim.key, "preemptor": eviction.preemptor.key})
            return True
        except (ApiError, Unreachable) as error:
            if not await self._was_evicted_nevertheless(victim, error):
                _log.warning("victim could not be evicted", extra={"pod": victim.key, "error": str(error)})
                return False
        self._note_evicted(victim)
        self._around.tell(eviction.profile, victim, message)
        return True

    def _note_evicted(self, victim: Pod) -> None:
        for uid in list(self._evicted):
            self.is_going(uid)
        self._evicted[victim.uid] = victim

    async def _was_evicted_nevertheless(self, victim: Pod, error: ApiError | Unreachable) -> bool:
        """Whether only the answer was lost. Else the preemptor would be tried again as if nobody had died for it."""
        if not isinstance(error, Unreachable):
            return False
        try:
            current = await self._client.get(PODS, victim.name, victim.namespace)
        except NotFound:
            return True
        except (ApiError, Unreachable):
            return False
        return current.uid != victim.uid or current.metadata.deletion_timestamp is not None


def disruption_patch(victim: Pod, profile: str, now: str) -> Raw:
    """The strategic merge patch that says why a pod is about to go."""
    condition: Raw = {
        "type": TARGET,
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{profile}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": now,
    }
    if victim.metadata.generation:
        condition["observedGeneration"] = victim.metadata.generation
    types = [each.type for each in victim.status.conditions if each.type != TARGET]
    order = [{"type": name} for name in (*types, TARGET)]
    status: Raw = {"$setElementOrder/conditions": order, "conditions": [condition]}
    return {"metadata": {"uid": victim.uid}, "status": status}
