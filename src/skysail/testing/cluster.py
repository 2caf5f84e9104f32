"""`Cluster`: a whole cluster for one test, in virtual time, of which every part can be made to fail.

    async def test_a_deployment_survives_the_loss_of_a_node(cluster):
        await cluster.add_nodes(3)
        await cluster.start_controllers()
        await cluster.start_scheduler()
        await cluster.create(make_deployment("web", replicas=3))
        await cluster.settle()
        assert len([pod for pod in await cluster.list(Pod) if pod.status.phase == "Running"]) == 3

The server is the embedded one; `cluster.client` reaches it directly. Every component started here has a connection of
its own with faults of its own (`Component.faults`) and those of all (`cluster.faults`).
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any, Self, TypeVar

from skysail.api.core import Pod
from skysail.api.errors import SkysailError
from skysail.api.kinds import Kind, kind_of
from skysail.api.meta import ApiObject
from skysail.api.ports import User
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.server import ApiServer
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.controller.controller import Controller
from skysail.controller.lease import LeaderElection
from skysail.controller.manager import Manager, ManagerSettings
from skysail.controllers.registry import CONTROLLERS, select_controllers
from skysail.informer.keys import Key
from skysail.scheduler.app import Scheduler
from skysail.scheduler.config.resolve import ResolvedConfiguration, load_configuration
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.framework.plugin import Plugin
from skysail.scheduler.profiles import extension_points, plugin_factories
from skysail.simulator.clock import DEFAULT_START, LoopClock, settle
from skysail.simulator.hollow import HollowNode, HollowNodes, HollowSettings, numbered_nodes
from skysail.testing.calls import Call
from skysail.testing.component import Component
from skysail.testing.faults import FOR_EVER, Action, Faults, Rule
from skysail.testing.faulty_server import FaultyServer
from skysail.testing.switch import ServerSwitch

T = TypeVar("T")
TObject = TypeVar("TObject", bound=ApiObject)

QUIET_SECONDS = 15.0
"""A cluster in which nothing was written for so long has settled: longer than the scheduler's longest backoff."""


class NotSettled(SkysailError):
    """A cluster did not come to rest, or a condition not true, in the time it was given."""


