"""Credentials that end while we run: tokens that expire, certificates that are replaced on either side."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from e2e.harness.control_plane import HOST, ControlPlane
from e2e.harness.disturbed import PODS_A_NODE, assert_all_come_to_be_bound, make_nodes, make_pods, off_the_loop
from e2e.harness.identities import Authority, bound_token
from e2e.harness.processes import our_scheduler
from e2e.harness.workload import wait_bound
from skysail.api.errors import Unauthorized
from skysail.api.kinds import PODS, SERVICE_ACCOUNTS, Kind
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect

NAME = "sky-credentials"
COUNT = 1_000
HALF = COUNT // 2
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False, dict)
SHORT = dt.timedelta(seconds=20)


@asynccontextmanager
async def half_bound(control_plane: ControlPlane, kubeconfig: Path) -> AsyncIterator[ApiClient]:
    """A cluster half of whose pods our scheduler has bound with its first credential; afterwards, all are."""
    async with connect(control_plane.kubeconfig) as client:
        await make_nodes(client, COUNT // PODS_A_NODE)
        with our_scheduler(control_plane, NAME, "--kubeconfig", str(kubeconfig)):
            await make_pods(client, NAME, range(HALF))
            async with asyncio.timeout(60):
                await wait_bound(client, "default", HALF)
            yield client
            await assert_all_come_to_be_bound(client, COUNT)


async def wait_refused(kubeconfig: Path) -> None:
    """Wait until the server takes this credential no longer."""
    async with asyncio.timeout(90):
        while True:
            async with connect(kubeconfig) as client:
                try:
                    await client.list(PODS, "default", limit=1)
                except Unauthorized:
                    return
            await asyncio.sleep(0.5)


async def test_a_bound_token_expires_and_is_replaced_late(control_plane: ControlPlane) -> None:
    """As when a kubelet is late: for some seconds every request is refused, and pods keep coming."""
    async with connect(control_plane.kubeconfig) as client:
        account = await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "sky"}}, "default")
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"kind": "ServiceAccount", "name": "sky", "namespace": "default"}
        await client.create(ROLE_BINDINGS, {"metadata": {"name": "sky"}, "roleRef": role, "subjects": [subject]})
    token = control_plane.root / "token"

    def issue(lifetime: dt.timedelta) -> None:
        key = control_plane.root / "service-account.key"
        token.write_text(bound_token(key, "default", "sky", account.uid, lifetime))

    issue(SHORT)
    kubeconfig = control_plane.write_kubeconfig("sky", {"tokenFile": str(token)})
    async with half_bound(control_plane, kubeconfig) as client:
        await wait_refused(kubeconfig)
        await make_pods(client, NAME, range(HALF, COUNT))
        issue(dt.timedelta(hours=1))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Who signs users' certificates; the server is told with `--client-ca-file`."""
    authority = Authority("users")
    (tmp_path / "users.crt").write_bytes(authority.certificate)
    return authority


def restart(control_plane: ControlPlane) -> None:
    control_plane.kill("kube-apiserver")
    control_plane.start_apiserver(f"--client-ca-file={control_plane.root / 'users.crt'}")


async def test_a_client_certificate_expires_and_is_replaced_late(
    control_plane: ControlPlane, authority: Authority
) -> None:
    restart(control_plane)
    root = control_plane.root
    authority.write_client(root, "sky", "sky", "system:masters", SHORT)
    user = {"client-certificate": str(root / "sky.crt"), "client-key": str(root / "sky.key")}
    kubeconfig = control_plane.write_kubeconfig("sky", user)
    async with half_bound(control_plane, kubeconfig) as client:
        await wait_refused(kubeconfig)
        await make_pods(client, NAME, range(HALF, COUNT))
        authority.write_client(root, "sky", "sky", "system:masters")


async def test_the_server_gets_a_certificate_of_another_authority(control_plane: ControlPlane) -> None:
    """Done in order (both are trusted, then the certificate is replaced), then carelessly (the other way round)."""
    root, bundle = control_plane.root, control_plane.root / "bundle.crt"
    second, third = Authority("second"), Authority("third")
    bundle.write_bytes(control_plane.ca)
    user = {"token": control_plane.token}
    kubeconfig = control_plane.write_kubeconfig("sky", user, **{"certificate-authority": str(bundle)})

    async def restart_with(authority: Authority) -> None:
        control_plane.kill("kube-apiserver")
        authority.write_server(root, (HOST,))
        await off_the_loop(control_plane.start_apiserver)()

    bundle.write_bytes(control_plane.ca + second.certificate)
    control_plane.ca += second.certificate + third.certificate  # the test itself trusts them all
    async with half_bound(control_plane, kubeconfig) as client:
        await restart_with(second)
        await make_pods(client, NAME, range(HALF, HALF + HALF // 2))
        async with asyncio.timeout(120):
            await wait_bound(client, "default", HALF + HALF // 2)
        await restart_with(third)
        await make_pods(client, NAME, range(HALF + HALF // 2, COUNT))
        bundle.write_bytes(third.certificate)
