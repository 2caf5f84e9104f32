"""Does what a cycle decided: binds, one ordered batch for each job; writes claims, then evicts.

In the background and bounded; a batch has a deadline. What fails goes back to the world, which wakes the job:
- that a slot for one use is used is written before its pod is bound;
- a pod is bound only while its node, by what is accounted to it then, holds it;
- a binding without an answer keeps its room until it is known whether it was written (`skysail.scheduler.binder`);
- when what is bound or still to be bound falls below the job's minimum, the rest of the batch is let go;
- a job stays away from the node that refused it, unless the server or the network was at fault;
- an eviction that a disruption budget or the server refuses ends its claim; one without an answer is looked up.
"""

import asyncio
import logging
from collections.abc import Callable

from skysail.api.errors import (
    ApiError,
    InternalError,
    NotFound,
    RequestTimeout,
    ServerTimeout,
    ServiceUnavailable,
    SkysailError,
    TooManyRequests,
    Unreachable,
)
from skysail.api.kinds import PODS
from skysail.batch.claim_writing import ClaimWriting
from skysail.batch.effects import BindBatch, Effects, Eviction
from skysail.batch.engine import Cycle
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.quorum import is_met
from skysail.batch.world import World
from skysail.batch.writing import StatusWriting
from skysail.client.api_client import ApiClient
from skysail.scheduler.binder import BoundedBinder

_log = logging.getLogger(__name__)
_NOBODYS_FAULT = (
    Unreachable, TooManyRequests, InternalError, ServiceUnavailable, ServerTimeout, RequestTimeout,
)  # fmt: skip
"""What a binding can fail of that says nothing about the node."""


