"""A whole cluster in one process: API server, controllers, scheduler and hollow nodes.

    async with LocalCluster(server, numbered_nodes(5), clock=clock, rng=rng).running() as cluster:
        await cluster.wait_nodes_ready()
        await cluster.client.create(DEPLOYMENTS, manifest, "default")

Everything talks to the server through the in-process transport, as real components do through HTTP, and shares one set
of informers. On the virtual-time loop the whole runs in virtual time.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.ports import Clock, Handler
from skysail.apiserver.authentication import ADMIN
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.lease import LeaderElection
from skysail.controller.manager import Manager, ManagerSettings
from skysail.controllers.registry import all_controllers
from skysail.informer.factory import InformerFactory
from skysail.scheduler.app import Scheduler
from skysail.scheduler.config.resolve import ResolvedConfiguration, load_configuration
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.profiles import extension_points, plugin_factories
from skysail.simulator.batch_on_demand import BatchOnDemand
from skysail.simulator.hollow import HollowNode, HollowNodes, HollowSettings

if TYPE_CHECKING:
    from skysail.batch.controllers.process import BatchProcess


def default_configuration() -> ResolvedConfiguration:
    """What kube-scheduler runs without a configuration file."""
    return load_configuration(None, feature_gates({}), extension_points(plugin_factories()))


class LocalCluster:
    """The components of one cluster and how they are wired.

    Args:
        server: A running API server.
        nodes: The hollow nodes to pretend.
        clock: The only source of time; must follow the event loop's.
        rng: The only source of chance.
        hollow: How the hollow nodes behave.
        configuration: The scheduler's; kube-scheduler's defaults when None.
        batch: Whether the batch engine runs once it is needed, for pods whose scheduler's name is `sky-scheduler`; it
            shares the scheduler's account of the cluster, so that no room is given twice.
        foreign_kinds: Whether the kinds of Kueue, Volcano and others that the batch engine reads are served, too.
        lease: What the scheduler holds while it runs, so that another one of the same name waits; none when None.
    """

    def __init__(
        self,
        server: Handler,
        nodes: Sequence[HollowNode],
        *,
        clock: Clock,
        rng: Random,
        hollow: HollowSettings | None = None,
        configuration: ResolvedConfiguration | None = None,
        batch: bool = True,
        foreign_kinds: bool = False,
        lease: LeaderElection | None = None,
    ) -> None:
        self._server, self._clock, self._rng = server, clock, rng
        self.client = self.client_for("skysail")
        self.informers = InformerFactory(self.client_for("skysail-informers"), clock=clock, rng=rng)
        self.hollow_nodes = HollowNodes(nodes, hollow)
        self.manager = self._make_manager()
        client = self.client_for("skysail-scheduler")
        self.scheduler = Scheduler(
            client,
            configuration or default_configuration(),
            informers=self.informers,
            clock=clock,
            rng=rng,
            elector=LeaderElector(client, lease, "skysail", clock=clock, rng=rng) if lease is not None else None,
        )
        self._batch = self._batch_on_demand(foreign_kinds) if batch else None

    def client_for(self, component: str) -> ApiClient:
        """A client of its own for one component, as its user agent says."""
        transport = InProcessTransport(self._server, ADMIN)
        return ApiClient(transport, user_agent=component, clock=self._clock, rng=self._rng)

    def _make_manager(self) -> Manager:
        manager = Manager(
            self.client_for("skysail-controllers"),
            clock=self._clock,
            rng=self._rng,
            settings=ManagerSettings(component="skysail-controllers"),
            informers=self.informers,
        )
        for controller in all_controllers():
            manager.add(controller)
        manager.add(self.hollow_nodes)
        return manager

    def _batch_on_demand(self, foreign_kinds: bool) -> BatchOnDemand:
        client = self.client_for("skysail-batch")

        def make() -> "BatchProcess":
            from skysail.batch.config import default_configuration
            from skysail.batch.controllers.process import BatchProcess

            return BatchProcess(
                client,
                default_configuration(),
                clock=self._clock,
                rng=self._rng,
                informers=self.informers,
                cache=self.scheduler.cache,
            )

        return BatchOnDemand(client, self.informers, make, foreign_kinds=foreign_kinds)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["LocalCluster"]:
        """Run everything until the block is left."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.manager.run(), name="controllers"),
                group.create_task(self.scheduler.run(), name="scheduler"),
                group.create_task(self.informers.run(), name="informers"),
            ]
            if self._batch is not None:
                tasks.append(group.create_task(self._batch.run(), name="batch"))
            try:
                yield self
            finally:
                for task in tasks:
                    task.cancel()

    async def wait_nodes_ready(self) -> None:
        """Wait until every hollow node is registered and schedulable, and the controllers work."""
        await self.hollow_nodes.wait_registered()
        await self.manager.wait_ready()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods, as cached."""
        return tuple(self.informers.pods().lister.list())

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, as cached."""
        return tuple(self.informers.nodes().lister.list())
