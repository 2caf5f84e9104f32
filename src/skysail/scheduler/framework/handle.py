"""What the scheduler lends its plugins.

Plugins get the handle when they are made. The pure parts (snapshot, listers, nominations, gates) exist everywhere, in a
test as in `skysail explain`; the shell's parts (client, waiting pods, activate) only where a scheduler runs.

    upstream's Handle                          here
    SnapshotSharedLister                       snapshot
    SharedInformerFactory, ...Manager          lister
    PodNominator                               nominations
    PodActivator                               activate
    Iterate..., Get..., RejectWaitingPod       waiting_pods, waiting_pod, reject_waiting_pod
    ClientSet, KubeConfig, APIDispatcher       writer, binder
    EventRecorder                              event
    Extenders                                  extenders
    PluginsRunner, RunFilterPluginsWith...,    the profile itself: a plugin with `use_framework` is given it
    SignPod, ProfileName
    Parallelizer                               none: a table plugin answers for all nodes in one call

Source: k8s.io/kube-scheduler/framework/interface.go `Handle`, v1.36.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from skysail.api.core import Pod
from skysail.api.kinds import Kind
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Lister(Protocol[T_co]):
    """Objects of one kind, as last seen. Reads memory, never the network."""

    def get(self, namespace: str, name: str) -> T_co | None:
        """One object; `namespace` is empty for cluster-scoped kinds."""
        ...

    def list(self, namespace: str | None = None) -> Sequence[T_co]:
        """All objects, or those of one namespace, in a repeatable order."""
        ...

    def indexed(self, name: str, values: Callable[[T_co], Iterable[str]]) -> Callable[[str], Sequence[T_co]]:
        """How to find objects by the values that a function gives. Ask when you are made.

        Args:
            name: Of the index; the same name always goes with the same function.
            values: Gives the values under which an object is found.

        Cost: Without an informer behind it, a walk over all objects at each look.
        """
        return lambda value: [each for each in self.list() if value in values(each)]


class Nominations(Protocol):
    """Who was promised which node (`skysail.scheduler.queue.nominator` is one)."""

    version: int

    def pods_for_node(self, node_name: str) -> Sequence[Pod]:
        """The pods nominated to a node."""
        ...

    def node_of(self, pod: Pod) -> str:
        """Where a pod is nominated to, or empty."""
        ...

    @property
    def by_node(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """All nominations, by node name and uid."""
        ...


class WaitingPod(Protocol):
    """A pod held by Permit."""

    @property
    def pod(self) -> Pod:
        """Which."""
        ...

    @property
    def pending_plugins(self) -> Sequence[str]:
        """Who holds it."""
        ...

    def allow(self, plugin: str) -> None:
        """One plugin lets it go; it is bound when all have."""
        ...

    def reject(self, plugin: str, message: str) -> bool:
        """Send it back to the queue; False when somebody was faster."""
        ...


class PluginExtender(Protocol):
    """An extender, as a plugin may know it (`skysail.scheduler.extender_view` is one, and can be asked)."""

    @property
    def name(self) -> str:
        """Its `urlPrefix`."""
        ...

    @property
    def is_ignorable(self) -> bool:
        """Whether an attempt goes on when it fails."""
        ...

    @property
    def is_filter(self) -> bool:
        """Whether it filters."""
        ...

    @property
    def is_prioritizer(self) -> bool:
        """Whether it scores."""
        ...

    @property
    def is_binder(self) -> bool:
        """Whether it binds."""
        ...

    @property
    def supports_preemption(self) -> bool:
        """Whether it has a say in preemption."""
        ...

    def is_interested(self, pod: Pod) -> bool:
        """Whether it is asked about this pod."""
        ...


class Binder(Protocol):
    """What DefaultBinder needs of a client."""

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Write the binding.

        Raises:
            ApiError: The server refused.
            Unreachable: No answer.
        """
        ...


class ObjectWriter(Protocol):
    """What PreBind needs of a client. Every method may raise ApiError or Unreachable."""

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """Read an object from the API server."""
        ...

    async def create(self, kind: Kind[T], obj: T | Raw, namespace: str = "") -> T:
        """Create an object; the object as stored."""
        ...

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", *, uid: str = "") -> None:
        """Delete an object, with `uid` only that very one."""
        ...

    async def patch(self, kind: Kind[T], name: str, namespace: str, patch: object, *, subresource: str = "") -> T:
        """Change part of an object (a merge patch); the object as stored.

        Raises:
            Conflict: The patch names a resourceVersion or uid that is not the object's.
            ApiError: The server refused.
            Unreachable: No answer.
        """
        ...


class Handle(Protocol):
    """The scheduler, as a plugin may use it."""

    @property
    def feature_gates(self) -> Mapping[str, bool]:
        """Upstream's names, with 1.36's defaults where nothing was set."""
        ...

    @property
    def clock(self) -> Clock:
        """Time."""
        ...

    @property
    def rng(self) -> random.Random:
        """Dice."""
        ...

    @property
    def nominations(self) -> Nominations:
        """Who was promised which node."""
        ...

    @property
    def binder(self) -> Binder:
        """Writes bindings."""
        ...

    @property
    def writer(self) -> ObjectWriter | None:
        """Writes other objects before a pod is bound; None where nothing may be written."""
        ...

    def last_seen(self, pod: Pod) -> Pod | None:
        """A pod as last seen, whatever an attempt assumes of it; None when it is gone."""
        ...

    def snapshot(self) -> Snapshot:
        """The cluster as this attempt sees it."""
        ...

    def lister(self, kind: Kind[T]) -> Lister[T]:
        """Objects of a kind. Ask when you are made: the scheduler then starts the informer."""
        ...

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """Pods held by Permit."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """One of them."""
        ...

    def reject_waiting_pod(self, uid: str) -> bool:
        """Send a pod that Permit holds back to the queue, in nobody's name; False when it is not held."""
        ...

    @property
    def extenders(self) -> Sequence[PluginExtender]:
        """The configured extenders, in the order in which they are asked."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move sleeping pods to the active queue."""
        ...

    def event(self, pod: Pod, event_type: str, reason: str, message: str, *, action: str = "Scheduling") -> None:
        """Tell people about a pod.

        Args:
            pod: About whom.
            event_type: `Normal` or `Warning`.
            reason: One word in CamelCase.
            message: A sentence.
            action: What was being done.
        """
        ...
