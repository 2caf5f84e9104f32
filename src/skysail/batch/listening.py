"""Which informers somebody listens to, and how to listen to one no longer."""

from collections.abc import Callable
from typing import Any

from skysail.api.kinds import Kind
from skysail.informer.factory import InformerFactory
from skysail.informer.handlers import Handlers
from skysail.informer.listener import Listener
from skysail.informer.shared_informer import SharedInformer


class Listening:
    """The informers somebody listens to.

    Args:
        informers: The factory, shared with others or own.
        submit: Makes a change, at once or when it may be made: every handler is called through it.
    """

    def __init__(self, informers: InformerFactory, submit: Callable[[Callable[[], None]], None]) -> None:
        self._informers, self._submit = informers, submit
        self._listeners: list[tuple[SharedInformer[Any], Listener[Any]]] = []
        self._attached: dict[str, SharedInformer[Any]] = {}

    def close(self) -> None:
        """Listen no longer; informers nobody else uses end."""
        for informer, listener in self._listeners:
            informer.remove_handler(listener)
            self._informers.release(informer)
        self._listeners.clear()

    def _attach(self, kind: Kind[Any], handlers: Handlers[Any]) -> None:
        informer = self._attached[kind.resource] = self._informers.informer(kind)
        self._listen(informer, handlers)

    def _detach(self, kind: Kind[Any]) -> None:
        self._leave(self._attached.pop(kind.resource))

    def _leave(self, informer: SharedInformer[Any]) -> None:
        """Listen to an informer no longer."""
        for each in [each for each in self._listeners if each[0] is informer]:
            self._listeners.remove(each)
            informer.remove_handler(each[1])
            self._informers.release(informer)

    def _listen(self, informer: SharedInformer[Any], handlers: Handlers[Any]) -> None:
        submitted = _submitted(handlers, self._submit)
        self._listeners.append((informer, informer.add_handler(submitted, resync_seconds=0, name="batch")))

    async def _wait_told(self) -> None:
        for _, listener in self._listeners:
            await listener.wait_synced()


def _submitted(handlers: Handlers[Any], submit: Callable[[Callable[[], None]], None]) -> Handlers[Any]:
    """The same handlers, told when the world may change."""

    def later(handler: Callable[..., Any] | None) -> Callable[..., None] | None:
        return None if handler is None else lambda *objects: submit(lambda: handler(*objects))

    return Handlers(add=later(handlers.add), update=later(handlers.update), delete=later(handlers.delete))
