"""Plays a scenario: sets the stage, starts the engine, does what the steps say, tells of every cycle."""

import asyncio
from collections.abc import Callable
from random import Random

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.apiserver.authentication import ADMIN
from skysail.batch.app import BatchOptions
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.engine import Cycle
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.kinds import batch_definitions
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.controller.customresources.installing import install
from skysail.simulator.clock import LoopClock, settle
from skysail.testing.batch_replay.acts import Act, Crash, DelayWatch, FailBind
from skysail.testing.batch_replay.doing import Doing
from skysail.testing.batch_replay.network import SlowNews, fail_binds
from skysail.testing.batch_replay.reading import Place
from skysail.testing.batch_replay.report import cycle_line, final_line
from skysail.testing.batch_replay.scenario import Scenario
from skysail.testing.cluster import Cluster
from skysail.testing.component import Component
from skysail.testing.faults import Faults
from skysail.testing.faulty_server import FaultyServer

PERIOD_SECONDS = 1.0


async def play(scenario: Scenario, clock: LoopClock, seed: int, tell: Callable[[Raw], None]) -> None:
    """Play it from begin to end, on a virtual-time loop.

    Args:
        scenario: What happens.
        clock: The loop's.
        seed: Of names, uids and ties.
        tell: Given every line.

    Raises:
        ConfigError: The server refuses an object or an act; with its place in the file.
    """
    async with Cluster(seed=seed) as cluster:
        player = Player(scenario, cluster, seed, tell)
        await player.play()


class Player:
    """One run of one scenario.

    Args:
        scenario: What happens.
        cluster: Where.
        seed: Of ties.
        tell: Given every line.
    """

    def __init__(self, scenario: Scenario, cluster: Cluster, seed: int, tell: Callable[[Raw], None]) -> None:
        self._scenario, self._cluster, self._seed, self._tell = scenario, cluster, seed, tell
        self._doing = Doing(cluster, scenario.kinds)
        self._delays: dict[str, float] = {}
        self._faults = Faults(Random(seed))
        self._lines = 0
        self._told_in_period = self._is_away = False
        self._digests: list[str] = []
        self._ledger_held = True
        self._writes = self._written = 0
        self._done = asyncio.Event()
        self._failure: ConfigError | None = None
        self._process: BatchProcess | None = None
        self._news: SlowNews | None = None
        self._component: Component | None = None
        self._begun = 0.0

    async def play(self) -> None:
        """Set the stage, run, tell the end."""
        await self._set_stage()
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._begun = self._cluster.clock.monotonic()
            self._start_engine()
            helpers = [group.create_task(self._steps()), group.create_task(self._tick())]
            await self._wait_done()
            for task in helpers:
                task.cancel()
            await settle()
            if self._failure is None:
                await self._tell_end()
            assert self._component is not None
            self._component.kill()
            await self._component.wait_ended()
        if self._failure is not None:
            raise self._failure

    async def _wait_done(self) -> None:
        """Until its time is over, its cycles are told, or a step failed."""
        try:
            async with asyncio.timeout(self._scenario.run.until):
                await self._done.wait()
        except TimeoutError:
            return

    async def _set_stage(self) -> None:
        cluster, scenario = self._cluster, self._scenario
        await install(cluster.client, (*batch_definitions(), *foreign_definitions()))
        await cluster.start_controllers()
        if scenario.nodes:
            await self._doing.add_nodes(list(scenario.nodes))
        for act, place in scenario.objects:
            await self._doing.do(act, place)
        await settle()

    # -- the engine ------------------------------------------------------------------------------------------------

    def _start_engine(self) -> None:
        faulty = FaultyServer(self._cluster.server, self._faults)
        self._news = SlowNews(faulty, self._group)
        self._news.delays = self._delays
        client = ApiClient(
            InProcessTransport(self._news, ADMIN),
            user_agent="skysail-batch",
            clock=self._cluster.clock,
            rng=Random(self._seed),
        )
        self._component = Component("batch", self._run_engine, client, faulty)
        self._component.start(self._group)
        self._is_away = False

    async def _run_engine(self, client: ApiClient) -> None:
        self._process = BatchProcess(
            client,
            self._scenario.configuration,
            clock=self._cluster.clock,
            rng=Random(self._seed),
            options=BatchOptions(scheduler_name=self._scenario.scheduler_name, check=True, seed=self._seed),
            observe=self._observe,
        )
        await self._process.run()

    async def _crash(self, seconds: float) -> None:
        assert self._component is not None
        assert self._news is not None
        self._component.kill()
        self._writes += self._news.writes
        self._news.writes = 0
        self._is_away = True
        if seconds:
            await asyncio.sleep(seconds)
        self._start_engine()

    # -- the lines -------------------------------------------------------------------------------------------------

    def _observe(self, cycle: Cycle) -> None:
        self._told_in_period = True
        self._digests.append(cycle.digest)
        self._ledger_held = self._ledger_held and not cycle.problems
        self._tell_cycle(cycle)

    async def _tick(self) -> None:
        """An idle engine runs no cycle; its seconds are told all the same."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            if not self._told_in_period and self._process is not None and self._process.scheduler.is_synced:
                self._tell_cycle(None)
            self._told_in_period = False

    def _tell_cycle(self, cycle: Cycle | None) -> None:
        wanted = self._scenario.run.cycles
        if self._is_away or self._process is None or self._news is None or self._done.is_set():
            return
        self._lines += 1
        writes = self._writes + self._news.writes
        at = self._cluster.clock.monotonic() - self._begun
        self._tell(cycle_line(self._lines, at, self._process.scheduler.world, cycle, writes - self._written))
        self._written = writes
        if self._lines == wanted:
            self._done.set()

    async def _tell_end(self) -> None:
        pods = await self._cluster.list(Pod, "")
        if self._process is not None:
            self._tell(final_line(self._process.scheduler.world, pods, self._digests, ledger_held=self._ledger_held))

    # -- the steps -------------------------------------------------------------------------------------------------

    async def _steps(self) -> None:
        try:
            for step in self._scenario.steps:
                wait = self._begun + step.at - self._cluster.clock.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                for act, place in step.acts:
                    await self._do(act, place)
        except ConfigError as error:
            self._failure = error
            self._done.set()

    async def _do(self, act: Act, place: Place) -> None:
        if await self._doing.do(act, place):
            return
        if isinstance(act, DelayWatch):
            found = self._scenario.kinds.find(act.kind)
            for resource in {kind.plural for kind in found} if found else {"*"}:
                self._delays[resource] = act.seconds
        elif isinstance(act, FailBind):
            fail_binds(self._faults, act.pods(), act.times, self._labels_of)
        elif isinstance(act, Crash):
            self._group.create_task(self._crash(act.seconds), name="crash")

    def _labels_of(self, pod: str) -> dict[str, str]:
        """The labels of a pod, by `namespace/name`, as the engine knows it."""
        tasks = self._process.scheduler.world.tasks.values() if self._process is not None else ()
        return next((dict(task.pod.metadata.labels) for task in tasks if task.key == pod), {})
