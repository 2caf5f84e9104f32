"""A cluster made of objects, for decisions outside a running scheduler: `skysail explain`, tests, what-ifs.

Everything is in memory and nothing changes by itself.
"""

import gzip
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.kinds import KINDS, NODES, PODS, Kind
from skysail.api.raw import Raw
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.config.decode import from_document
from skysail.scheduler.config.defaults import EXTENSION_POINTS
from skysail.scheduler.config.resolve import ExtensionPoints, ResolvedProfile, beside_extenders, resolve
from skysail.scheduler.config.types import POINTS, Extender, KubeSchedulerConfiguration
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.framework.handle import Binder, Lister, WaitingPod
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.plugins.args import NoArgs
from skysail.scheduler.queue.nominator import Nominator
from skysail.scheduler.registry import REGISTRY

T = TypeVar("T")

FINISHED = ("Succeeded", "Failed")
DEFAULT_SCHEDULER = "default-scheduler"

_KINDS: Mapping[tuple[str, str], Kind[Any]] = {(kind.api_version, kind.name): kind for kind in KINDS}


class ObjectLister(Lister[T]):
    """Objects of one kind out of a list, in its order."""

    def __init__(self, objects: Sequence[T], keys: Sequence[tuple[str, str]]) -> None:
        self._objects = tuple(objects)
        self._by_key = dict(zip(keys, objects, strict=True))
        self._namespaces = [namespace for namespace, _ in keys]

    def get(self, namespace: str, name: str) -> T | None:
        """One object."""
        return self._by_key.get((namespace, name))

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """All objects, or those of one namespace."""
        if namespace is None or not self._objects:
            return self._objects
        return [each for each, place in zip(self._objects, self._namespaces, strict=True) if place == namespace]

    def indexed(self, name: str, values: Callable[[T], Iterable[str]]) -> Callable[[str], Sequence[T]]:
        """How to find objects by the values that a function gives."""
        found: dict[str, list[T]] = {}
        for each in self._objects:
            for value in values(each):
                found.setdefault(value, []).append(each)
        return lambda value: found.get(value, ())


class StillClock:
    """Time that stands still."""

    def monotonic(self) -> float:
        """Zero."""
        return 0.0

    def now(self) -> datetime:
        """A fixed day."""
        return datetime(2026, 1, 1, tzinfo=UTC)


