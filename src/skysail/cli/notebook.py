"""A cluster at the Python prompt or in a notebook: everything waits for its answer.

from skysail.cli.notebook import connect

with connect() as cluster:                     # as kubectl finds its cluster
for pod in cluster.list(PODS, "default").items:
print(pod.name, pod.status.phase)
pods = cluster.lister(PODS)                # a cache that follows; reading it costs nothing
len(pods)
"""

from random import Random
from types import TracebackType
from typing import TypeVar

from skysail.api.kinds import Kind, kind_of
from skysail.api.ports import Transport
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.client.locate import locate
from skysail.controller.blocking.client import BlockingClient
from skysail.controller.blocking.portal import Portal
from skysail.informer.factory import InformerFactory
from skysail.informer.lister import Lister
from skysail.simulator.clock import WallClock

T = TypeVar("T")


class Connection(BlockingClient):
    """A cluster, every call to which waits for its answer. Close it, or use it as a context manager.

    Args:
        transport: How bytes get there; closed with the connection.
        portal: The loop it all runs on; closed with the connection.
    """

    def __init__(self, transport: Transport, portal: Portal) -> None:
        clock, rng = WallClock(), Random()
        client = ApiClient(transport, user_agent="skysail-notebook", clock=clock, rng=rng)
        super().__init__(client, portal)
        self._transport = transport
        self._informers = InformerFactory(client, clock=clock, rng=rng)
        portal.run_beside(self._informers.run())

    def lister(self, kind: type[T] | Kind[T], namespace: str = "") -> Lister[T]:
        """A cache of a kind that follows the cluster; filled when this returns."""
        return self._portal.call(self._follow(kind if isinstance(kind, Kind) else kind_of(kind), namespace))

    async def _follow(self, kind: Kind[T], namespace: str) -> Lister[T]:
        informer = self._informers.informer(kind, namespace)
        await informer.wait_synced()
        return informer.lister

    def close(self) -> None:
        """End all caches and let go of the cluster. Idempotent."""
        if self._portal.is_closed:
            return
        self._portal.call(self._transport.close())
        self._portal.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def connect(kubeconfig: str = "", *, context: str = "") -> Connection:
    """Reach a cluster.

    Args:
        kubeconfig: A file; else as kubectl does, else the pod's own service account.
        context: Of the kubeconfig.

    Raises:
        ConfigError: No cluster is named, or its entry cannot be used.
    """
    return Connection(HttpTransport(locate(kubeconfig, context=context), clock=WallClock()), Portal())
