"""Two schedulers on one cluster, each with pods of its own; neither oversells a node."""

import asyncio

from e2e.harness.control_plane import ControlPlane
from e2e.harness.processes import our_scheduler
from e2e.harness.workload import assert_no_node_is_oversold, create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.cluster import Event
from skysail.api.kinds import EVENTS, PODS
from skysail.api.resources import pod_requests
from tests.conformance.conftest import connect
from tests.conformance.waiting import wait_until

PODS_EACH = 200


async def test_pods_go_to_the_scheduler_they_name(control_plane: ControlPlane) -> None:
    async with connect(control_plane.kubeconfig) as client:
        await create_nodes(client, [plain_node(f"n{number}", cpu="4") for number in range(20)])
        control_plane.start_scheduler()
        with our_scheduler(control_plane, "sky-scheduler"):
            names = ("default-scheduler", "sky-scheduler")
            pods = [plain_pod(f"{name}-{number}", name) for number in range(PODS_EACH) for name in names]
            async with asyncio.timeout(120):
                await create_all(client, PODS, pods, "default")
                bound = await wait_bound(client, "default", len(pods))
            assert_no_node_is_oversold(bound, lambda pod: pod_requests(pod)["cpu"], 4000)
            await wait_until(client, EVENTS, "default", lambda events: written_by(events, "sky-scheduler") == PODS_EACH)


def written_by(events: list[Event], controller: str) -> int:
    return sum(event.reason == "Scheduled" and event.reporting_component == controller for event in events)
