"""How fast the built-in controllers turn Deployments into pods, and what they write for it.

    python bench/controllers.py

Two loads, 3,000 replicas of one Deployment and 600 Deployments of one, each twice: until the pods are created (the
controllers and the embedded server alone), and until all are Available (with a scheduler and 60 hollow nodes).
Everything runs in one process in virtual time, so that only work counts; rates are per CPU second. The last figure
leaves out what the embedded server spent on answering: it is what a controller manager on another server would need.
For comparison: kube-controller-manager makes 650 to 820 pods a second on a real API server, and needs 0.3 CPU seconds
for a thousand.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from types import coroutine
from typing import Any, TypeVar

from skysail.api.apps import Deployment
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS
from skysail.api.ports import Request, Response, User
from skysail.simulator.clock import run_virtual
from skysail.testing import make_deployment
from skysail.testing.calls import call_of
from skysail.testing.cluster import Cluster

T = TypeVar("T")

_TARGET_PER_SECOND = 650
"""What kube-controller-manager reaches on a real API server."""


@dataclass
class _Account:
    """What the server was asked for.

    Attributes:
        writes: By who and to what.
        seconds: Of CPU time spent on answers.
    """

    writes: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: float = 0.0


def main() -> None:
    for name, deployments in (
        ("1 x 3,000", [make_deployment("web", replicas=3_000)]),
        ("600 x 1", [make_deployment(f"web-{number}", replicas=1) for number in range(600)]),
    ):
        run_virtual(_measure(name, deployments, to_available=False))
        run_virtual(_measure(name, deployments, to_available=True))


async def _measure(name: str, deployments: Sequence[Deployment], *, to_available: bool) -> None:
    pods = sum(each.spec.replicas or 0 for each in deployments)
    async with Cluster() as cluster:
        await cluster.start_controllers("deployment-controller", "replicaset-controller")
        if to_available:
            await cluster.add_nodes(60)
            await cluster.start_scheduler()
        await cluster.settle()
        account = _keep_account(cluster)
        begin = time.process_time()
        for each in deployments:
            await cluster.client.create(DEPLOYMENTS, each)
        while not await _done(cluster, pods, to_available=to_available):  # noqa: ASYNC110 - asking costs, too
            await asyncio.sleep(1.5)
        seconds = time.process_time() - begin
    writes = account.writes
    own = sum(count for (user, resource), count in writes.items() if user == "controllers" and resource != "events")
    print(
        f"{name}, until {'Available' if to_available else 'created'}: {pods / seconds:,.0f} pods/s"
        f"{'' if to_available else f' (target {_TARGET_PER_SECOND})'}, the controllers' writes per pod {own / pods:.2f}"
        f", Events {writes['controllers', 'events'] / pods:.2f}, all writes {sum(writes.values()) / pods:.2f}"
        f"; without the server {1000 * (seconds - account.seconds) / pods:.2f} CPU s per 1,000 pods"
    )


async def _done(cluster: Cluster, pods: int, *, to_available: bool) -> bool:
    if to_available:
        return sum(each.status.available_replicas for each in await cluster.list(Deployment)) == pods
    return len(await cluster.list(Pod)) == pods


def _keep_account(cluster: Cluster) -> _Account:
    """From now on."""
    account = _Account()
    handle = cluster.server.handle

    async def counting(request: Request, user: User) -> Response:
        if request.method != "GET":
            account.writes[request.headers.get("user-agent", "").partition(" ")[0], call_of(request).resource] += 1
        return await _timed(handle(request, user), account)

    cluster.server.handle = counting  # type: ignore[method-assign]
    return account


@coroutine
def _timed(work: Coroutine[Any, Any, T], account: _Account) -> Generator[Any, Any, T]:
    """Await something, and add the CPU time of its steps to the account; not what others do while it waits."""
    while True:
        begin = time.process_time()
        try:
            waits_for = work.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            account.seconds += time.process_time() - begin
        yield waits_for


if __name__ == "__main__":
    main()