class Carrying:
    """Carries effects out.

    Args:
        client: Binds and evicts.
        world: Told how it went.
        writing: Writes slots.
        claims: Writes and erases claims.
        now: Seconds since 1970.
        parallel: How many requests at a time.
        batch_seconds: How long one job's bindings may wait for their turn and their volumes.
        changed: Called when something came back.
        submit: Makes a change of the world, at once or when a running cycle allows it.
    """

    def __init__(
        self,
        client: ApiClient,
        world: World,
        writing: StatusWriting,
        claims: ClaimWriting,
        now: Callable[[], float],
        changed: Callable[[], None],
        submit: Callable[[Callable[[], None]], None] = lambda change: change(),
        *,
        parallel: int = 64,
        batch_seconds: float = 120.0,
    ) -> None:
        self._client, self._world, self._writing, self._claims = client, world, writing, claims
        self._now, self._changed, self._submit = now, changed, submit
        self._turn = asyncio.Semaphore(parallel)
        self._binder = BoundedBinder(client, parallel, _node_missing)
        self._batch_seconds = batch_seconds
        self.under_way = 0
        self._quotas: dict[str, bool] = {}
        """Quotas whose status is being written, and whether slots changed since that write began."""
        self._writers: dict[str, asyncio.Task[None]] = {}
        """Who writes them."""

    def start(self, cycle: Cycle, group: asyncio.TaskGroup) -> None:
        """Begin with everything a cycle decided; never waits."""
        effects: Effects = cycle.effects
        for key in dict.fromkeys(slot.spec.key for slot in (*effects.slots, *effects.released)):
            if key not in self._quotas:
                self._writers[key] = group.create_task(self._counted(self._write_slots(key)), name=f"slots of {key}")
            self._quotas[key] = True
        for batch in effects.binds:
            group.create_task(self._counted(self._bind_batch(batch)), name=f"bind {batch.job.key}")
        by_claim: dict[str, tuple[Claim, list[Eviction]]] = {claim.id: (claim, []) for claim in effects.claims}
        for eviction in effects.evictions:
            by_claim.setdefault(eviction.claim.id, (eviction.claim, []))[1].append(eviction)
        written = {claim.id for claim in effects.claims}
        for claim, evictions in by_claim.values():
            task = self._make_room(claim, evictions, write=claim.id in written)
            group.create_task(self._counted(task), name=f"claim {claim.id}")
        for leaving in (*effects.drained, *effects.let_go):
            group.create_task(self._counted(self._drain(leaving)), name=f"drain {leaving.key}")
        for claim in effects.ended:
            group.create_task(self._counted(self._claims.erase(claim)), name=f"end of claim {claim.id}")

    async def _counted(self, work: "asyncio.Future[None] | object") -> None:
        self.under_way += 1
        try:
            await work  # type: ignore[misc]
        finally:
            self.under_way -= 1
            self._changed()

    async def _write_slots(self, key: str) -> None:
        """Write a Quota's status until it says what is; one write for all slots that changed meanwhile."""
        try:
            while self._quotas[key]:
                self._quotas[key] = False
                await self._writing.write_slots(key)
        finally:
            del self._quotas[key], self._writers[key]

    # -- binding ---------------------------------------------------------------------------------------------------

    async def _bind_batch(self, batch: BindBatch) -> None:
        deadline = asyncio.get_running_loop().time() + self._batch_seconds
        for slot in [task.slot for task in batch.tasks if task.slot is not None and task.slot.spec.ends_with_use]:
            if (writer := self._writers.get(slot.spec.key)) is not None:
                await asyncio.wait((writer,), timeout=self._batch_seconds)
        async with asyncio.TaskGroup() as group:
            for task in batch.tasks:
                if not await self._has_turn(deadline):
                    self._lost(task, "timed out", blames_node=False)
                elif not self._is_wanted(batch.job, task):
                    self._turn.release()
                    self._lost(task, "its gang fell below its minimum", blames_node=False)
                else:
                    group.create_task(self._bind(task, deadline))
        if batch.kept is not None:
            await self._claims.erase(batch.kept)

    async def _has_turn(self, deadline: float) -> bool:
        """Wait for a turn, which whoever got it must release; whether it came in time."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._turn.acquire()
        except TimeoutError:
            return False
        return True

    def _lost(self, task: Task, why: str, *, blames_node: bool = True) -> None:
        self._submit(lambda: self._world.bind_failed(task, why, blames_node=blames_node))

    def _is_wanted(self, job: Job, task: Task) -> bool:
        """Whether binding it still makes sense: its job has its minimum with all that is bound or on its way."""
        if task.state is not TaskState.BINDING:
            return False
        return job.spec is None or job.spec.match_policy == "once-satisfied" or is_met(job.spec, job.counts())

    async def _bind(self, task: Task, deadline: float) -> None:
        try:
            if not self._world.may_still_bind(task):
                self._failed(task, "the node no longer holds it")
                return
            storage = self._world.storage
            async with asyncio.timeout_at(deadline):
                refusal = await storage.pre_bind(task) if storage is not None else ""
            if refusal:
                self._failed(task, refusal)
                return
            await self._binder.bind(task.pod.namespace, task.pod.name, task.uid, task.node)
        except TimeoutError:
            self._failed(task, "timed out", blames_node=False)
        except (ApiError, Unreachable) as error:
            self._failed(task, str(error), blames_node=not isinstance(error, _NOBODYS_FAULT))
        else:
            self._world.cache.finish_binding(task.uid, self._now())
        finally:
            self._turn.release()

    def _failed(self, task: Task, why: str, *, blames_node: bool = True) -> None:
        _log.info("pod not bound", extra={"pod": task.key, "node": task.node, "error": why})
        self._lost(task, why, blames_node=blames_node)
        self._changed()

    # -- evicting --------------------------------------------------------------------------------------------------

    async def _make_room(self, claim: Claim, evictions: list[Eviction], *, write: bool) -> None:
        if write and not await self._claims.write(claim):
            self._submit(lambda: self._give_up(claim, evictions))
            self._changed()
            return
        for eviction in evictions:
            async with self._turn:
                await self._evict(eviction)

    def _give_up(self, claim: Claim, evictions: list[Eviction]) -> None:
        for eviction in evictions:
            self._world.eviction_failed(eviction.task)
        job = self._world.jobs.get(claim.job)
        if job is not None and job.claim is claim:
            self._world.end_claim(job)

    async def _evict(self, eviction: Eviction) -> None:
        task = eviction.task
        if self._world.claims.get(eviction.claim.job) is not eviction.claim:
            self._submit(lambda: self._world.eviction_failed(task))
            return
        await self._ask_to_leave(task)

    async def _drain(self, task: Task) -> None:
        async with self._turn:
            await self._ask_to_leave(task)

    async def _ask_to_leave(self, task: Task) -> None:
        try:
            await self._client.evict(task.pod.namespace, task.pod.name, uid=task.uid)
        except NotFound:
            return
        except SkysailError as error:
            if isinstance(error, Unreachable) and await self._is_leaving(task):
                return
            _log.info("pod not evicted", extra={"pod": task.key, "error": str(error)})
            self._submit(lambda: self._world.eviction_failed(task))
            self._changed()

    async def _is_leaving(self, task: Task) -> bool:
        """Whether only the answer to an eviction was lost; else a job would be tried again as if nobody had left."""
        try:
            current = await self._client.get(PODS, task.pod.name, task.pod.namespace)
        except NotFound:
            return True
        except SkysailError:
            return False
        return current.uid != task.uid or current.metadata.deletion_timestamp is not None


async def _node_missing(name: str) -> None:
    """The server knows no such node; the watch of nodes will say so."""
    _log.info("no such node to bind to", extra={"node": name})
