"""The manifests in `deploy/` are linted, agree with one another, and a real API server takes them."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e.harness.control_plane import ControlPlane
from e2e.harness.processes import our_scheduler
from e2e.harness.workload import create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.kinds import PODS
from tests.conformance.conftest import connect
from tests.e2e.running import KUBECTL

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "skysail"
BASE = ROOT / "deploy" / "kustomize" / "base"
HELM = KUBECTL.with_name("helm")
RENDER = [
    "template",
    "skysail",
    str(CHART),
    "-n",
    "kube-system",
    "--set",
    "serving.secretName=skysail-scheduler-serving",
]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_chart_passes_lint() -> None:
    assert "0 chart(s) failed" in run(str(HELM), "lint", "--strict", str(CHART))


def test_the_kustomize_base_is_what_the_chart_renders() -> None:
    assert run(str(HELM), *RENDER) == (BASE / "skysail.yaml").read_text()


def test_every_metric_of_the_dashboard_exists() -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "skysail-scheduler.json").read_text())
    asked = {
        name for panel in dashboard["panels"] for name in re.findall(r"scheduler_\w+", panel["targets"][0]["expr"])
    }
    source = "".join(path.read_text() for path in (ROOT / "src" / "skysail" / "scheduler").rglob("*.py"))
    missing = [name for name in asked if name.removesuffix("_bucket").removeprefix("scheduler_") not in source]
    assert missing == []


def test_a_real_api_server_takes_the_manifests(control_plane: ControlPlane) -> None:
    kubectl = [str(KUBECTL), "--kubeconfig", str(control_plane.kubeconfig)]
    helm = [str(HELM), "install", "second", str(CHART), "--kubeconfig", str(control_plane.kubeconfig), "-n", "default"]
    run(*helm, "--dry-run=server")
    assert "deployment.apps/skysail-scheduler created" in run(*kubectl, "apply", "-k", str(BASE))
    crds = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))
    for file in [*crds, ROOT / "deploy" / "controller-manager.yaml"]:
        run(*kubectl, "apply", "--server-side", "-f", str(file))


async def test_the_role_allows_what_the_scheduler_does_and_little_more(control_plane: ControlPlane) -> None:
    """The scheduler works as the chart's role alone; no request of its is refused."""
    rules = next(
        each["rules"]
        for each in yaml.safe_load_all((BASE / "skysail.yaml").read_text())
        if each["kind"] == "ClusterRole"
    )
    control_plane.add_user("least", "least", "sky")
    control_plane.kill("kube-apiserver")
    control_plane.start_apiserver()
    kubectl = [str(KUBECTL), "--kubeconfig", str(control_plane.kubeconfig)]
    run(*kubectl, "apply", "-k", str(BASE))
    run(*kubectl, "create", "clusterrolebinding", "least", "--clusterrole=skysail-scheduler", "--user=least")
    async with connect(control_plane.kubeconfig) as client:
        await create_nodes(client, [plain_node("n0", cpu="1")])
        limited = control_plane.kubeconfig_for("least", "least")
        with our_scheduler(control_plane, "sky-least", "--kubeconfig", str(limited)):
            await create_all(client, PODS, [plain_pod(f"p{number}", "sky-least") for number in range(20)], "default")
            await wait_bound(client, "default", 20)
    refused, used = audited(control_plane.root / "audit.log", "least")
    assert refused == []
    allowed = {(group, resource, verb) for rule in rules for group in rule["apiGroups"]
               for resource in rule["resources"] for verb in rule["verbs"]}  # fmt: skip
    assert used <= allowed


def audited(log: Path, user: str) -> tuple[list[str], set[tuple[str, str, str]]]:
    """What a user was refused, and which (group, resource, verb) it used."""
    refused, used = [], set()
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] != user or "objectRef" not in entry:
            continue
        target = entry["objectRef"]
        resource = target["resource"] + (f"/{target['subresource']}" if target.get("subresource") else "")
        if entry.get("responseStatus", {}).get("code") == 403:
            refused.append(f"{entry['verb']} {resource}: {entry['responseStatus'].get('message', '')}")
        used.add((target.get("apiGroup", ""), resource, entry["verb"]))
    return refused, used


@pytest.mark.parametrize("instruction", ["USER", "ENTRYPOINT"])
def test_the_image_runs_as_nobody_in_particular(instruction: str) -> None:
    assert re.search(rf"^{instruction} ", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE)
