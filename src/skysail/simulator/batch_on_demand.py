"""The batch engine of a local cluster: its kinds are served from the start, the engine itself only once it is needed.

Most clusters that people start with `skysail up` never see a batch job; those are not to pay for an engine that follows
every pod. Whatever can concern it starts it: a pod that names its scheduler, an object of one of its kinds, a
CustomResourceDefinition of somebody else, for it may be one of Kueue's or Volcano's.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skysail.api.core import Pod
from skysail.api.kinds import Kind
from skysail.api.raw import Raw
from skysail.batch.kinds import JOB_QUEUES, POD_GROUPS, QUEUES, QUOTAS, batch_definitions
from skysail.batch.kinds.parts import GROUP, SCHEDULER_NAME
from skysail.client.api_client import ApiClient
from skysail.controller.customresources.installing import DEFINITIONS, install
from skysail.informer.factory import InformerFactory
from skysail.informer.handlers import Handlers

if TYPE_CHECKING:
    from skysail.batch.controllers.process import BatchProcess

_KINDS: tuple[Kind[Any], ...] = (QUEUES, JOB_QUEUES, QUOTAS, POD_GROUPS)


class BatchOnDemand:
    """Serves the batch engine's kinds, waits until somebody uses them, then runs the engine.

    Args:
        client: Installs the kinds.
        informers: Shared with the rest of the cluster; these tell of the first use.
        make: Makes the engine's process; called once, when it is needed.
        foreign_kinds: Serve the kinds of Kueue, Volcano and others, too; the engine then runs at once.
    """

    def __init__(
        self,
        client: ApiClient,
        informers: InformerFactory,
        make: Callable[[], "BatchProcess"],
        *,
        foreign_kinds: bool = False,
    ) -> None:
        self._client, self._informers, self._make = client, informers, make
        self._foreign_kinds = foreign_kinds
        self._needed = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        await install(self._client, batch_definitions(), timeout_seconds=None)
        if self._foreign_kinds:
            from skysail.batch.foreign.definitions import foreign_definitions

            await install(self._client, foreign_definitions(), timeout_seconds=None)
        else:
            await self._first_use()
        await self._make().run()

    async def _first_use(self) -> None:
        """Wait for the first object that concerns the engine. The watches of its kinds stay: it goes on with them."""
        watched: list[tuple[type[Any] | Kind[Any], Callable[[Any], bool]]] = [
            (Pod, lambda pod: pod.spec.scheduler_name == SCHEDULER_NAME),
            (DEFINITIONS, _is_somebody_elses),
            *((kind, lambda obj: True) for kind in _KINDS),
        ]
        listening = []
        for kind, concerns in watched:
            informer = self._informers.informer(kind)
            listening.append((informer, informer.add_handler(self._waking(concerns), name="batch on demand")))
        await self._needed.wait()
        for informer, listener in listening:
            informer.remove_handler(listener)

    def _waking(self, concerns: Callable[[Any], bool]) -> Handlers[Any]:
        def wake(obj: Any) -> None:
            if concerns(obj):
                self._needed.set()

        return Handlers(add=wake)


def _is_somebody_elses(definition: Raw) -> bool:
    return bool(definition["spec"]["group"] != GROUP)
