"""What an editor knows: nested attributes of API objects are typed, held by pyright in strict mode."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from collections.abc import Mapping
from typing import assert_type

from skysail.api.apps import Deployment
from skysail.api.core import Container, Pod
from skysail.api.kinds import PODS
from skysail.client.api_client import ApiClient


def requests_of(pod: Pod) -> Mapping[str, str]:
    assert_type(pod.spec.containers[0], Container)
    return pod.spec.containers[0].resources.requests if pod.spec.containers[0].resources else {}


async def first_node(client: ApiClient, deployment: Deployment) -> str:
    assert_type(deployment.spec.replicas, int | None)
    pods = await client.list(PODS, deployment.namespace)
    assert_type(pods.items, tuple[Pod, ...])
    return pods.items[0].spec.node_name
"""


def pyright(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    settings = '{"typeCheckingMode": "strict"}'
    (folder / "pyrightconfig.json").write_text(settings)
    command = [sys.executable, "-m", "basedpyright", "--project", str(folder), "--pythonpath", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_pyright_strict_knows_every_nested_attribute(tmp_path: Path) -> None:
    done = pyright(PROGRAM, tmp_path)
    assert done.returncode == 0, done.stdout


def test_pyright_refuses_a_misspelt_one(tmp_path: Path) -> None:
    done = pyright(PROGRAM.replace("spec.node_name", "spec.nodename"), tmp_path)
    assert done.returncode == 1
    assert '"nodename"' in done.stdout
