"""One informer per scope, shared by all who ask, ended when the last of them lets go."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from prometheus_client import CollectorRegistry

from skysail.api.core import Pod
from skysail.api.kinds import Kind, kind_of
from skysail.api.node import Node
from skysail.api.ports import Clock
from skysail.informer.backoff import Rng
from skysail.informer.lister import Lister
from skysail.informer.metrics import InformerMetrics
from skysail.informer.patience import ReflectorSettings
from skysail.informer.shared_informer import SharedInformer
from skysail.informer.source import ClientSource, ReadingClient, Scope

T = TypeVar("T")


class _Shared(Generic[T]):
    """An informer, how many use it, and the task that runs it."""

    def __init__(self, informer: SharedInformer[T]) -> None:
        self.informer = informer
        self.users = 0
        self.task: asyncio.Task[None] | None = None


class InformerFactory:
    """Shares informers by scope (kind, namespace, selectors).

    >>> async def main(client, clock, rng):
    ...     async with InformerFactory(client, clock=clock, rng=rng) as informers:
    ...         pods = informers.pods()
    ...         await informers.wait_for_sync()
    ...         return pods.lister.list(namespace="default")

    Args:
        client: Lists and watches.
        clock: Must follow the event loop's time.
        rng: Spreads time-outs and waits.
        resync_seconds: Default resync period of handlers; 0 for none.
        settings: The reflectors' patience.
        registry: Where metrics are registered; none by default.
    """

    def __init__(
        self,
        client: ReadingClient,
        *,
        clock: Clock,
        rng: Rng,
        resync_seconds: float = 0.0,
        settings: ReflectorSettings | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._client, self._clock, self._rng = client, clock, rng
        self._resync, self._settings = resync_seconds, settings
        self._metrics = InformerMetrics(registry) if registry is not None else None
        self._shared: dict[Scope[Any], _Shared[Any]] = {}
        self._group: asyncio.TaskGroup | None = None

    def informer(
        self,
        kind: type[T] | Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> SharedInformer[T]:
        """The informer of a scope; the same one for everybody. Counts as one user until `release`.

        Args:
            kind: A built-in Struct (`Pod`) or a kind descriptor.
            namespace: One namespace, or all when empty.
            label_selector: In wire form.
            field_selector: In wire form.
        """
        descriptor = kind if isinstance(kind, Kind) else kind_of(kind)
        scope = Scope(descriptor, namespace, label_selector, field_selector)
        shared = self._shared.get(scope)
        if shared is None:
            shared = self._shared[scope] = _Shared(self._make(scope))
            if self._group is not None:
                shared.task = self._group.create_task(shared.informer.run())
        shared.users += 1
        return cast(SharedInformer[T], shared.informer)

    def lister(self, kind: type[T] | Kind[T], namespace: str = "") -> Lister[T]:
        """The lister of a kind's informer; counts as one user."""
        return self.informer(kind, namespace).lister

    def pods(self, namespace: str = "") -> SharedInformer[Pod]:
        """The informer of pods."""
        return self.informer(Pod, namespace)

    def nodes(self) -> SharedInformer[Node]:
        """The informer of nodes."""
        return self.informer(Node)

    def release(self, informer: SharedInformer[Any]) -> None:
        """One user less; the last one stops the informer, and the next who asks gets a new one."""
        for scope, shared in self._shared.items():
            if shared.informer is informer:
                shared.users -= 1
                if shared.users <= 0:
                    del self._shared[scope]
                    if shared.task is not None:
                        shared.task.cancel()
                return

    def informers(self) -> dict[str, SharedInformer[Any]]:
        """All informers by the text of their scope."""
        return {str(scope): shared.informer for scope, shared in self._shared.items()}

    async def wait_for_sync(self) -> None:
        """Wait until every informer asked for so far holds its first list."""
        for shared in list(self._shared.values()):
            await shared.informer.wait_synced()

    async def run(self, started: Callable[[], None] | None = None) -> None:
        """Run all informers, those asked for later too, until cancelled.

        Args:
            started: Called once the informers asked for so far have been started.
        """
        try:
            async with asyncio.TaskGroup() as group:
                self._start(group)
                if started is not None:
                    started()
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None

    async def __aenter__(self) -> "InformerFactory":
        self._owned_group = asyncio.TaskGroup()
        self._start(await self._owned_group.__aenter__())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._group = None
        for shared in self._shared.values():
            if shared.task is not None:
                shared.task.cancel()
        await self._owned_group.__aexit__(kind, error, traceback)

    def _start(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        for shared in self._shared.values():
            if shared.task is None:
                shared.task = group.create_task(shared.informer.run())

    def _make(self, scope: Scope[T]) -> SharedInformer[T]:
        return SharedInformer(
            ClientSource(self._client, scope),
            clock=self._clock,
            rng=self._rng,
            name=str(scope),
            resync_seconds=self._resync,
            settings=self._settings,
            metrics=self._metrics.for_scope(str(scope)) if self._metrics is not None else None,
        )
