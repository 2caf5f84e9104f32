"""Least privilege, by the audit log: as their manifests' accounts alone our processes work, and are refused nothing.

Each speaks with a bound token of the ServiceAccount that its manifest makes, as in a pod.
"""

import asyncio
import datetime as dt
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import yaml

from e2e.harness.control_plane import ControlPlane
from e2e.harness.identities import bound_token
from e2e.harness.processes import SKYSAIL, our_controllers, our_scheduler, running
from e2e.harness.workload import create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.kinds import (
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICASETS,
    SERVICE_ACCOUNTS,
    STATEFULSETS,
)
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect
from tests.conformance.objects import deployment
from tests.conformance.waiting import wait_until
from tests.e2e.running import KUBECTL

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
Call = tuple[str, str, str]
"""Group, resource (with its subresource), verb."""


async def deployed(control_plane: ControlPlane, client: ApiClient, account: str, *manifest: str) -> Path:
    """Apply a manifest; a kubeconfig of the account in it."""
    command = [str(KUBECTL), "--kubeconfig", str(control_plane.kubeconfig), "apply", *manifest]
    done = run(command)
    assert done.returncode == 0, done.stderr
    uid = (await client.get(SERVICE_ACCOUNTS, account, "kube-system")).uid
    token = bound_token(control_plane.root / "service-account.key", "kube-system", account, uid, dt.timedelta(hours=1))
    return control_plane.write_kubeconfig(account, {"token": token})


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def granted(documents: Iterable[Raw], account: str) -> set[Call]:
    """What the roles of a manifest grant; all of them are the account's."""
    roles = [each for each in documents if each["kind"] in ("ClusterRole", "Role")]
    assert all(each["metadata"]["name"].startswith(account) for each in roles)
    return {(group, resource, verb) for each in roles for rule in each["rules"] for group in rule["apiGroups"]
            for resource in rule["resources"] for verb in rule["verbs"]}  # fmt: skip


def is_granted(call: Call, rights: set[Call]) -> bool:
    group, resource, verb = call
    return bool({(group, resource, verb), (group, "*", verb), ("*", "*", verb)} & rights)


def assert_enough(log: Path, account: str, documents: Iterable[Raw]) -> None:
    """It was refused nothing, and did nothing that only some other role of its allowed."""
    refused, used = audited(log, f"system:serviceaccount:kube-system:{account}")
    rights = granted(documents, account)
    assert used
    assert refused == []
    assert [call for call in sorted(used) if not is_granted(call, rights)] == []


def audited(log: Path, user: str) -> tuple[list[str], set[Call]]:
    """What a user was refused, and which calls it made."""
    refused, used = [], set()
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] != user or "objectRef" not in entry:
            continue
        target = entry["objectRef"]
        resource = target["resource"] + (f"/{target['subresource']}" if target.get("subresource") else "")
        if entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid":
            refused.append(f"{entry['verb']} {resource}: {entry['responseStatus'].get('message', '')}")
        used.add((target.get("apiGroup", ""), resource, entry["verb"]))
    return refused, used


async def test_the_scheduler_needs_no_more_than_its_role(control_plane: ControlPlane) -> None:
    base = DEPLOY / "kustomize" / "base"
    async with connect(control_plane.kubeconfig) as client:
        limited = await deployed(control_plane, client, "skysail-scheduler", "-k", str(base))
        await create_nodes(client, [plain_node("n0", cpu="1")])
        with our_scheduler(control_plane, "skysail-scheduler", "--kubeconfig", str(limited), "--leader-elect"):
            pods = [plain_pod(f"p{number}", "skysail-scheduler") for number in range(20)]
            await create_all(client, PODS, pods, "default")
            async with asyncio.timeout(60):
                await wait_bound(client, "default", 20)
    documents = yaml.safe_load_all((base / "skysail.yaml").read_text())
    assert_enough(control_plane.root / "audit.log", "skysail-scheduler", documents)


async def test_the_controllers_need_no_more_than_their_role(control_plane: ControlPlane) -> None:
    manifest = DEPLOY / "controller-manager.yaml"
    account = "skysail-controller-manager"
    async with connect(control_plane.kubeconfig) as client:
        limited = await deployed(control_plane, client, account, "-f", str(manifest))
        await create_nodes(client, [plain_node("n0")])
        with our_controllers(control_plane, "--kubeconfig", str(limited), "--leader-elect"):
            await client.create(NAMESPACES, {"metadata": {"name": "team"}})
            await client.create(DEPLOYMENTS, deployment("web", 3), "team")
            await client.create(STATEFULSETS, stateful_set(), "team")
            await client.create(JOBS, job("once", 2), "team")
            await wait_until(client, PODS, "team", lambda pods: len(pods) == 6, seconds=60)
            await wait_until(client, PERSISTENT_VOLUME_CLAIMS, "team", lambda found: len(found) == 1)
            await wait_until(client, SERVICE_ACCOUNTS, "team", lambda found: len(found) == 1)
            await client.delete(DEPLOYMENTS, "web", "team", propagation="Orphan")
            await wait_until(client, DEPLOYMENTS, "team", lambda found: not found)
            await wait_until(client, REPLICASETS, "team", lambda found: not found[0].metadata.owner_references)
            await client.delete(REPLICASETS, (await client.list_all(REPLICASETS, "team")).items[0].name, "team",
                                propagation="Foreground")  # fmt: skip
            await wait_until(client, REPLICASETS, "team", lambda found: not found)
            await client.delete(NAMESPACES, "team")
            await wait_until(
                client, NAMESPACES, "", lambda found: not any(each.name == "team" for each in found), seconds=60
            )
    assert_enough(control_plane.root / "audit.log", account, yaml.safe_load_all(manifest.read_text()))


async def test_the_batch_engine_needs_no_more_than_its_role(control_plane: ControlPlane) -> None:
    async with connect(control_plane.kubeconfig) as client:
        limited = await deployed(control_plane, client, "skysail-batch", "-k", str(DEPLOY / "batch"))
        await create_nodes(client, [plain_node("n0")])
        command = [str(SKYSAIL), "batch", "--kubeconfig", str(limited), "--leader-elect", "-v", "0"]
        with running(control_plane, "batch", command), our_controllers(control_plane):
            body = job("gang", 3)
            body["spec"]["template"]["spec"]["schedulerName"] = "sky-scheduler"
            await client.create(JOBS, body, "default")
            await wait_until(
                client, PODS, "default", lambda pods: [bool(pod.spec.node_name) for pod in pods] == [True] * 3,
                seconds=60,
            )  # fmt: skip
    documents = yaml.safe_load_all((DEPLOY / "batch" / "batch.yaml").read_text())
    assert_enough(control_plane.root / "audit.log", "skysail-batch", documents)


def stateful_set() -> Raw:
    """One pod with a claim of its own."""
    template = deployment("db", 1)["spec"]["template"]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db", "replicas": 1, "selector": {"matchLabels": {"app": "db"}}, "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }  # fmt: skip


def job(name: str, pods: int) -> Raw:
    """A job of so many pods side by side."""
    template = deployment(name, 1)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": name}, "spec": {"parallelism": pods, "completions": pods, "template": template}}
