"""The scheduler as a running thing: informers feed the cache and the queue, one loop decides, tasks bind.

    scheduler = Scheduler(client, configuration, clock=clock, rng=rng)
    await scheduler.run()        # until `stop()` is called, or cancelled

Tasks, all on one loop: the cycle loop; a task for each pod between its decision and its binding; flush timers that
rest while nobody waits; writers of conditions and events; the sweep of assumptions, only if they expire at all. `stop`
ends it in order: no more decisions, bindings under way end, the lease is given back.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.kinds import POD_GROUPS
from skysail.api.ports import Clock
from skysail.client.api_client import ApiClient
from skysail.controller.leader_elector import LeaderElector
from skysail.informer.factory import InformerFactory
from skysail.informer.keys import Key
from skysail.scheduler.attempts import AttemptRing
from skysail.scheduler.binder import BoundedBinder, DryBinder, look_again
from skysail.scheduler.binding import BindingPlugins, BindingRunner
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.history import RowHistory
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.config.resolve import ResolvedConfiguration
from skysail.scheduler.consistency import Differences, compare
from skysail.scheduler.cycle import SchedulingCycle
from skysail.scheduler.deciding import ProfileDecider, Rotation
from skysail.scheduler.decision_loop import DecisionLoop, kept_up
from skysail.scheduler.evicting import make_evictor
from skysail.scheduler.extenders.talking import ExtenderTalk, TransportMaker
from skysail.scheduler.failure import FailureHandler, hint_failed, order_failed
from skysail.scheduler.flight import CycleProfile
from skysail.scheduler.framework.plugin import Plugin, RunsBeside
from skysail.scheduler.group_cycle import GroupCycle
from skysail.scheduler.handlers import ClusterEventHandlers
from skysail.scheduler.instruments import Instruments
from skysail.scheduler.metered import CALL_TYPE, MeteredClient
from skysail.scheduler.metrics import SchedulerCollector, SchedulerMetrics
from skysail.scheduler.plugins.gang_scheduling import GangScheduling
from skysail.scheduler.preemption.default_preemption import DefaultPreemption
from skysail.scheduler.profiles import PluginFactories, Profile, SchedulerHandle, make_profile, plugin_factories
from skysail.scheduler.queue.order import safe_order
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.recorders import Recorders
from skysail.scheduler.registry import REGISTRY
from skysail.scheduler.status_writer import StatusWriter
from skysail.scheduler.timers import FlushTimers
from skysail.scheduler.waiting_pods import WaitingPods
from skysail.scheduler.watching import ClusterWatch, wanted_events

_log = logging.getLogger(__name__)

_DRAIN_SECONDS: Final = 8.0


@dataclass(frozen=True)
class SchedulerOptions:
    """What is not in the configuration file.

    Attributes:
        dry_run: Decide, but write nothing.
        assume_ttl_seconds: How long an assumed pod whose binding ended waits to be confirmed; 0 is for ever.
        max_unschedulable_seconds: How long a pod sleeps before it is tried again without an event.
        extender_transport: Makes a transport to one extender; HTTP when None.
    """

    dry_run: bool = False
    assume_ttl_seconds: float = 0.0
    max_unschedulable_seconds: float = 300.0
    extender_transport: TransportMaker | None = None


class Scheduler:
    """One scheduler process (or part of one).

    Args:
        client: Reads, binds, patches, writes events.
        configuration: What to run.
        clock: Time; must follow the event loop.
        rng: Breaks ties, spreads retries.
        factories: How plugins are made; the built-in ones and those of installed packages by default.
        informers: Shared with others in this process; its own when None.
        options: See there.
        registry: Where metrics are registered, those of its own informers included; one of its own when None.
        elector: Whose lease must be held to schedule; none when None.
    """

    def __init__(
        self,
        client: ApiClient,
        configuration: ResolvedConfiguration,
        *,
        clock: Clock,
        rng: random.Random,
        factories: PluginFactories | None = None,
        informers: InformerFactory | None = None,
        options: SchedulerOptions | None = None,
        registry: CollectorRegistry | None = None,
        elector: LeaderElector | None = None,
    ) -> None:
        options = options or SchedulerOptions()
        self.configuration, self.options, self.metrics = configuration, options, SchedulerMetrics()
        self.cache = ClusterCache(assume_ttl_seconds=options.assume_ttl_seconds)
        self.attempts, self.waiting, self.snapshot = AttemptRing(), WaitingPods(), Snapshot(RowHistory())
        self.elector = elector
        self._client, self._clock, self._rng = client, clock, rng
        self._now: Callable[[], float] = clock.monotonic
        self._alone = informers is None
        self.registry = registry if registry is not None else CollectorRegistry()
        self._informers = informers or InformerFactory(client, clock=clock, rng=rng, registry=self.registry)
        self.instruments = Instruments(self._now, self.metrics)
        metered, parallelism = MeteredClient(client, self._now, self.metrics), configuration.source.parallelism
        self._binder = DryBinder() if options.dry_run else BoundedBinder(metered, parallelism, self._node_missing)
        self.metrics.pending_calls[CALL_TYPE] = lambda: self._binder.pending
        handle = SchedulerHandle(
            feature_gates=configuration.gates, clock=clock, rng=rng, binder=self._binder,
            writer=None if options.dry_run else metered, snapshot=self.snapshot, informers=self._informers,
            waiting=self.waiting, extenders=configuration.source.extenders,
        )  # fmt: skip
        factories = factories if factories is not None else plugin_factories()
        self.profiles = {
            resolved.scheduler_name: make_profile(
                resolved, factories, handle, self._plugin_made, configuration.source.extenders
            )
            for resolved in configuration.profiles
        }
        self._talk = self._make_talk()
        self._groups = self.cache.keep_groups() if configuration.gates["GenericWorkload"] else None
        self._gangs = [
            plugin
            for profile in self.profiles.values()
            if isinstance(plugin := profile.framework.plugins.get(GangScheduling.name), GangScheduling)
        ]
        for gang in self._gangs:
            gang.groups = self._groups or gang.groups
        self._handle = handle
        self._timers = FlushTimers(self._now)
        self.queue = self._make_queue()
        self._loop = DecisionLoop(self.queue, self._binder, self.waiting, self._talk, self._now)
        self._recorders = Recorders(self.profiles)
        handle.attach(self.queue.nominator, self._activate, self._current, self._recorders.of_pod)
        self._writer = None if options.dry_run else StatusWriter(client, clock, self.metrics)
        self.handlers = ClusterEventHandlers(
            self.cache, self.queue, profiles=frozenset(self.profiles), now=self._now,
            reject_waiting=self.waiting.reject, metrics=self.metrics, groups=self._groups,
        )  # fmt: skip
        self.watch = ClusterWatch(client, self._informers, self.handlers, alone=self._alone)
        self._failures = FailureHandler(
            self.queue, current=self._current, recorder=self._recorders.of_profile, writer=self._writer,
            metrics=self.metrics, now=self._now,
        )  # fmt: skip
        self._evictor = None if self._writer is None else make_evictor(
            client, clock, self.profiles.values(), queue=self.queue, waiting=self.waiting, recorders=self._recorders,
            writer=self._writer, metrics=self.metrics, current=self._current, activate=self._activate,
        )  # fmt: skip
        self._rotation = Rotation()
        self.is_synced = False
        self.registry.register(self.collector())

    # -- for whoever runs it ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until `stop` or cancellation.

        Raises:
            LeadershipLost: The lease could not be renewed.
        """
        async with asyncio.TaskGroup() as group:
            if self._alone:
                following = group.create_task(self._informers.run(), name="scheduler informers")
            if self._talk is not None:
                talking = group.create_task(self._talk.run(), name="scheduler extenders")
            try:
                if self.elector is None or not self.configuration.source.delay_cache_until_active:
                    await self._sync_unless_stopped()
                if self.elector is None:
                    await self._lead()
                else:
                    await self._lead_when_elected(self.elector)
            finally:
                self.watch.close()
                if self._alone:
                    following.cancel()
                if self._talk is not None:
                    talking.cancel()

    def stop(self) -> None:
        """Ask it to end in order: no more decisions; bindings under way are finished; `run` returns."""
        self._loop.stop()

    def compare_caches(self) -> Differences:
        """Where the cache and the queue disagree with the informers."""
        pods, nodes = self.watch.pods.lister.list(), self.watch.nodes.lister.list()
        return compare(self.cache, self.queue, self.profiles, nodes, pods)

    def informers_health(self) -> Mapping[str, str]:
        """What is wrong with each informer, by what it watches; empty text for nothing."""
        found = {}
        for scope, informer in self._informers.informers().items():
            stale = f"not following, stale for {informer.reflector.staleness_seconds:.0f} s"
            found[scope] = "not synced yet" if not informer.has_synced else "" if informer.is_healthy else stale
        return found

    @property
    def is_leading(self) -> bool:
        """Whether it may schedule: always without an election."""
        return self.elector is None or self.elector.is_leader

    def collector(self) -> SchedulerCollector:
        """Its metrics, for a Prometheus registry."""
        return SchedulerCollector(
            self.metrics,
            queue=self.queue.statistics,
            cache=self.cache.statistics,
            reasons=self.queue.unschedulable_reasons,
            in_flight_events=lambda: self.queue.in_flight_events_by_label,
        )

    # -- running ----------------------------------------------------------------------------------------------------

    async def _sync_unless_stopped(self) -> None:
        async with asyncio.TaskGroup() as group:
            syncing = group.create_task(self._sync())
            stopping = group.create_task(self._loop.stopping.wait())
            await asyncio.wait((syncing, stopping), return_when=asyncio.FIRST_COMPLETED)
            syncing.cancel()
            stopping.cancel()

    async def _sync(self) -> None:
        self.watch.listen()
        registrations = [rows for profile in self.profiles.values() for rows in profile.registrations.values()]
        await self.watch.listen_to(wanted_events(registrations))
        await self.watch.wait_synced(self._handle.kinds)
        if self._talk is not None:
            await self._talk.wait_synced()
        self.is_synced = True
        _log.info("caches are synced", extra={"nodes": self.cache.statistics().nodes, "pending": len(self.queue)})

    async def _lead_when_elected(self, elector: LeaderElector) -> None:
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(elector.run(self._lead), name="scheduler election")
            stopping = group.create_task(self._loop.stopping.wait())
            await asyncio.wait((leading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not elector.is_leader and not leading.done():
                leading.cancel()
            await asyncio.wait((leading,))
            stopping.cancel()

    async def _lead(self) -> None:
        if not self.is_synced:
            await self._sync_unless_stopped()
        if self._loop.stopping.is_set():
            return
        if not self.options.dry_run:
            await self._recorders.open(self._client, self._clock, self._rng)
        cycle = self._make_cycle()
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(kept_up(name, run), name=f"scheduler {name}") for name, run in self._helpers()]
            try:
                await self._loop.run(cycle)
                await self._drain()
            finally:
                for task in beside:
                    task.cancel()

    def _helpers(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """What goes on beside the decisions, by name."""
        for recorder in self._recorders.writing:
            yield "events", recorder.run
        if self._writer is not None:
            yield "conditions", self._writer.run
        if self._evictor is not None:
            yield "evictions", self._evictor.run
        yield "timers", self._timers.run
        if self.options.assume_ttl_seconds:
            yield "sweep", self._sweep
        for profile in self.profiles.values():
            for plugin in profile.framework.plugins.values():
                if isinstance(plugin, RunsBeside):
                    yield plugin.name, plugin.run_beside

    async def _drain(self) -> None:
        """Give conditions and events a moment to be written."""
        deadline = self._now() + _DRAIN_SECONDS
        while self._is_writing and self._now() < deadline:  # noqa: ASYNC110 - they have no event
            await asyncio.sleep(0.02)

    @property
    def _is_writing(self) -> bool:
        return self._recorders.is_writing or (self._writer is not None and len(self._writer) > 0)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for info in self.cache.expire(self._now()):
                _log.warning("assumed pod expired", extra={"pod": info.pod.key})

    # -- making -----------------------------------------------------------------------------------------------------

    def _make_queue(self) -> SchedulingQueue:
        source = self.configuration.source
        sort = next(iter(self.profiles.values())).framework.queue_sort
        if sort is None:
            raise ConfigError("a queue sort plugin is needed", path="profiles[0].plugins.queueSort")
        queue = SchedulingQueue(
            {
                name: profile.queue_profile(hint_failed, self._hint_asked, self._now)
                for name, profile in self.profiles.items()
            },
            sort.sort_key if sort.name in REGISTRY else safe_order(sort.name, sort.sort_key, order_failed),
            initial_backoff_seconds=float(source.pod_initial_backoff_seconds),
            max_backoff_seconds=float(source.pod_max_backoff_seconds),
            max_unschedulable_seconds=self.options.max_unschedulable_seconds,
            is_pending=self._is_pending,
            on_ready=lambda: self._loop.ready.set(),
            on_waiting=self._timers.wake,
            groups_back_off=self.cache.pod_groups is not None,
        )
        self._timers.attach(queue)
        return queue

    def _make_cycle(self) -> SchedulingCycle:
        cycle = SchedulingCycle(
            {name: self._cycle_profile(profile) for name, profile in self.profiles.items()},
            cache=self.cache, snapshot=self.snapshot, queue=self.queue, failures=self._failures,
            attempts=self.attempts, clock=self._clock, now=self._now, metrics=self.metrics, writer=self._writer,
            instruments=self.instruments, evict=self._evictor.submit if self._evictor is not None else None,
            extenders=self._talk.chain if self._talk is not None else None,
        )  # fmt: skip
        if self._groups is not None:
            lister = self._handle.lister(POD_GROUPS) if self._gangs else None
            cycle.groups = GroupCycle(
                self.queue, self._groups, pod_group=lambda key: lister.get(*key) if lister is not None else None,
                client=None if self.options.dry_run else self._client, now=self._now, today=self._clock.now,
                metrics=self.metrics,
            )  # fmt: skip
        return cycle

    def _make_talk(self) -> ExtenderTalk | None:
        source = self.configuration.source
        if not source.extenders:
            return None
        maker = self.options.extender_transport
        talk = ExtenderTalk(source.extenders, self._client, self._clock, self._rng, source.parallelism, maker)
        for profile in self.profiles.values():
            plugin = profile.framework.plugins.get(DefaultPreemption.name)
            if isinstance(plugin, DefaultPreemption) and talk.chain.preempts:
                plugin.extenders = talk.chain
        return talk

    def _cycle_profile(self, profile: Profile) -> CycleProfile:
        framework = profile.framework
        plugins = BindingPlugins(
            framework.reserve, framework.permit, framework.pre_bind, framework.bind, framework.post_bind
        )
        outside = self._talk.bind if self._talk is not None and self._talk.chain.binds else None
        runner = BindingRunner(
            profile.name, plugins, self.waiting, now=self._now, metrics=self.metrics,
            bind_outside=None if self.options.dry_run else outside, on_step=self.instruments.step,
        )  # fmt: skip
        percentage = profile.resolved.percentage_of_nodes_to_score
        decider = ProfileDecider(framework, percentage, self._rotation, self.queue.nominator, self._rng)
        return CycleProfile(framework, decider, runner, self._recorders.of_profile(profile.name))

    # -- asked by the parts -----------------------------------------------------------------------------------------

    def _plugin_made(self, plugin: Plugin, name: str, profile: str) -> None:
        self.instruments.watch(plugin, profile, built_in=name in REGISTRY)

    def _activate(self, pods: Iterable[Pod]) -> None:
        self.queue.activate(pods, self._now())

    def _current(self, pod: Pod) -> Pod | None:
        return self.watch.pods.lister.get(Key(pod.metadata.namespace, pod.metadata.name))

    def _is_pending(self, pod: Pod) -> bool:
        current = self._current(pod)
        return current is not None and not current.spec.node_name

    def _hint_asked(self, plugin: str, label: str, hint: str, seconds: float) -> None:
        self.metrics.observe("queueing_hint_execution_duration_seconds", seconds, plugin, label, hint)

    async def _node_missing(self, name: str) -> None:
        await look_again(self._client, self.cache, name)
