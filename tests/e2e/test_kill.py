"""kill -9 in the middle of the OpenB load: nothing acknowledged is lost, and no revision is given out twice."""

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from skysail.api.core import Pod
from skysail.api.errors import Unreachable
from skysail.api.kinds import NODES, PODS, Kind
from skysail.api.raw import Raw
from skysail.client import kubeconfig
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.simulator.clock import WallClock
from skysail.simulator.settling import is_decided
from skysail.simulator.traces import read_openb_nodes, read_openb_pods
from tests.e2e.running import Running, kill, start, stop

OPENB = Path(__file__).resolve().parents[1] / "golden" / "openb"
LANES = 8


@asynccontextmanager
async def client_of(running: Running):
    clock = WallClock()
    transport = HttpTransport(kubeconfig.load(str(running.kubeconfig)), clock=clock)
    try:
        yield ApiClient(transport, user_agent="openb", clock=clock, rng=random.Random(1))
    finally:
        await transport.close()


async def create_all(
    client: ApiClient, kind: Kind, bodies: Iterable[Raw], made: dict[str, Pod], then: Callable[[], None] = lambda: None
) -> None:
    """Create them over some lanes; what was acknowledged is in `made`, also when the server dies in between."""
    rest = iter(bodies)

    async def lane() -> None:
        for body in rest:
            obj = await client.create(kind, body, body["metadata"].get("namespace", ""))
            made[obj.name] = obj
            then()

    async with asyncio.TaskGroup() as group:
        for _ in range(LANES):
            group.create_task(lane())


async def watch_revisions(client: ApiClient, version: str, seen: dict[str, tuple[str, str]]) -> None:
    """Note what each revision stood for: one and the same change, whoever watches and whenever."""
    async for event in client.watch(PODS, resource_version=version):
        change = (event.object.key, event.type)
        assert seen.setdefault(event.object.metadata.resource_version, change) == change


async def load_until_killed(running: Running, pods: list[Raw], made: dict[str, Pod], seen: dict) -> None:
    def kill_half_way() -> None:
        if len(made) == len(pods) // 2:
            running.process.kill()

    async with client_of(running) as client:
        nodes: dict[str, Pod] = {}
        await create_all(client, NODES, read_openb_nodes(OPENB / "openb_node_list_gpu_node.csv"), nodes)
        for name in nodes:
            await client.patch(NODES, name, "", {"spec": {"taints": None}})
        version = (await client.list(PODS, limit=1)).resource_version
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(watch_revisions(client, version, seen))
                group.create_task(create_all(client, PODS, pods, made, kill_half_way))
        except* Unreachable:
            pass


async def wait_all_decided(client: ApiClient, count: int) -> list[Pod]:
    page = await client.list_all(PODS)
    pods = {pod.name: pod for pod in page.items}
    undecided = {name for name, pod in pods.items() if not is_decided(pod)}
    async for event in client.watch(PODS, resource_version=page.resource_version):
        pods[event.object.name] = event.object
        (undecided.discard if is_decided(event.object) else undecided.add)(event.object.name)
        if len(pods) == count and not undecided:
            break
    return list(pods.values())


def test_openb_survives_kill_nine_with_a_watcher_attached(tmp_path: Path) -> None:
    data, pods = tmp_path / "data", read_openb_pods(OPENB / "openb_pod_list_default.csv")
    made: dict[str, Pod] = {}
    seen: dict[str, tuple[str, str]] = {}
    running = start(tmp_path, "--nodes", "0", "--data-dir", str(data))
    try:
        asyncio.run(load_until_killed(running, pods, made, seen))
    finally:
        kill(running)
    assert len(pods) // 2 <= len(made) < len(pods)
    before = max(map(int, [*seen, *(pod.metadata.resource_version for pod in made.values())]))

    running = start(tmp_path, "--nodes", "0", "--data-dir", str(data))
    try:
        asyncio.run(check_and_finish(running, pods, made, before))
    finally:
        stop(running)


async def check_and_finish(running: Running, pods: list[Raw], made: dict[str, Pod], before: int) -> None:
    async with client_of(running) as client:
        page = await client.list_all(PODS)
        kept = {pod.name: pod for pod in page.items}
        assert all(kept[name].uid == pod.uid for name, pod in made.items())
        assert int(page.resource_version) > before
        rest = [pod for pod in pods if pod["metadata"]["name"] not in kept]
        again: dict[str, Pod] = {}
        await create_all(client, PODS, rest, again)
        assert all(int(pod.metadata.resource_version) > before for pod in again.values())
        async with asyncio.timeout(400):
            decided = await wait_all_decided(client, len(pods))
        assert {pod.name for pod in decided} == {pod["metadata"]["name"] for pod in pods}
