"""Plays a scenario: sets the stage, starts the engine, does what the steps say, tells of every cycle."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import yaml

from skysail.api.core import Pod
from skysail.api.errors import AlreadyExists
from skysail.api.kinds import NAMESPACES, NODES, PODS, Kind
from skysail.api.raw import Raw
from skysail.apiserver.authentication import ADMIN
from skysail.batch.app import BatchOptions
from skysail.batch.config import default_configuration, load_configuration
from skysail.batch.controllers.process import BatchProcess, install
from skysail.batch.engine import Cycle
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.kinds import batch_definitions
from skysail.batch.session import Configuration
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import LoopClock, settle
from skysail.simulator.hollow import HollowNode, HollowSettings
from skysail.testing.batch_replay.network import SlowNews, fail_binds
from skysail.testing.batch_replay.report import cycle_line, final_line
from skysail.testing.batch_replay.scenario import DEFAULT_CAPACITY, AddNode, Scenario, Step, find_kind, listed
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
        self._configuration = _configuration(scenario)
        self._delays: dict[str, float] = {}
        self._faults = Faults(Random(seed))
        self._lines = 0
        self._told_in_period = False
        self._digests: list[str] = []
        self._writes = self._written = 0
        self._done = asyncio.Event()
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
            until = self._scenario.run.until
            if until is not None:
                await asyncio.sleep(until)
            else:
                await self._done.wait()
            for task in helpers:
                task.cancel()
            await settle()
            await self._tell_end()
            assert self._component is not None
            self._component.kill()
            await self._component.wait_ended()

    # -- the stage -------------------------------------------------------------------------------------------------

    async def _set_stage(self) -> None:
        cluster, scenario = self._cluster, self._scenario
        await install(cluster.client, (*batch_definitions(), *foreign_definitions()))
        await cluster.start_controllers()
        nodes = [_hollow(obj) for obj in scenario.objects if obj["kind"] == "Node"]
        nodes += [AddNode(name=f"node-{number}").hollow() for number in range(scenario.nodes)]
        if nodes:
            await cluster.add_nodes(nodes, _SETTINGS)
        for obj in scenario.objects:
            if obj["kind"] != "Node":
                await self._apply(obj)
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

    async def _run_engine(self, client: ApiClient) -> None:
        self._process = BatchProcess(
            client,
            self._configuration,
            clock=self._cluster.clock,
            rng=Random(self._seed),
            options=BatchOptions(scheduler_name=self._scenario.scheduler_name, check=True, seed=self._seed),
            observe=self._observe,
        )
        await self._process.run()

    def _crash(self) -> None:
        assert self._component is not None
        assert self._news is not None
        self._component.kill()
        self._writes += self._news.writes
        self._start_engine()

    # -- the lines -------------------------------------------------------------------------------------------------

    def _observe(self, cycle: Cycle) -> None:
        self._told_in_period = True
        self._digests.append(cycle.digest)
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
        if self._process is None or self._news is None or (wanted is not None and self._lines >= wanted):
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
            self._tell(final_line(self._process.scheduler.world, pods, self._digests))

    # -- the steps -------------------------------------------------------------------------------------------------

    async def _steps(self) -> None:
        for step in sorted(self._scenario.steps, key=lambda step: step.at):
            wait = self._begun + step.at - self._cluster.clock.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            await self._do(step)

    async def _do(self, step: Step) -> None:
        for obj in listed(step.apply):
            await self._apply(obj)
        for named in listed(step.delete):
            await self._cluster.client.delete(_kind(named.kind, named.api_version), named.name, named.namespace)
        for each in listed(step.patch):
            kind = _kind(each.kind, each.api_version)
            await self._cluster.client.patch(kind, each.name, each.namespace, each.patch, subresource=each.subresource)
        if step.delay_watch is not None:
            delayed = find_kind(step.delay_watch.kind)
            resource = delayed.plural if delayed is not None else step.delay_watch.kind.lower()
            self._delays[resource] = step.delay_watch.seconds
        if step.fail_bind is not None:
            fail_binds(self._faults, step.fail_bind.match, step.fail_bind.times)
        await self._do_to_nodes(step)
        if step.crash is not None:
            self._crash()

    async def _do_to_nodes(self, step: Step) -> None:
        if step.fail_node is not None:
            self._cluster.fail_node(step.fail_node)
        if step.recover_node is not None:
            self._cluster.recover_node(step.recover_node)
        if nodes := [each.hollow() for each in listed(step.add_node)]:
            await self._cluster.add_nodes(nodes, _SETTINGS)
        if step.set_device is not None:
            amounts = {step.set_device.resource: str(step.set_device.count)}
            status: Raw = {"status": {"capacity": amounts, "allocatable": amounts}}
            await self._cluster.client.patch(NODES, step.set_device.node, "", status, subresource="status")

    async def _apply(self, obj: Raw) -> None:
        """Make it, or change it to this."""
        kind = _kind(obj["kind"], obj["apiVersion"])
        if kind is NODES:
            await self._cluster.add_nodes([_hollow(obj)], _SETTINGS)
            return
        namespace = obj["metadata"].get("namespace") or ("default" if kind.namespaced else "")
        if kind.namespaced and namespace != "default":
            await self._make_namespace(namespace)
        try:
            await self._cluster.client.create(kind, obj, namespace)
        except AlreadyExists:
            body = {key: value for key, value in obj.items() if key != "status"}
            await self._cluster.client.patch(kind, obj["metadata"]["name"], namespace, body)
        if "status" in obj and kind is not PODS:
            body = {"status": obj["status"]}
            await self._cluster.client.patch(kind, obj["metadata"]["name"], namespace, body, subresource="status")

    async def _make_namespace(self, name: str) -> None:
        try:
            await self._cluster.client.create(NAMESPACES, {"metadata": {"name": name}})
        except AlreadyExists:
            return
        await asyncio.sleep(0)


_SETTINGS = HollowSettings(capacity=dict(DEFAULT_CAPACITY))


def _configuration(scenario: Scenario) -> Configuration:
    if scenario.config is None:
        return default_configuration()
    return load_configuration(yaml.safe_dump(scenario.config), "config")


def _kind(name: str, api_version: str) -> Kind[Any]:
    found = find_kind(name, api_version)
    assert found is not None, "checked when the scenario was read"
    return found


def _hollow(obj: Raw) -> HollowNode:
    """A Node object as a node to pretend."""
    status = obj.get("status") or {}
    capacity = {
        name: str(amount) for name, amount in (status.get("allocatable") or status.get("capacity") or {}).items()
    }
    metadata = obj["metadata"]
    labels = {
        name: text
        for name, text in (metadata.get("labels") or {}).items()
        if name not in ("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch")
    }
    return HollowNode(
        metadata["name"],
        capacity={**DEFAULT_CAPACITY, **capacity},
        labels=labels,
        taints=tuple((obj.get("spec") or {}).get("taints") or ()),
    )
