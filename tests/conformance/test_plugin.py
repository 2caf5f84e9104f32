"""A plugin written in Python, named in a KubeSchedulerConfiguration, on a server over HTTPS."""

from pathlib import Path

from skysail.api.kinds import PODS
from skysail.client.api_client import ApiClient
from tests.conformance.components import running_scheduler
from tests.conformance.objects import pod
from tests.conformance.test_scheduler import nodes, remove_pods
from tests.conformance.waiting import wait_until

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
  - schedulerName: by-number
    plugins: {score: {enabled: [{name: NodeNumber, weight: 50}]}}
"""


async def test_a_plugin_of_twenty_lines_decides_where_pods_go(client: ApiClient, namespace: str, config: Path) -> None:
    names = [f"number-{digit}" for digit in range(4)]
    async with (
        nodes(client, *names),
        running_scheduler(config, PROFILE, plugins=["examples.plugins.node_number:NodeNumber"]),
    ):
        for digit in range(4):
            body = pod(f"pod-{digit}", schedulerName="by-number", nodeSelector={"pool": "conformance"})
            await client.create(PODS, body, namespace)
        bound = await wait_until(client, PODS, namespace, lambda pods: all(each.spec.node_name for each in pods))
        assert {each.name: each.spec.node_name for each in bound} == {f"pod-{d}": f"number-{d}" for d in range(4)}
        await remove_pods(client, namespace)
