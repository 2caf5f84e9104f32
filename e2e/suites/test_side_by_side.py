"""Two schedulers on one cluster, each with pods of its own; neither oversells a node."""

import asyncio

from e2e.harness.control_plane import ControlPlane
from e2e.harness.processes import our_scheduler
from e2e.harness.workload import assert_no_node_is_oversold, create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.kinds import PODS
from skysail.api.resources import pod_requests
from tests.conformance.conftest import connect

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
        events = await client.read_path(
            "/apis/events.k8s.io/v1/namespaces/default/events", (("fieldSelector", "reason=Scheduled"),)
        )
        assert events.count(b'"reportingController":"sky-scheduler"') == PODS_EACH