class Cluster:
    """A cluster in one process and in virtual time. Enter it (`async with`) on a `VirtualTimeLoop`.

    Args:
        seed: Of all chance in it.
        start: The time of day at which it begins.
        options: Of the API server.

    Attributes:
        clock: The cluster's time.
        rng: The cluster's chance.
        server: The embedded API server itself.
        client: The test's own client, free of faults.
        faults: Those of every component's connection.
        components: Those started so far, by name.
    """

    clock: LoopClock
    server: ApiServer
    client: ApiClient

    def __init__(
        self, *, seed: int = 0, start: datetime = DEFAULT_START, options: Mapping[str, str] | None = None
    ) -> None:
        self.rng = Random(seed)
        self.faults = Faults(Random(seed + 1))
        self.components: dict[str, Component] = {}
        self._start, self._options = start, options
        self._hollow: list[HollowNodes] = []
        self._failed_nodes: dict[str, list[tuple[Faults, Rule]]] = {}
        self._running = self._run()

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        self.clock = LoopClock(asyncio.get_running_loop(), self._start)
        self.server = ApiServer(clock=self.clock, rng=self.rng, options=self._options)
        failure: BaseException | None = None
        async with self.server.running(), asyncio.TaskGroup() as self._group:
            self._switch = ServerSwitch(self.server, lambda: self.server.store.visible)
            self.client = self._client_through(self._switch, "test", ADMIN)
            try:
                yield
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError):
                    raise
                failure = error  # the test's own, which must not end up in a group of the components' errors
            finally:
                for component in self.components.values():
                    component.cancel()
        if failure is not None:
            raise failure

    async def __aenter__(self) -> Self:
        await self._running.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._running.__aexit__(*error)

    # --- objects ---

    async def create(self, *objects: TObject) -> list[TObject]:
        """Create objects of built-in kinds, in order; as the server made them."""
        return [await self.client.create(kind_of(type(obj)), obj) for obj in objects]

    async def list(self, kind: type[T] | Kind[T], namespace: str = "") -> list[T]:
        """Every object of a kind, as the server has it."""
        descriptor = kind if isinstance(kind, Kind) else kind_of(kind)
        return list((await self.client.list(descriptor, namespace)).items)

    async def get(self, kind: type[T] | Kind[T], name: str, namespace: str = "default") -> T:
        """One object, as the server has it."""
        descriptor = kind if isinstance(kind, Kind) else kind_of(kind)
        return await self.client.get(descriptor, name, namespace)

    # --- components ---

    def connect(self, name: str, user: User = ADMIN, faults: Faults | None = None) -> ApiClient:
        """A client for something the test runs itself, subject to `faults` and to `cluster.faults`."""
        server = FaultyServer(FaultyServer(self._switch, self.faults), faults or Faults())
        return self._client_through(server, name, user)

    async def run(self, name: str, main: Callable[[ApiClient], Awaitable[None]], user: User = ADMIN) -> Component:
        """Run something beside the test until the cluster ends, with a connection of its own.

        Args:
            name: Unique among the running components; its user agent.
            main: Gets its client; an error in it fails the test.
            user: Who it is to the server.
        """
        known = self.components.get(name)
        if known is not None and known.is_running:
            raise ValueError(f"a component named {name!r} is running already")
        faults = known.faults if known is not None else Faults(Random(self.rng.random()))
        own = FaultyServer(FaultyServer(self._switch, self.faults), faults)
        component = Component(name, main, self._client_through(own, name, user), own)
        self.components[name] = component
        component.start(self._group)
        return component

    async def restart(self, name: str) -> Component:
        """Start a component that was killed, crashed or stopped once more, from nothing."""
        component = self.components[name]
        await component.stop()
        return await self.run(name, component.main)

    async def start(
        self,
        *controllers: Controller | Callable[[], Controller],
        name: str = "",
        leader_election: LeaderElection | None = None,
    ) -> Manager:
        """Run controllers in a manager of their own, and wait until they work (unless they must be elected).

        Args:
            controllers: Classes, or other ways to make them; an instance cannot be restarted.
            name: The component's; by default the first controller's.
            leader_election: Lead before working.
        """
        managers: list[Manager] = []
        created = asyncio.Event()

        async def main(client: ApiClient) -> None:
            settings = ManagerSettings(component=name or "controllers", identity=f"{name or 'it'}-{len(managers)}")
            manager = Manager(
                client, clock=self.clock, rng=self.rng, settings=settings, leader_election=leader_election
            )
            for each in controllers:
                manager.add(each if isinstance(each, Controller) else each())
            managers.append(manager)
            self.components[component_name].manager = manager
            created.set()
            await manager.run()

        first = controllers[0]
        component_name = name or (type(first).display_name() if isinstance(first, Controller) else _name_of(first))
        await self.run(component_name, main)
        await created.wait()
        if leader_election is None:
            await managers[0].wait_ready()
        return managers[0]

    async def start_controllers(self, *names: str) -> Manager:
        """Run built-in controllers (all, or those named as in `skysail.controllers.registry`) as one component.

        Raises:
            ConfigError: There is no controller of that name.
        """
        chosen = select_controllers(names or ("*",))
        return await self.start(*(CONTROLLERS[each] for each in chosen), name="controllers")

    async def start_scheduler(
        self, configuration: ResolvedConfiguration | str | None = None, *, plugins: Iterable[type[Plugin] | str] = ()
    ) -> Component:
        """Run the scheduler.

        Args:
            configuration: A KubeSchedulerConfiguration, as YAML or resolved; kube-scheduler's defaults when None.
            plugins: Plugins of your own, as classes or as `module:Class`.

        Raises:
            ConfigError: The configuration is wrong, or a plugin is none.
        """
        factories = plugin_factories(plugins)
        if isinstance(configuration, str) or configuration is None:
            configuration = load_configuration(configuration, feature_gates({}), extension_points(factories))
        resolved = configuration

        async def main(client: ApiClient) -> None:
            await Scheduler(client, resolved, clock=self.clock, rng=self.rng, factories=factories).run()

        return await self.run("scheduler", main)

    async def add_nodes(
        self, nodes: int | Iterable[HollowNode], settings: HollowSettings | None = None, *, lift_taints: bool = True
    ) -> HollowNodes:
        """Add hollow nodes, so many or these, and wait until they are registered."""
        chosen = numbered_nodes(nodes) if isinstance(nodes, int) else list(nodes)
        hollow = HollowNodes(chosen, settings, lift_taints=lift_taints)
        await self.start(hollow, name=f"hollow-nodes-{len(self._hollow)}" if self._hollow else "hollow-nodes")
        self._hollow.append(hollow)
        await hollow.wait_registered()
        return hollow

    # --- failures ---

    def stop_apiserver(self) -> None:
        """Refuse all connections and break all watches; what the server holds is kept."""
        self._switch.switch_off()

    def start_apiserver(self) -> None:
        """Accept connections again."""
        self._switch.switch_on()

    def fail_node(self, name: str) -> None:
        """A hollow node falls silent: no more leases, no more news of its pods."""
        for number, hollow in enumerate(self._hollow):
            faults = self.components[f"hollow-nodes-{number}" if number else "hollow-nodes"].faults
            rule = faults.strike_when(Action.LOSE_REQUEST, _from_node(name, hollow), FOR_EVER)
            self._failed_nodes.setdefault(name, []).append((faults, rule))

    def recover_node(self, name: str) -> None:
        """A silent node speaks again, and looks after its pods."""
        for faults, rule in self._failed_nodes.pop(name, ()):
            faults.take_back(rule)
        for hollow in self._hollow:
            for pod in hollow.lister(Pod).list():
                if pod.spec.node_name == name:
                    hollow.enqueue(Key(pod.namespace, pod.name))

    def kill(self, name: str) -> None:
        """End a component at once, as SIGKILL does: it says goodbye to nobody."""
        self.components[name].kill()

    async def crash_after(self, name: str, turns: int) -> None:
        """Kill a component after so many turns of the event loop, wherever it then awaits.

        While turns are counted time stands still: begin at the moment of interest.
        """
        for _ in range(turns):
            await asyncio.sleep(0)
        self.kill(name)
        await self.components[name].wait_ended()

    # --- time ---

    async def settle(self, *, quiet: float = QUIET_SECONDS, timeout: float = 3_600.0) -> None:
        """Let the cluster run until nothing is left to do: all controllers idle, nothing written for a while.

        Leases and Events do not count. A manager whose informers do not follow the server, as between two attempts to
        watch, is not idle: it has yet to hear what there is to do.

        Args:
            quiet: For how many virtual seconds nothing may be written.
            timeout: How long this may take, in virtual seconds.

        Raises:
            NotSettled: It does not come to rest.
        """
        deadline = self.clock.monotonic() + timeout
        while True:
            before = self._switch.writes
            await asyncio.sleep(quiet)
            await settle()
            if self._switch.writes == before and not self._busy():
                return
            if self.clock.monotonic() >= deadline:
                raise NotSettled(f"not settled after {timeout:g} s; {self._describe_activity()}")

    async def advance(self, seconds: float) -> None:
        """Let so much virtual time pass, and whatever is then due happen."""
        await asyncio.sleep(seconds)
        await settle()

    async def wait_until(
        self, condition: Callable[[], bool | Awaitable[bool]], *, timeout: float = 600.0, what: str = "the condition"
    ) -> None:
        """Wait until a condition on the cluster holds; it is asked again after every write.

        Args:
            condition: Plain or asynchronous.
            timeout: How long to wait, in virtual seconds.
            what: The condition in words, for the message.

        Raises:
            NotSettled: It does not come true in time.
        """
        try:
            async with asyncio.timeout(timeout):
                while not await _holds(condition):
                    await self._switch.wait_changed()
                    await settle()
        except TimeoutError as error:
            raise NotSettled(f"{what} did not come true in {timeout:g} s; {self._describe_activity()}") from error

    def _busy(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, component in self.components.items()
            if component.is_running
            and (manager := component.manager) is not None
            and (not manager.is_idle() or any(manager.readiness().values()))
        )

    def _describe_activity(self) -> str:
        busy = ", ".join(self._busy()) or "none"
        writes = "; ".join(self._switch.last_writes) or "none"
        return f"busy components: {busy}; last writes: {writes}"

    def _client_through(self, server: ServerSwitch | FaultyServer, name: str, user: User) -> ApiClient:
        return ApiClient(InProcessTransport(server, user), user_agent=name, clock=self.clock, rng=self.rng)


def _name_of(maker: Callable[[], Controller]) -> str:
    if isinstance(maker, type) and issubclass(maker, Controller):
        return maker.display_name()
    return getattr(maker, "__name__", "controllers")


def _from_node(node: str, hollow: HollowNodes) -> Callable[[Call], bool]:
    """Whether a call comes from one hollow node."""

    def matches(call: Call) -> bool:
        if call.resource in ("leases", "nodes"):
            return call.name == node
        if call.resource != "pods" or not call.is_write:
            return False
        pod = hollow.lister(Pod).get(Key(call.namespace, call.name))
        return pod is not None and pod.spec.node_name == node

    return matches


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer
