"""How to write a controller: say what it watches, and how to bring one object closer to what is wanted.

    class ReplicaSetController(Controller):
        watches = (For(ReplicaSet), Owns(Pod))

        async def reconcile(self, key: Key) -> Result | None:
            wanted = self.lister(ReplicaSet).get(key)
            ...

`reconcile` is called with the key of an object, whatever happened to it; it reads the present state from listers and
acts. It must be idempotent: it runs again after a restart, after an error, after any change. Never do two workers
reconcile one key at a time.

| `reconcile`                     | the key                                                                   |
| ------------------------------- | ------------------------------------------------------------------------- |
| returns None or `Result()`      | is forgotten until something changes                                      |
| returns `Result(requeue_after)` | runs again then, or earlier if something changes                          |
| raises `Conflict`               | runs again, soon and quietly: the cache was behind                        |
| raises `TerminalError`          | is reported and forgotten: trying again cannot help                       |
| raises, as its namespace goes   | is forgotten quietly: what may not be made there any more is not needed   |
| raises anything else            | is reported and runs again after 5 ms, 10 ms, 20 ms, ... up to 1000 s      |
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, TypeVar

from skysail.api.errors import InvariantBroken, SkysailError
from skysail.api.kinds import Kind, kind_of
from skysail.api.meta import ApiObject
from skysail.api.ports import Clock
from skysail.client.api_client import ApiClient
from skysail.controller.recorder import EventRecorder
from skysail.controller.watches import For, Watch, WatchHandler
from skysail.informer.factory import InformerFactory
from skysail.informer.keys import Key
from skysail.informer.listener import Listener
from skysail.informer.lister import Lister
from skysail.informer.shared_informer import SharedInformer
from skysail.workqueue.async_queue import AsyncWorkQueue

T = TypeVar("T")


class TerminalError(SkysailError):
    """Raise from `reconcile` when trying again cannot help."""


@dataclass(frozen=True, slots=True)
class Result:
    """What should happen to a key after a reconcile that succeeded.

    Attributes:
        requeue_after: Seconds until it should run again; None for not at all.
    """

    requeue_after: float | None = None


@dataclass(frozen=True)
class Runtime:
    """What a manager gives to its controllers.

    Attributes:
        client: Reads from and writes to the server.
        informers: Shared caches.
        recorder: Writes Events in the controller's name.
        clock: The only source of time.
        rng: The only source of chance.
        queue: The controller's work queue.
    """

    client: ApiClient
    informers: InformerFactory
    recorder: EventRecorder
    clock: Clock
    rng: Random
    queue: AsyncWorkQueue[Key]


class Controller(ABC):
    """The base of every controller; see the module.

    Attributes:
        name: In logs, metrics and Events; made from the class's name when empty.
        workers: How many keys are worked on at a time.
        watches: What wakes it. A tuple on the class, or a property where a map needs the instance.
    """

    name: ClassVar[str] = ""
    workers: ClassVar[int] = 1
    _runtime: Runtime | None = None
    _working = False

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """What wakes this controller."""
        return ()

    @abstractmethod
    async def reconcile(self, key: Key) -> Result | None:
        """Bring one object closer to what is wanted."""

    def setup(self) -> None:  # noqa: B027  (a hook, empty on purpose)
        """Called once, before anything runs: ask for further listers, add indexes and handlers."""

    async def run_beside(self) -> None:  # noqa: B027  (a hook, empty on purpose)
        """Runs beside the workers, from when caches are synced until the controller stops; for periodic work."""

    @classmethod
    def display_name(cls) -> str:
        """`name`, or the class's name in lower case without "Controller"."""
        return cls.name or cls.__name__.removesuffix("Controller").lower() or cls.__name__.lower()

    # What the manager gives

    @property
    def runtime(self) -> Runtime:
        """What the manager gave.

        Raises:
            InvariantBroken: The controller was not added to a manager.
        """
        if self._runtime is None:
            raise InvariantBroken(f"{type(self).__name__} is not part of a Manager yet")
        return self._runtime

    @property
    def client(self) -> ApiClient:
        """Reads from and writes to the server. For reads prefer `lister`."""
        return self.runtime.client

    @property
    def recorder(self) -> EventRecorder:
        """Writes Events in this controller's name."""
        return self.runtime.recorder

    @property
    def clock(self) -> Clock:
        """The only source of time."""
        return self.runtime.clock

    @property
    def rng(self) -> Random:
        """The only source of chance."""
        return self.runtime.rng

    @property
    def queue(self) -> AsyncWorkQueue[Key]:
        """The keys that wait."""
        return self.runtime.queue

    def informer(self, kind: type[T] | Kind[T]) -> SharedInformer[T]:
        """The cache of a kind: that of the first watch that names the kind, else one of all its objects.

        Raises:
            InvariantBroken: The controller works already, and neither a watch nor `setup` has asked for that kind: its
                cache would be empty, and a decision made on it wrong.
        """
        descriptor = kind if isinstance(kind, Kind) else kind_of(kind)
        informer = self._informers.get(descriptor)
        if informer is None:
            if self._working:
                raise InvariantBroken(
                    f"{type(self).__name__} asks for the cache of {descriptor.resource} while it works: "
                    "name the kind in a watch, or ask for it in setup()"
                )
            informer = self._informers[descriptor] = self.runtime.informers.informer(descriptor)
        return informer

    def lister(self, kind: type[T] | Kind[T]) -> Lister[T]:
        """Reads a kind from the shared cache; frozen objects, no waiting."""
        return self.informer(kind).lister

    def enqueue(self, key: Key, after_seconds: float = 0.0, priority: int = 0) -> None:
        """Have a key reconciled, now or later."""
        self.queue.add_after(key, after_seconds, priority) if after_seconds > 0 else self.queue.add(key, priority)

    async def wait_cached(self, written: ApiObject, timeout_seconds: float = 5.0) -> bool:
        """Wait until the cache shows an object at least as new as one that was just written.

        For the few places that must read their own writes; everything else is woken by the change anyway.

        Args:
            written: What a write gave back.
            timeout_seconds: How long to wait.

        Returns:
            Whether the cache got there in time.
        """
        informer = self.informer(type(written))
        try:
            async with asyncio.timeout(timeout_seconds):
                await informer.wait_for_version(written.metadata.resource_version)
        except TimeoutError:
            return False
        return True

    def bind(self, runtime: Runtime) -> None:
        """Called by the manager: take the runtime, hook up the watches, call `setup`."""
        self._runtime = runtime
        self._informers: dict[Kind[Any], SharedInformer[Any]] = {}
        self._listeners: list[Listener[Any]] = []
        watches = tuple(self.watches)
        root = next((watch.descriptor for watch in watches if isinstance(watch, For)), None)
        for watch in watches:
            self._hook_up(watch, root)
        self.setup()

    async def wait_synced(self) -> None:
        """Wait until every cache is filled and every watch of the first lists has been heard."""
        for listener in self._listeners:
            await listener.wait_synced()
        for informer in self._informers.values():
            await informer.wait_synced()
        self._working = True

    def _hook_up(self, watch: Watch[Any], root: Kind[Any] | None) -> None:
        informer = self.runtime.informers.informer(
            watch.descriptor,
            watch.namespace,
            label_selector=watch.label_selector,
            field_selector=watch.field_selector,
        )
        self._informers.setdefault(watch.descriptor, informer)
        handler = WatchHandler(watch, root, self.queue.add)
        self._listeners.append(informer.add_handler(handler, name=self.display_name()))
