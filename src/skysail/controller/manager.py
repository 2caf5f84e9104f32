"""Everything a process with controllers needs: shared caches, leader election, workers, health, a clean end.

    manager = Manager(client, clock=clock, rng=rng)
    manager.add(ReplicaSetController(), workers=5)
    await manager.run()                                # until cancelled

The order: informers start; the leader is elected, if asked for; each controller waits for its caches, then works.
At the end no new key is taken, work in progress is waited for, the lease is given back, informers stop last.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random

from prometheus_client import CollectorRegistry

from skysail.api.ports import Clock
from skysail.client.api_client import ApiClient
from skysail.controller.controller import Controller, Runtime
from skysail.controller.leader_elector import LeaderElector, LeadershipLost
from skysail.controller.lease import LeaderElection
from skysail.controller.recorder import CoreEventRecorder
from skysail.controller.run_loop import ReconcileMetrics, RunLoop
from skysail.informer.factory import InformerFactory
from skysail.informer.keys import Key
from skysail.informer.patience import ReflectorSettings
from skysail.workqueue.async_queue import AsyncWorkQueue
from skysail.workqueue.metrics import WorkQueueMetrics
from skysail.workqueue.order import PriorityOrder
from skysail.workqueue.queue import QueueStatistics

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """How a manager runs.

    Attributes:
        component: Names the process in Events and logs, and the identity's first part.
        identity: Unique among candidates for leadership.
        resync_seconds: Default resync period; 0 for none.
        stop_seconds: How long work in progress may take to end.
        flush_seconds: How long the Events still queued may take to be written at the end.
        reflector: The informers' patience.
    """

    component: str = "skysail"
    identity: str = "skysail"
    resync_seconds: float = 0.0
    stop_seconds: float = 10.0
    flush_seconds: float = 2.0
    reflector: ReflectorSettings | None = None


class Manager:
    """Runs controllers.

    Args:
        client: Reads from and writes to the server.
        clock: The only source of time; must follow the event loop's.
        rng: The only source of chance.
        settings: See there.
        leader_election: Lead before working; None to work at once.
        registry: Where metrics are registered; none by default.
        informers: Caches shared with others; own ones by default.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        clock: Clock,
        rng: Random,
        settings: ManagerSettings | None = None,
        leader_election: LeaderElection | None = None,
        registry: CollectorRegistry | None = None,
        informers: InformerFactory | None = None,
    ) -> None:
        self.settings = settings or ManagerSettings()
        self.client, self.clock, self.rng, self.registry = client, clock, rng, registry
        self.informers = informers or InformerFactory(
            client,
            clock=clock,
            rng=rng,
            resync_seconds=self.settings.resync_seconds,
            settings=self.settings.reflector,
            registry=registry,
        )
        self._owns_informers = informers is None
        self._recorders: list[CoreEventRecorder] = []
        self.elector: LeaderElector | None = None
        if leader_election is not None:
            recorder = self._recorder_for(self.settings.component)
            identity = self.settings.identity
            self.elector = LeaderElector(client, leader_election, identity, clock=clock, rng=rng, recorder=recorder)
        self._queue_metrics = WorkQueueMetrics(registry, clock) if registry is not None else None
        self._reconcile_metrics = ReconcileMetrics(registry) if registry is not None else None
        self._loops: dict[str, RunLoop] = {}
        self._beside: list[Callable[[], Awaitable[None]]] = []
        self._ready = asyncio.Event()
        self._stopping = asyncio.Event()

    def add(self, controller: Controller, *, workers: int | None = None) -> None:
        """Take a controller in; before `run`.

        Args:
            controller: Not yet part of a manager.
            workers: How many keys at a time; the controller's own number by default.
        """
        name = controller.display_name()
        if name in self._loops:
            raise ValueError(f"another controller is named {name!r} already")
        metrics = self._queue_metrics.for_queue(name) if self._queue_metrics is not None else None
        queue: AsyncWorkQueue[Key] = AsyncWorkQueue(self.clock, order=PriorityOrder(), metrics=metrics)
        recorder = self._recorder_for(f"{name}-controller")
        controller.bind(Runtime(self.client, self.informers, recorder, self.clock, self.rng, queue))
        self._loops[name] = RunLoop(controller, workers or type(controller).workers, self._reconcile_metrics)

    def add_task(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run something else beside the controllers, e.g. a server for health and metrics; from the very start."""
        self._beside.append(run)

    async def run(self) -> None:
        """Run everything until cancelled or `stop` is called.

        Raises:
            LeadershipLost: Another candidate may lead now: end the process.
        """
        async with asyncio.TaskGroup() as foundation:
            tasks = [foundation.create_task(_as_coroutine(run)) for run in self._beside]
            tasks += [foundation.create_task(recorder.run()) for recorder in self._recorders]
            if self._owns_informers:
                tasks.append(foundation.create_task(self.informers.run()))
            lost = await self._lead()
            await self._flush_events()
            for task in tasks:
                task.cancel()
        if lost is not None:
            raise lost

    def stop(self) -> None:
        """Let `run` end: no new keys, work in progress ends within `stop_seconds`."""
        self._stopping.set()

    async def wait_ready(self) -> None:
        """Wait until all controllers work, which a candidate that does not lead never does."""
        await self._ready.wait()

    @property
    def is_leading(self) -> bool:
        """Whether the controllers may work."""
        return self.elector is None or self.elector.is_leader

    def liveness(self) -> Mapping[str, str]:
        """What is wrong with this process, by check; empty text for nothing. Wrong means: restart it."""
        return {"leader_election": self.elector.health() if self.elector is not None else ""}

    def readiness(self) -> Mapping[str, str]:
        """What keeps this process from its work, by check; empty text for nothing."""
        checks = {}
        for scope, informer in self.informers.informers().items():
            if not informer.has_synced:
                checks[f"informer {scope}"] = "not synced yet"
            elif not informer.is_healthy:
                checks[f"informer {scope}"] = f"not following, stale for {informer.reflector.staleness_seconds:.0f} s"
            else:
                checks[f"informer {scope}"] = ""
        return checks | dict(self.liveness())

    def statistics(self) -> Mapping[str, QueueStatistics]:
        """The work queues, by controller."""
        return {name: loop.controller.queue.statistics() for name, loop in self._loops.items()}

    def is_idle(self) -> bool:
        """Whether no key waits or is in work; delayed ones do not count."""
        return all(not (each.waiting or each.processing) for each in self.statistics().values())

    def _recorder_for(self, component: str) -> CoreEventRecorder:
        recorder = CoreEventRecorder(self.client, component, clock=self.clock, rng=self.rng)
        self._recorders.append(recorder)
        return recorder

    async def _lead(self) -> LeadershipLost | None:
        """Work, as the elected leader if need be, until stopped; why, if that was for having lost the lead."""
        if self.elector is None:
            await self._work()
            return None
        async with asyncio.TaskGroup() as group:
            election = group.create_task(self._elect(self.elector))
            stopping = group.create_task(self._stopping.wait())
            await asyncio.wait({election, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not self.elector.is_leader:
                election.cancel()
            else:
                await asyncio.wait({election})
            stopping.cancel()
        return None if election.cancelled() else election.result()

    async def _elect(self, elector: LeaderElector) -> LeadershipLost | None:
        try:
            await elector.run(self._work)
        except LeadershipLost as lost:
            return lost
        return None

    async def _flush_events(self) -> None:
        """Give the Events of the last moments a moment to be written."""
        try:
            async with asyncio.timeout(self.settings.flush_seconds):
                for recorder in self._recorders:
                    await recorder.wait_written()
        except TimeoutError:
            _log.info("some events were not written before the end")

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(loop.run()) for loop in self._loops.values()]
            ready = group.create_task(self._get_ready())
            await self._stopping.wait()
            ready.cancel()
            for loop, task in zip(self._loops.values(), loops, strict=True):
                loop.controller.queue.shut_down()
                if not loop.has_synced:
                    task.cancel()
            await asyncio.wait(loops, timeout=self.settings.stop_seconds) if loops else None
            for task in loops:
                task.cancel()

    async def _get_ready(self) -> None:
        for loop in self._loops.values():
            await loop.controller.wait_synced()
        self._ready.set()
        _log.info("controllers working", extra={"controllers": list(self._loops)})


async def _as_coroutine(run: Callable[[], Awaitable[None]]) -> None:
    await run()