class RefusingBinder:
    """Nothing is bound here."""

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Refuse."""
        raise ConfigError("a scenario binds no pods")


@dataclass
class World:
    """The cluster, and the handle its plugins get.

    Attributes:
        objects: By kind, in the order given.
        gates: Feature gates.
        cache: Nodes and assigned pods.
        current: The snapshot.
        nominator: Pending pods that were promised a node.
    """

    objects: Mapping[str, Sequence[Any]]
    gates: Mapping[str, bool]
    cache: ClusterCache = field(default_factory=ClusterCache)
    current: Snapshot = field(default_factory=Snapshot)
    nominator: Nominator = field(default_factory=Nominator)
    still_clock: StillClock = field(default_factory=StillClock)
    dice: random.Random = field(default_factory=lambda: random.Random(0))

    @property
    def feature_gates(self) -> Mapping[str, bool]:
        """The gates."""
        return self.gates

    @property
    def clock(self) -> StillClock:
        """Time."""
        return self.still_clock

    @property
    def rng(self) -> random.Random:
        """Dice."""
        return self.dice

    @property
    def nominations(self) -> Nominator:
        """Who was promised which node."""
        return self.nominator

    @property
    def binder(self) -> Binder:
        """Binds nothing."""
        return RefusingBinder()

    @property
    def writer(self) -> None:
        """Nothing is written here."""
        return None

    def last_seen(self, pod: Pod) -> Pod | None:
        """The pod."""
        return pod

    def snapshot(self) -> Snapshot:
        """The cluster."""
        return self.current

    def lister(self, kind: Kind[T]) -> ObjectLister[T]:
        """Objects of a kind."""
        found = self.objects.get(kind.resource, ())
        return ObjectLister(found, [(each.metadata.namespace, each.metadata.name) for each in found])

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """None."""
        return ()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """None."""
        return None

    def reject_waiting_pod(self, uid: str) -> bool:
        """Nobody waits."""
        return False

    @property
    def extenders(self) -> tuple[()]:
        """None."""
        return ()

    def activate(self, pods: Iterable[Pod]) -> None:
        """There is no queue."""

    def event(self, pod: Pod, event_type: str, reason: str, message: str, *, action: str = "Scheduling") -> None:
        """Nobody is told."""


def load_scenarios(path: Path) -> list[Raw]:
    """Read a scenario file, plain or gzip'd.

    Raises:
        ConfigError: It cannot be read, or is no list of scenarios.
    """
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        scenarios: list[Raw] = msgspec.json.decode(data, type=list[dict[str, Any]])
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise ConfigError(f"cannot be read as a list of scenarios: {error}", file=str(path)) from error
    for index, scenario in enumerate(scenarios):
        if "id" not in scenario or "objects" not in scenario:
            raise ConfigError("a scenario needs `id` and `objects`", file=str(path), path=f"[{index}]")
    return scenarios


def decode_object(raw: Raw) -> tuple[Kind[Any], Any] | None:
    """A manifest as its Struct; None for kinds that scheduling does not read.

    Raises:
        ConfigError: It does not have the shape of its kind.
    """
    kind = _KINDS.get((raw.get("apiVersion", ""), raw.get("kind", "")))
    if kind is None:
        return None
    try:
        return kind, msgspec.json.decode(msgspec.json.encode(raw), type=kind.struct)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error), path=f"{raw.get('kind')} {raw.get('metadata', {}).get('name')}") from error


def build_world(manifests: Iterable[Raw], gates: Mapping[str, bool]) -> World:
    """A cluster out of manifests: nodes, assigned pods, nominations, everything else in listers.

    Raises:
        ConfigError: A manifest does not have the shape of its kind.
    """
    objects: dict[str, list[Any]] = {}
    for raw in manifests:
        decoded = decode_object(raw)
        if decoded is not None:
            objects.setdefault(decoded[0].resource, []).append(decoded[1])
    world = World(objects, feature_gates(gates))
    for node in objects.get(NODES.resource, ()):
        world.cache.add_node(node)
    for pod in objects.get(PODS.resource, ()):
        if pod.status.phase in FINISHED:
            continue
        if pod.spec.node_name:
            world.cache.add_pod(pod)
        else:
            world.nominator.add(pod)
    world.cache.update_snapshot(world.current)
    return world


def resolve_profiles(
    config: Raw | None, gates: Mapping[str, bool], points: ExtensionPoints = EXTENSION_POINTS
) -> tuple[ResolvedProfile, ...]:
    """The profiles of a configuration, by default as if every in-tree plugin were built.

    Raises:
        ConfigError: The configuration is wrong.
    """
    source = KubeSchedulerConfiguration() if config is None else from_document(config)
    resolved = resolve(source, gates, points)
    return tuple(beside_extenders(profile, resolved.source.extenders) for profile in resolved.profiles)


def configured_extenders(config: Raw | None) -> tuple[Extender, ...]:
    """The extenders of a configuration.

    Raises:
        ConfigError: The configuration is wrong.
    """
    return () if config is None else from_document(config).extenders


def build_framework(
    profile: ResolvedProfile, world: World, factories: Mapping[str, Callable[..., Any]] = REGISTRY
) -> Framework:
    """The plugins of a profile that exist, at their points."""
    names = [name for name in profile.names if name in factories]
    plugins = {name: _make(factories[name], name, profile, world) for name in names}
    points = {point: [plugins[name] for name in profile.plugins.get(point, ()) if name in plugins] for point in POINTS}
    return Framework(profile.scheduler_name, points, profile.weights)


def _make(factory: Callable[..., Any], name: str, profile: ResolvedProfile, world: World) -> Any:
    return factory(profile.args.get(name, NoArgs()), world)
