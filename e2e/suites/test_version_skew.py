"""Which API servers work: the conformance tests, and our scheduler and controllers as processes, on other versions.

`SKEW="v1.34.4 v1.35.4 v1.37.2" make e2e` chooses; a version that is not built is skipped, and says how to build it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.build import missing
from e2e.harness.control_plane import ControlPlane
from e2e.harness.disturbed import make_nodes
from e2e.harness.processes import our_controllers, our_scheduler
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS, PODS, REPLICASETS
from tests.conformance.conftest import connect
from tests.conformance.objects import deployment
from tests.conformance.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
NONE = pytest.param("", marks=pytest.mark.skip(reason='no versions are named: SKEW="v1.34.4 v1.35.4 v1.37.2"'))


@pytest.fixture(params=os.environ.get("SKEW", "").split() or [NONE], scope="module")
def version(request: pytest.FixtureRequest) -> str:
    """A version whose API server is built."""
    version = str(request.param)
    if missing(version):
        pytest.skip(f"kube-apiserver {version} is not built: python e2e/build.py --also {version}")
    return version


@pytest.fixture
def skewed(version: str, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane with that API server."""
    control_plane = ControlPlane(tmp_path, version=version)
    try:
        control_plane.start()
        yield control_plane
    finally:
        control_plane.stop()


def test_the_conformance_tests_pass(version: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/conformance"]
    environment = {**os.environ, "SKYSAIL_SERVER": version}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


async def test_our_scheduler_and_controllers_drop_in(skewed: ControlPlane) -> None:
    """A deployment is rolled out as far as it gets without kubelets, and leaves nothing behind."""
    async with connect(skewed.kubeconfig) as client:
        await make_nodes(client, 3)
        with our_scheduler(skewed, "default-scheduler"), our_controllers(skewed):
            await client.create(DEPLOYMENTS, deployment("web", 30), "default")
            pods = await wait_until(
                client, PODS, "default", lambda pods: len(pods) == 30 and all(pod.spec.node_name for pod in pods)
            )
            assert {pod.spec.node_name for pod in pods} == {"n0", "n1", "n2"}
            for pod in pods:
                status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                await client.patch(PODS, pod.name, "default", {"status": status}, subresource="status")
            await wait_until(client, DEPLOYMENTS, "default", lambda found: found[0].status.available_replicas == 30)
            await client.delete(DEPLOYMENTS, "web", "default", propagation="Foreground")
            leaving = await wait_until(client, PODS, "default", lambda pods: all(is_leaving(pod) for pod in pods))
            for pod in leaving:
                await client.delete(PODS, pod.name, "default", grace_period_seconds=0)
            await wait_until(client, REPLICASETS, "default", lambda found: not found)
            await wait_until(client, DEPLOYMENTS, "default", lambda found: not found)
