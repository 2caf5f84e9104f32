"""A cluster in one process and in virtual time: the embedded API server, schedulers, and means to disturb them."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from skysail.api.core import Pod
from skysail.api.kinds import EVENTS, NODES, PODS
from skysail.api.ports import Request, Response, Transport, User
from skysail.apiserver.server import ApiServer
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.client.retry import RetryPolicy
from skysail.controller.leader_elector import LeaderElector
from skysail.scheduler.app import Scheduler, SchedulerOptions
from skysail.scheduler.config.resolve import load_configuration
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.profiles import extension_points
from skysail.scheduler.registry import REGISTRY
from skysail.simulator.clock import LoopClock, run_virtual, settle

ADMIN = User("admin", groups=("system:masters",))
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class FaultyTransport:
    """Passes requests on, unless a fault says otherwise.

    Attributes:
        requests: Method and path of each, in order.
        fault: Asked before each request; may raise, wait, or answer in the server's place.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[Request], Any] = lambda request: None

    async def request(self, request: Request) -> Response:
        self.requests.append((request.method, request.path))
        answer = self.fault(request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return answer if isinstance(answer, Response) else await self._inner.request(request)

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [(method, path) for method, path in self.requests if method != "GET"]


class World:
    """What a test holds in its hands."""

    def __init__(self, server: ApiServer, clock: LoopClock, group: asyncio.TaskGroup) -> None:
        self.server, self.clock, self.group = server, clock, group
        self.client = ApiClient(InProcessTransport(server, ADMIN), user_agent="test", clock=clock, rng=random.Random(1))

    def scheduler(
        self,
        config: str = "",
        plugins: Mapping[str, Callable[..., Any]] | None = None,
        options: SchedulerOptions | None = None,
        transport: Transport | None = None,
        elector: Callable[[ApiClient], LeaderElector] | None = None,
        gates: Mapping[str, bool] | None = None,
    ) -> Scheduler:
        factories = {**REGISTRY, **(plugins or {})}
        configuration = load_configuration(HEAD + config, feature_gates(gates or {}), extension_points(factories))
        client = ApiClient(
            transport or InProcessTransport(self.server, ADMIN), user_agent="scheduler", clock=self.clock,
            rng=random.Random(2), retries=RetryPolicy(max_retries=0, max_reconnects=0),
        )  # fmt: skip
        return Scheduler(
            client, configuration, clock=self.clock, rng=random.Random(3), factories=factories, options=options,
            elector=elector(client) if elector else None,
        )  # fmt: skip

    @asynccontextmanager
    async def running(self, *schedulers: Scheduler) -> AsyncIterator[None]:
        tasks = [self.group.create_task(scheduler.run()) for scheduler in schedulers]
        await settle()
        yield
        for scheduler in schedulers:
            scheduler.stop()
        await asyncio.wait(tasks)

    async def node(self, name: str, cpu: str = "4", **labels: str) -> None:
        await self.client.create(
            NODES,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
                "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
            },
        )
        await self.client.patch(NODES, name, "", {"spec": {"taints": None}})

    async def pod(self, name: str, cpu: str = "100m", **spec: Any) -> Pod:
        container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
        return await self.client.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": [container], **spec},
            },
        )

    async def node_of(self, name: str) -> str:
        return (await self.client.get(PODS, name, "default")).spec.node_name

    async def condition(self, name: str) -> tuple[str, str, str]:
        pod = await self.client.get(PODS, name, "default")
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled":
                return condition.status, condition.reason, fit_part(condition.message)
        return "", "", ""

    async def events(self, name: str) -> list[tuple[str, str, str]]:
        events = (await self.client.list_all(EVENTS, "default")).items
        return [(e.type, e.reason, fit_part(e.message)) for e in events if e.involved_object.name == name]


def fit_part(message: str) -> str:
    """A fit error without what the PostFilter plugins add to it."""
    first, dot, _ = message.partition(". ")
    return first + dot.rstrip() if first.startswith("0/") else message


def in_world(test: Callable[[World], Any]) -> Callable[[], None]:
    """Run a coroutine test in a fresh world, in virtual time."""

    def run() -> None:
        async def main(clock: LoopClock) -> None:
            server = ApiServer(clock=clock, rng=random.Random(0))
            async with server.running(), asyncio.TaskGroup() as group:
                await test(World(server, clock, group))

        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run
