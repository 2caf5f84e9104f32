"""What the shells of the built-in controllers share: their client, the time as it is written, and the pod indexes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import Kind
from skysail.api.labels import Selector
from skysail.api.meta import ApiObject, LabelSelector
from skysail.client.api_client import ApiClient
from skysail.controller.controller import Controller
from skysail.controllers.patches import merge_difference
from skysail.controllers.pods import controller_of

TObject = TypeVar("TObject", bound=ApiObject)

BY_CONTROLLER = "controller-uid"
PODS_BY_NODE = "node-name"
NOBODY = "nobody/"
"""Under this prefix and the namespace the index by controller holds what nobody controls."""


def _index_by_controller(obj: ApiObject) -> Iterable[str]:
    """The uid of what controls an object, or a word for nobody in its namespace."""
    reference = controller_of(obj)
    return (reference.uid if reference is not None else NOBODY + obj.metadata.namespace,)


def index_by_node(pod: Pod) -> Iterable[str]:
    """The node a pod is bound to; none when it is not bound."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class _Selecting(Protocol):
    """A spec with a label selector."""

    @property
    def selector(self) -> LabelSelector | None: ...


class Selectors:
    """Compiled selectors of the objects of one kind, by uid; compiled again when the object's selector changes."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._known: dict[str, tuple[LabelSelector | None, Selector]] = {}

    def of(self, uid: str, spec: _Selecting) -> Selector:
        """The compiled selector of an object.

        Raises:
            ValueError: The selector is malformed (the API server should have refused it).
        """
        known = self._known.get(uid)
        if known is not None and (known[0] is spec.selector or known[0] == spec.selector):
            return known[1]
        selector = Selector.from_label_selector(spec.selector)
        if len(self._known) >= self._capacity:
            del self._known[next(iter(self._known))]
        self._known[uid] = (spec.selector, selector)
        return selector


class BuiltinController(Controller):
    """The base of the built-in controllers' shells."""

    @property
    def api(self) -> ApiClient:
        """Reads from and writes to the server."""
        return self.client

    def now(self) -> datetime:
        """The time, to the microsecond: for intervals."""
        return self.clock.now()

    def written_now(self) -> datetime:
        """The time as API objects hold it: in whole seconds."""
        return self.clock.now().replace(microsecond=0)

    async def write_status(
        self, kind: Kind[Any], obj: ApiObject, old: msgspec.Struct, new: msgspec.Struct, *, optimistic: bool = False
    ) -> bool:
        """Send the difference between two statuses of one object, if there is any; whether it was sent.

        An object that is gone needs no status: the cache will soon say so, too.

        Args:
            kind: Its kind.
            obj: As read; its uid goes along, so that a namesake is never touched.
            old: The status as read.
            new: The status as wanted.
            optimistic: Whether the new status depends on the old: then the version goes along, too.

        Raises:
            Conflict: The object is another one, or (optimistic) has moved on.
        """
        difference = merge_difference(old, new)
        if difference:
            metadata = {"uid": obj.metadata.uid}
            if optimistic:
                metadata["resourceVersion"] = obj.metadata.resource_version
            patch = {"metadata": metadata, "status": difference}
            try:
                await self.api.patch(kind, obj.name, obj.namespace, patch, subresource="status")
            except NotFound:
                return False
        return bool(difference)

    def index_by_controller(self, *kinds: type[ApiObject]) -> None:
        """Call in `setup`: make objects of these kinds found by who controls them."""
        for kind in kinds:
            self.informer(kind).add_indexes({BY_CONTROLLER: _index_by_controller})

    def controlled_by(self, uid: str, kind: type[TObject]) -> tuple[TObject, ...]:
        """The objects of an indexed kind that the owner of that uid controls."""
        return self.lister(kind).by_index(BY_CONTROLLER, uid)

    def claimable_by(self, owner: ApiObject, kind: type[TObject]) -> tuple[TObject, ...]:
        """What `owner` controls, and what of its namespace nobody controls."""
        orphans = self.lister(kind).by_index(BY_CONTROLLER, NOBODY + owner.metadata.namespace)
        return self.controlled_by(owner.metadata.uid, kind) + orphans
