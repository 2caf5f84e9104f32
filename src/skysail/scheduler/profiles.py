"""Profiles made of a resolved configuration: plugin objects, the framework that runs them, and the handle they get.

Third parties' plugins come as `module:Class` or by the entry point group `skysail.plugins`; they are classes made as
`Class(args, handle)` with a `name`, like the built-in ones.
"""

import importlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.kinds import Kind
from skysail.api.ports import Clock
from skysail.controller.recorder import EventRecorder, NoRecorder
from skysail.informer.factory import InformerFactory
from skysail.informer.keys import Key
from skysail.informer.lister import Lister as InformerLister
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.config.defaults import EXTENSION_POINTS
from skysail.scheduler.config.resolve import ExtensionPoints, ResolvedProfile, beside_extenders
from skysail.scheduler.config.types import POINTS, Extender
from skysail.scheduler.extender_view import ExtenderView, views
from skysail.scheduler.extenders.chain import EXTENDER
from skysail.scheduler.framework.containment import PluginFailed, contained
from skysail.scheduler.framework.events import ClusterEventWithHint, all_events
from skysail.scheduler.framework.handle import Binder, Lister, ObjectWriter, WaitingPod
from skysail.scheduler.framework.plugin import EnqueueExtensions, Plugin, PreEnqueue
from skysail.scheduler.framework.runner import Framework, pre_enqueue
from skysail.scheduler.plugins.args import NoArgs
from skysail.scheduler.queue.gates import GateCheck, QueueProfile
from skysail.scheduler.queue.hints import HintAsked, HintFailed, HintMap
from skysail.scheduler.queue.nominator import Nominator
from skysail.scheduler.registry import REGISTRY
from skysail.scheduler.waiting_pods import WaitingPods

T = TypeVar("T")

ENTRY_POINT_GROUP: Final = "skysail.plugins"
PluginFactories = Mapping[str, Callable[..., Any]]

_METHODS: Final = {
    "pre_enqueue": ("pre_enqueue",), "queue_sort": ("sort_key",), "pre_filter": ("pre_filter",),
    "filter": ("filter", "filter_rows"), "post_filter": ("post_filter",), "pre_score": ("pre_score",),
    "score": ("score", "score_rows"), "reserve": ("reserve",), "permit": ("permit",), "pre_bind": ("pre_bind",),
    "bind": ("bind",), "post_bind": ("post_bind",),
}  # fmt: skip
_WAKEABLE: Final = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")
"""Points whose refusals wait for an event; plugins of other points need not say which."""


def plugin_factories(specs: Iterable[str | type[Plugin]] = ()) -> PluginFactories:
    """All plugins there are: the built-in ones, those of installed packages, those given.

    Args:
        specs: Classes, themselves or as `module:Class`.

    Raises:
        ConfigError: A spec cannot be loaded, is no plugin, or two plugins have one name.
    """
    factories: dict[str, Callable[..., Any]] = dict(REGISTRY)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        _add(factories, _loaded(entry.value), f"entry point {entry.name}")
    for spec in specs:
        _add(factories, _loaded(spec), f"--plugin {spec}")
    return factories


def _loaded(spec: str | type[Plugin]) -> Callable[..., Any]:
    found = _imported(spec) if isinstance(spec, str) else spec
    if not callable(found) or not isinstance(getattr(found, "name", None), str):
        raise ConfigError(f"{spec!r} is no plugin: a class with a `name` is wanted", path="--plugin")
    return found


def _imported(spec: str) -> Any:
    module_name, _, class_name = spec.partition(":")
    if not class_name:
        raise ConfigError(f"{spec!r}: a plugin is given as module:Class", path="--plugin")
    try:
        return getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{spec!r} cannot be loaded: {error}", path="--plugin") from error


def _add(factories: dict[str, Callable[..., Any]], factory: Callable[..., Any], source: str) -> None:
    name = str(getattr(factory, "name", ""))
    if name in factories and factories[name] is not factory:
        raise ConfigError(f"a plugin named {name} exists already", path=source)
    factories[name] = factory


