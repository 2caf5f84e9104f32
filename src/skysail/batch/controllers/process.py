"""The engine with the controllers it needs: what `skysail batch` runs, and a part of `skysail up`.

process = BatchProcess(client, configuration, clock=clock, rng=rng)
await process.run()
"""

import asyncio
import random
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from skysail.api.ports import Clock
from skysail.batch.app import BatchOptions, BatchScheduler
from skysail.batch.controllers.kueue_jobs import KueueJobController
from skysail.batch.controllers.loop import GroupingController
from skysail.batch.controllers.metrics import BatchMetrics
from skysail.batch.controllers.owners import OwnerMembershipReader
from skysail.batch.controllers.standing_writing import StandingWriting
from skysail.batch.controllers.telling import OutcomeEvents
from skysail.batch.engine import Cycle
from skysail.batch.session import Configuration
from skysail.client.api_client import ApiClient
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.manager import Manager, ManagerSettings
from skysail.controller.recorder import CoreEventRecorder
from skysail.informer.factory import InformerFactory
from skysail.scheduler.cache.cluster_cache import ClusterCache


class _BatchManager(Manager):
    """The controllers' manager, which answers for the whole process: it is the process's lease that counts."""

    process_elector: LeaderElector | None = None

    def liveness(self) -> Mapping[str, str]:
        """What is wrong with this process, by check."""
        return {"leader_election": self.process_elector.health() if self.process_elector is not None else ""}


class BatchProcess:
    """Engine, grouping and statuses; the leader runs all of them.

    Args:
        client: Everybody's.
        configuration: The engine's, or a function asked at the start of each cycle.
        clock: Must follow the event loop.
        rng: Spreads retries.
        informers: Shared with others in this process; own ones when None.
        cache: The pod-at-a-time engine's, when both run in one process.
        options: The engine's.
        elector: Whose lease must be held.
        registry: Where metrics are registered; none by default.
        observe: Told of every cycle.
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
        registry: CollectorRegistry | None = None,
        observe: Callable[[Cycle], None] = lambda cycle: None,
    ) -> None:
        options = options or BatchOptions()
        self._elector, self._dry_run = elector, options.dry_run
        self._alone = informers is None
        self._informers = informers or InformerFactory(client, clock=clock, rng=rng)
        self.metrics = BatchMetrics()
        self._recorder = CoreEventRecorder(client, "skysail-batch", clock=clock, rng=rng)
        self._watch_cycle = observe
        self.scheduler = BatchScheduler(
            client,
            self.metrics.timed(configuration, clock),
            clock=clock,
            rng=rng,
            informers=self._informers,
            cache=cache,
            options=options,
            membership=OwnerMembershipReader(),
            observe=self._observe,
            registry=registry,
        )
        self.metrics.scheduler = self.scheduler
        if registry is not None:
            registry.register(self.metrics)
        self._events = OutcomeEvents(self._recorder, self.scheduler.feeding)
        self.manager = _BatchManager(
            client,
            clock=clock,
            rng=rng,
            settings=ManagerSettings(component="skysail-batch"),
            informers=self._informers,
            registry=registry,
        )
        self.manager.process_elector = elector
        self.manager.add(GroupingController(options.scheduler_name))
        self.manager.add(KueueJobController(options.scheduler_name))
        self.standing = StandingWriting(client, self.scheduler)

    def _observe(self, cycle: Cycle) -> None:
        self._watch_cycle(cycle)
        self.metrics.observe(cycle)
        if not self._dry_run:
            self._events.observe(cycle)

    async def run(self) -> None:
        """Run until `stop` or cancellation.

        Raises:
            LeadershipLost: The lease could not be renewed.
        """
        async with asyncio.TaskGroup() as group:
            informing = group.create_task(self._informers.run(), name="batch informers") if self._alone else None
            try:
                if self._elector is None:
                    await self._work()
                else:
                    await self._elector.run(self._work)
            finally:
                if informing is not None:
                    informing.cancel()

    def stop(self) -> None:
        """Ask it to end: what is under way is finished, `run` returns."""
        self.scheduler.stop()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            beside = []
            if not self._dry_run:
                beside.append(group.create_task(self.manager.run(), name="batch controllers"))
                beside.append(group.create_task(self.standing.run(), name="batch standing"))
                beside.append(group.create_task(self._recorder.run(), name="batch events"))
            try:
                await self.scheduler.run()
            finally:
                for task in beside:
                    task.cancel()
