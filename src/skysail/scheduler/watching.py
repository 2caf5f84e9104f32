"""Which informers the scheduler listens to, and with which handler.

Pods and nodes always; any other kind only if a plugin asked for it, by registering for its events or for its lister. A
kind that this API server does not serve is left out with a warning: its plugins then see no object of it.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from skysail.api.errors import (
    ApiError,
    ConfigError,
    InternalError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
from skysail.api.kinds import KINDS, PODS, Kind
from skysail.client.api_client import ApiClient
from skysail.informer.factory import InformerFactory
from skysail.informer.handlers import FilteringHandler, Handlers
from skysail.informer.listener import Listener
from skysail.informer.shared_informer import SharedInformer
from skysail.scheduler.framework.events import NODE, POD, WILDCARD, ActionType, ClusterEventWithHint
from skysail.scheduler.handlers import ClusterEventHandlers, is_live

_log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
_NO_ANSWER: Final = (Unreachable, ServiceUnavailable, InternalError, ServerTimeout, TooManyRequests)
LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
_UNSTRUCTURED: Final = (Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups", True, dict),)
_MAY_BE_MISSING: Final = ("resource.k8s.io",)
"""Groups that older clusters do not serve in this version; listers of theirs are empty there."""
_BY_RESOURCE: Final[Mapping[str, Kind[Any]]] = {
    f"{kind.group}/{kind.name}" if kind.group else kind.name: kind for kind in (*_UNSTRUCTURED, *KINDS)
}


def kind_of_resource(resource: str) -> Kind[Any]:
    """The kind that an event's resource names: one of the constants, or `<plural>.<version>.<group>`.

    Raises:
        ConfigError: It names none.
    """
    known = _BY_RESOURCE.get(resource)
    if known is not None:
        return known
    plural, _, rest = resource.partition(".")
    version, _, group = rest.partition(".")
    if not (plural and version and group):
        raise ConfigError(
            f"{resource!r} is no resource: <plural>.<version>.<group> is wanted", path="events_to_register"
        )
    return Kind(group, version, plural, plural, True, dict)


def wanted_events(registrations: Iterable[Iterable[ClusterEventWithHint]]) -> dict[str, ActionType]:
    """Which actions on which other resources some plugin wants to hear of."""
    wanted: dict[str, ActionType] = {}
    for rows in registrations:
        for row in rows:
            resource = row.event.resource
            if resource not in (POD, NODE, WILDCARD):
                wanted[resource] = wanted.get(resource, ActionType.NONE) | row.event.action
    return wanted


class ClusterWatch:
    """The scheduler's informers.

    Args:
        client: Asks whether a kind is served.
        informers: The factory, shared with controllers or our own.
        handlers: Who is told.
        alone: Whether nobody else uses the pods' informer; ended pods are then not even fetched.
    """

    def __init__(
        self, client: ApiClient, informers: InformerFactory, handlers: ClusterEventHandlers, *, alone: bool
    ) -> None:
        self._client, self._informers, self._handlers = client, informers, handlers
        self.pods = informers.informer(PODS, field_selector=LIVE_PODS if alone else "")
        self.nodes = informers.nodes()
        self._listeners: list[Listener[Any]] = []
        self._used: list[SharedInformer[Any]] = [self.pods, self.nodes]

    def listen(self) -> None:
        """Register the handlers for pods and nodes."""
        on, pods, nodes = self._handlers, self.pods, self.nodes
        live = FilteringHandler(is_live, Handlers(add=on.add_pod, update=on.update_pod, delete=on.delete_pod))
        self._listeners.append(pods.add_handler(live, resync_seconds=0, name="scheduler pods"))
        node_handler = Handlers(add=on.add_node, update=on.update_node, delete=on.delete_node)
        self._listeners.append(nodes.add_handler(node_handler, resync_seconds=0, name="scheduler nodes"))

    async def listen_to(self, wanted: Mapping[str, ActionType]) -> None:
        """Register for what plugins want to hear of.

        Raises:
            ConfigError: A resource cannot be read as one.
        """
        for resource, actions in wanted.items():
            kind = kind_of_resource(resource)
            if not await self._is_served(kind):
                _log.warning("kind is not served, plugins see none", extra={"resource": resource})
                continue
            informer = self._informers.informer(kind)
            self._used.append(informer)
            handler = self._handler_for(resource, actions)
            self._listeners.append(informer.add_handler(handler, resync_seconds=0, name=f"scheduler {resource}"))

    async def wait_synced(self, kinds: Iterable[Kind[Any]]) -> None:
        """Wait until the handlers were told of everything, and the listers of `kinds` hold their first list."""
        for listener in self._listeners:
            await listener.wait_synced()
        for kind in kinds:
            informer = self._informers.informer(kind)
            if kind.group in _MAY_BE_MISSING and not await self._is_served(kind):
                self._informers.release(informer)
                self._informers.release(informer)  # the lister's own use: it will never hold anything
                continue
            self._used.append(informer)
            await informer.wait_synced()

    def close(self) -> None:
        """Listen no longer; informers nobody else uses end."""
        for informer in self._used:
            for listener in self._listeners:
                informer.remove_handler(listener)
            self._informers.release(informer)
        self._listeners.clear()
        self._used.clear()

    def _handler_for(self, resource: str, actions: ActionType) -> Handlers[Any]:
        changed = self._handlers.changed
        return Handlers(
            add=(lambda new: changed(resource, ActionType.ADD, None, new)) if actions & ActionType.ADD else None,
            update=(lambda old, new: changed(resource, ActionType.UPDATE, old, new))
            if actions & ActionType.UPDATE
            else None,
            delete=(lambda old: changed(resource, ActionType.DELETE, old, None))
            if actions & ActionType.DELETE
            else None,
        )

    async def _is_served(self, kind: Kind[Any]) -> bool:
        """Ask until there is an answer: a server that cannot be reached, or is not ready, tells nothing."""
        while True:
            try:
                await self._client.list(kind, limit=1)
            except NotFound:
                return False
            except _NO_ANSWER as error:
                _log.info("kind could not be listed", extra={"kind": kind.resource, "error": str(error)})
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except ApiError as error:
                _log.info("kind may not be listed", extra={"kind": kind.resource, "error": str(error)})
            return True
