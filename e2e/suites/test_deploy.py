"""The manifests in `deploy/` are linted, agree with one another, and a real API server takes them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from e2e.harness.control_plane import ControlPlane
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
    assert "deployment.apps/skysail-batch created" in run(*kubectl, "apply", "-k", str(ROOT / "deploy" / "batch"))
    run(*kubectl, "apply", "--server-side", "-f", str(ROOT / "deploy" / "controller-manager.yaml"))


@pytest.mark.parametrize("instruction", ["USER", "ENTRYPOINT"])
def test_the_image_runs_as_nobody_in_particular(instruction: str) -> None:
    assert re.search(rf"^{instruction} ", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE)
