"""The batch engine as a running thing: informers feed the world, cycles decide, tasks bind, evict and write.

    batch = BatchScheduler(client, default_configuration(), clock=clock, rng=rng)
    await batch.run()        # until `stop()` is called, or cancelled

A cycle runs every second, and at once (within `settle_seconds`, so that a gang's pods are seen together) when something
changed; when nothing changed no cycle runs at all. Cycles do not wait for bindings.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from skysail.api.core import Pod
from skysail.api.kinds import PODS, Kind
from skysail.api.ports import Clock
from skysail.batch.auditing import Auditing
from skysail.batch.carrying import Carrying
from skysail.batch.claim_writing import ClaimWriting, stored_claims
from skysail.batch.engine import Cycle, Engine
from skysail.batch.feeding import Feeding
from skysail.batch.foreign.pods import MembershipReader
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.kinds.reading import read_quota
from skysail.batch.metrics import BatchCollector
from skysail.batch.pausing import StepsTo
from skysail.batch.pod_plugins import PureHandle
from skysail.batch.session import Configuration
from skysail.batch.world import World
from skysail.batch.writing import StatusWriting
from skysail.client.api_client import ApiClient
from skysail.controller.leader_elector import LeaderElector
from skysail.informer.factory import InformerFactory
from skysail.informer.keys import Key
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.framework.handle import Lister

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchOptions:
    """What is not in the configuration file.

    Attributes:
        scheduler_name: Whose pods are ours.
        period_seconds: How often a cycle is due at least while something is awake or its moment comes.
        settle_seconds: How long a change waits for others, so that one cycle sees them together.
        slice_seconds: How long a cycle holds the event loop at most, as far as its pauses allow; 0 takes every pause.
        audit_seconds: How often what is believed of the cluster is held against a fresh list; 0 is never.
        dry_run: Decide and explain, but write nothing.
        check: Look for broken invariants after every cycle.
        seed: For dice; part of every dump.
    """

    scheduler_name: str = SCHEDULER_NAME
    period_seconds: float = 1.0
    settle_seconds: float = 0.02
    slice_seconds: float = 0.005
    audit_seconds: float = 300.0
    dry_run: bool = False
    check: bool = False
    seed: int = 0


class BatchScheduler:
    """One batch engine process, or part of one.

    Args:
        client: Reads, binds, evicts, patches.
        configuration: What runs, or a function asked at the start of each cycle.
        clock: Time; must follow the event loop.
        rng: Spreads retries of the informers.
        informers: Shared with others in this process; own ones when None.
        cache: The pod-at-a-time engine's, when both run in one process; it must be fed by that engine.
        options: See there.
        elector: Whose lease must be held; none when None.
        membership: Reads which group, role and queue a pod is of; knows everybody's words when None, but implies no
            groups from owners, for which their objects must be made.
        observe: Told of every cycle, before it is carried out.
        registry: Where metrics are registered; none when None.
    """

    def __init__(
        self,
        client: ApiClient,
        configuration: Configuration | Callable[[], Configuration],
        *,
        clock: Clock,
        rng: random.Random,
        informers: InformerFactory | None = None,
        cache: ClusterCache | None = None,
        options: BatchOptions | None = None,
        elector: LeaderElector | None = None,
        membership: MembershipReader | None = None,
        observe: Callable[[Cycle], None] = lambda cycle: None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.options = options or BatchOptions()
        self.elector = elector
        self._clock, self._observe = clock, observe
        membership = membership or MembershipReader()
        self.world = World(
            scheduler_name=self.options.scheduler_name, cache=cache, membership=membership, seed=self.options.seed
        )
        self.world.now = self._now()
        self.engine = Engine(self.world, configuration, check=self.options.check)
        if registry is not None:
            registry.register(BatchCollector(self.engine))
        self._client, self._alone = client, informers is None
        self._informers = informers or InformerFactory(client, clock=clock, rng=rng)
        self._changed, self._stopping = asyncio.Event(), asyncio.Event()
        self.world.handle = PureHandle(
            self.world.snapshot, self.options.seed, self._lister, clock=clock, writer=client, last_seen=self._last_seen
        )
        submit = self.engine.inbox.submit
        self.feeding = Feeding(client, self._informers, self.world, membership, self._changed.set, submit)
        self.writing = StatusWriting(client, self.feeding, clock)
        self.claims = ClaimWriting(self.world, self.feeding, self.writing.patch, clock.now)
        self.carrying = Carrying(client, self.world, self.writing, self.claims, self._now, self._changed.set, submit)
        self.auditing = Auditing(
            client, self.world, submit, self._changed.set, period_seconds=self.options.audit_seconds
        )
        self._synced, self._in_cycle = asyncio.Event(), False
        self.last_cycle: Cycle | None = None

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _lister(self, kind: Kind[Any]) -> Lister[Any]:
        """Objects of a kind; its informer runs from now on, and what it sees wakes who waits for volumes."""
        return self.feeding.lister(kind)

    def _last_seen(self, pod: Pod) -> Pod | None:
        return self._informers.informer(PODS).lister.get(Key(pod.namespace, pod.name))

    async def run(self) -> None:
        """Run until `stop` or cancellation.

        Raises:
            LeadershipLost: The lease could not be renewed.
        """
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._informers.run(), name="batch informers") if self._alone else None
            try:
                await self.feeding.start()
                self._synced.set()
                if self.elector is None:
                    await self._lead()
                else:
                    await self.elector.run(self._lead)
            finally:
                self.feeding.close()
                if following is not None:
                    following.cancel()

    def stop(self) -> None:
        """Ask it to end: no more cycles; what is under way is finished; `run` returns."""
        self._stopping.set()
        self._changed.set()

    @property
    def is_synced(self) -> bool:
        """Whether the world was told of all there is."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Until the world was told of all there is."""
        await self._synced.wait()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, to be written, or due."""
        busy = self._in_cycle or self.carrying.under_way or len(self.writing)
        return not busy and not self.engine.is_due(self._now())

    async def _lead(self) -> None:
        self.world.now = self._now()
        self._place_slots()
        self._restore_claims()
        async with asyncio.TaskGroup() as helpers:
            writer = helpers.create_task(self.writing.run(), name="batch statuses")
            auditor = (
                helpers.create_task(self.auditing.run(), name="batch audit") if self.options.audit_seconds else None
            )
            try:
                async with asyncio.TaskGroup() as work:
                    while not self._stopping.is_set():
                        await self._cycle(work)
                        await self._wait()
            finally:
                writer.cancel()
                if auditor is not None:
                    auditor.cancel()

    def _place_slots(self) -> None:
        """Let slots be where their objects say."""
        reservations = {key: self.world.quotas[key] for key in self.feeding.reservations}
        quotas = {key: read_quota(quota)[0] for key, quota in self.feeding.quotas.items()}
        self.world.place_slots({**reservations, **quotas})

    def _restore_claims(self) -> None:
        """Honour the promises that objects hold: for a process that was started, or leads, after they were made."""
        for claim in stored_claims(self.world, self.feeding):
            if not self.world.restore_claim(claim):
                _log.info("claim can no longer be kept", extra={"group": claim.job, "claim": claim.id})

    async def _wait(self) -> None:
        """Until something changed, or the next moment, or the period while something is awake."""
        seconds = self.options.period_seconds if self._has_moments() else None
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
            await asyncio.sleep(self.options.settle_seconds)
        except TimeoutError:
            pass
        self._changed.clear()

    def _has_moments(self) -> bool:
        world = self.world
        if not world.owns_cache:
            return True
        return bool(world.sleepers.awake or world.claims or world.slots or world.sleepers.next_moment() is not None)

    async def _cycle(self, work: asyncio.TaskGroup) -> None:
        """One cycle; a bug in it costs this cycle, not the engine."""
        self._in_cycle = True
        try:
            cycle = await self._stepped(self.engine.steps(self._now()))
        except Exception:  # noqa: BLE001 - the one supervisor: a bug must not end the engine
            _log.exception("cycle ended in a bug")
            return
        finally:
            self._in_cycle = False
        if cycle is None:
            return
        self.last_cycle = cycle
        for fault in cycle.faults:
            _log.error("a job's turn ended in a bug", extra={"cycle": cycle.number, "traceback": fault})
        for problem in cycle.problems:
            _log.error("invariant broken", extra={"cycle": cycle.number, "problem": problem})
        self._observe(cycle)
        if self.options.dry_run:
            return
        for job in cycle.outcomes:
            self.writing.submit(job)
        self.carrying.start(cycle, work)

    async def _stepped(self, steps: StepsTo[Cycle | None]) -> Cycle | None:
        """Take a cycle's steps; whenever its slice is used up, others have their turn."""
        with closing(steps):
            begun = self._clock.monotonic()
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    found: Cycle | None = end.value
                    return found
                if self._clock.monotonic() - begun >= self.options.slice_seconds:
                    await asyncio.sleep(0)
                    begun = self._clock.monotonic()