def extension_points(factories: PluginFactories) -> ExtensionPoints:
    """Which points each plugin extends: by the table for in-tree ones, by its methods for others."""
    return {
        name: EXTENSION_POINTS.get(name) or frozenset(
            point for point, methods in _METHODS.items() if any(hasattr(factory, method) for method in methods)
        )
        for name, factory in factories.items()
    }  # fmt: skip


class HandleLister(Lister[T]):
    """An informer's lister in the form the framework's handle promises."""

    def __init__(self, lister: InformerLister[T]) -> None:
        self._lister = lister

    def get(self, namespace: str, name: str) -> T | None:
        """One object; `namespace` is empty for cluster-scoped kinds."""
        return self._lister.get(Key(namespace, name))

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """All objects, or those of one namespace."""
        return self._lister.list(namespace or "")

    def indexed(self, name: str, values: Callable[[T], Iterable[str]]) -> Callable[[str], Sequence[T]]:
        """How to find objects by the values that a function gives: the informer keeps an index of them."""
        self._lister.indexer.add_indexes({name: values})
        return lambda value: self._lister.by_index(name, value)


class SchedulerHandle:
    """What plugins are lent (see `skysail.scheduler.framework.handle.Handle`)."""

    def __init__(
        self,
        *,
        feature_gates: Mapping[str, bool],
        clock: Clock,
        rng: random.Random,
        binder: Binder,
        writer: ObjectWriter | None,
        snapshot: Snapshot,
        informers: InformerFactory,
        waiting: WaitingPods,
        extenders: Iterable[Extender] = (),
    ) -> None:
        self._extenders = views(extenders)
        self._gates, self._clock, self._rng = feature_gates, clock, rng
        self._binder, self._writer, self._snapshot = binder, writer, snapshot
        self._informers, self._waiting = informers, waiting
        self._nominator = Nominator()
        self._activate: Callable[[Iterable[Pod]], None] = lambda pods: None
        self._last_seen: Callable[[Pod], Pod | None] = lambda pod: pod
        self._recorder: Callable[[Pod], EventRecorder] = lambda pod: NoRecorder()
        self.kinds: list[Kind[Any]] = []
        """Kinds that plugins asked for, whose informers must be synced before the first attempt."""

    def attach(
        self,
        nominator: Nominator,
        activate: Callable[[Iterable[Pod]], None],
        last_seen: Callable[[Pod], Pod | None] = lambda pod: pod,
        recorder: Callable[[Pod], EventRecorder] = lambda pod: NoRecorder(),
    ) -> None:
        """Name the queue, the pods' informer and the recorders, which are made after the plugins."""
        self._nominator, self._activate, self._last_seen = nominator, activate, last_seen
        self._recorder = recorder

    @property
    def feature_gates(self) -> Mapping[str, bool]:
        """Upstream's names, with 1.36's defaults where nothing was set."""
        return self._gates

    @property
    def clock(self) -> Clock:
        """Time."""
        return self._clock

    @property
    def rng(self) -> random.Random:
        """Dice."""
        return self._rng

    @property
    def nominations(self) -> Nominator:
        """Who was promised which node."""
        return self._nominator

    @property
    def binder(self) -> Binder:
        """Writes bindings."""
        return self._binder

    @property
    def writer(self) -> ObjectWriter | None:
        """Writes other objects before a pod is bound; None in a dry run."""
        return self._writer

    def last_seen(self, pod: Pod) -> Pod | None:
        """A pod as last seen; None when it is gone."""
        return self._last_seen(pod)

    def snapshot(self) -> Snapshot:
        """The cluster as this attempt sees it."""
        return self._snapshot

    def lister(self, kind: Kind[T]) -> HandleLister[T]:
        """Objects of a kind; its informer is started with the scheduler."""
        self.kinds.append(kind)
        return HandleLister(self._informers.lister(kind))

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """Pods held by Permit."""
        return self._waiting

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """One of them."""
        return self._waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        """Send a held pod back to the queue; False when it is not held."""
        return self._waiting.reject(uid)

    @property
    def extenders(self) -> Sequence[ExtenderView]:
        """The configured extenders, in the order in which they are asked."""
        return self._extenders

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move sleeping pods to the active queue."""
        self._activate(pods)

    def event(self, pod: Pod, event_type: str, reason: str, message: str, *, action: str = "Scheduling") -> None:
        """Tell people about a pod, in the name of its scheduler."""
        self._recorder(pod).event(pod, event_type, reason, message, action=action)


@dataclass(frozen=True)
class Profile:
    """One profile, ready to run.

    Attributes:
        resolved: What was configured.
        framework: Its plugins at their points.
        registrations: What each plugin wants to be woken by.
    """

    resolved: ResolvedProfile
    framework: Framework
    registrations: Mapping[str, Sequence[ClusterEventWithHint]]

    @property
    def name(self) -> str:
        """Its scheduler name."""
        return self.resolved.scheduler_name

    def queue_profile(self, on_failure: HintFailed, on_asked: HintAsked, now: Callable[[], float]) -> QueueProfile:
        """What the queue must know of it; arguments as of `HintMap`."""
        return QueueProfile(
            gates=[(plugin.name, _gate(plugin)) for plugin in self.framework.pre_enqueue],
            hints=HintMap(self.registrations, on_failure, on_asked, now),
        )


def make_profile(
    resolved: ResolvedProfile,
    factories: PluginFactories,
    handle: SchedulerHandle,
    made: Callable[[Plugin, str, str], None] = lambda plugin, name, profile: None,
    extenders: Sequence[Extender] = (),
) -> Profile:
    """Make the plugins of a profile.

    Args:
        resolved: Which plugins, where.
        factories: How to make each.
        handle: What they get.
        made: Told of each plugin made, with its name and its profile's.
        extenders: Beside which it runs: a pod that they refused is woken by everything.

    Raises:
        ConfigError: A plugin cannot be made.
    """
    resolved = beside_extenders(resolved, extenders)
    plugins: dict[str, Plugin] = {}
    for name in resolved.names:
        try:
            plugins[name] = contained(
                name, f'initializing plugin "{name}"', factories[name], resolved.args.get(name, NoArgs()), handle
            )
        except PluginFailed as failure:
            raise ConfigError(str(failure), path=f"profile {resolved.scheduler_name}") from failure
        made(plugins[name], name, resolved.scheduler_name)
    points = {point: [plugins[name] for name in resolved.plugins.get(point, ())] for point in POINTS}
    try:
        framework = Framework(resolved.scheduler_name, points, resolved.weights)
    except TypeError as error:
        raise ConfigError(str(error), path=f"profile {resolved.scheduler_name}") from error
    registrations = _registrations(resolved, plugins)
    if extenders:
        registrations[EXTENDER] = all_events()
    return Profile(resolved, framework, registrations)


def _registrations(
    resolved: ResolvedProfile, plugins: Mapping[str, Plugin]
) -> dict[str, Sequence[ClusterEventWithHint]]:
    registrations: dict[str, Sequence[ClusterEventWithHint]] = {}
    for name, plugin in plugins.items():
        if any(name in resolved.plugins.get(point, ()) for point in _WAKEABLE):
            registrations[name] = _wanted(name, plugin)
    return registrations


def _wanted(name: str, plugin: Plugin) -> Sequence[ClusterEventWithHint]:
    """What a plugin registers for; everything when it does not say.

    Raises:
        ConfigError: It raised, or answered something else.
    """
    if not isinstance(plugin, EnqueueExtensions):
        return all_events()
    try:
        rows = tuple(contained(name, f'events of plugin "{name}"', plugin.events_to_register))
    except (PluginFailed, TypeError) as failure:
        raise ConfigError(str(failure), path="events_to_register") from failure
    for row in rows:
        if not isinstance(row, ClusterEventWithHint):
            raise ConfigError(
                f"plugin {name} answered {row!r}; a ClusterEventWithHint is wanted", path="events_to_register"
            )
    return rows


def _gate(plugin: PreEnqueue) -> GateCheck:
    def check(pod: Pod) -> str | None:
        try:
            status = pre_enqueue(plugin, pod)
        except PluginFailed as failure:
            return str(failure)
        return None if status.is_success else status.message

    return check
