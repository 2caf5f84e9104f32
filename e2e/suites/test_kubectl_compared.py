"""The same kubectl commands to the real server and to the embedded one: the same words come back.

No controllers run on either. What differs by nature - ages, uids, versions, generated parts of names - is masked.
"""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from e2e.harness.control_plane import ControlPlane
from tests.e2e.running import KUBECTL, start_apiserver, stop

MANIFESTS = Path(__file__).resolve().parents[2] / "tests" / "e2e" / "manifests"
COMMANDS = """
get ns
get ns -o yaml
api-versions
create configmap cm --from-literal=a=b
get cm cm -o yaml
create configmap cm --from-literal=a=b
label cm cm tier=front
annotate cm cm note=hi
patch cm cm --type=json -p '[{"op":"replace","path":"/data/a","value":"c"}]'
patch cm cm -p '{"data":{"d":null,"e":"f"}}'
get cm cm -o yaml
apply -f dep.yaml
get deploy,rs,pods
get deploy web -o yaml
apply -f dep.yaml
diff -f dep2.yaml
apply -f dep2.yaml
get deploy web -o wide
scale deployment/web --replicas=5
set image deployment/web c=nginx:2
rollout history deployment/web
apply --server-side -f ssa.yaml
apply --server-side --field-manager=other -f ssa.yaml
apply --server-side --field-manager=third -f dep2.yaml
get deploy ssa -o yaml --show-managed-fields
create deployment cd --image=nginx --port=80
expose deployment cd --port=80
create job j --image=busybox
get jobs
create cronjob cj --image=busybox '--schedule=0 0 1 1 *'
get cronjob cj -o yaml
create quota q --hard=pods=2
get quota q
create pdb pdb1 --selector=app=web --min-available=1
get pdb
create priorityclass pc1 --value=1000
get pc
run one --image=nginx --restart=Never
get pod one -o yaml
get pods --field-selector status.phase=Pending
get pods --field-selector spec.bogus=x
run one --image=nginx
set resources deployment/cd --requests=cpu=lots
apply -f crd.yaml
wait --for=condition=Established crd/gizmos.sky.example.com --timeout=20s
apply -f gz.yaml
get gizmos
patch gizmo g1 --type=merge -p '{"spec":{"size":"large"}}'
get gz g1 -o yaml
delete gizmo g1
delete crd gizmos.sky.example.com
get pod nosuch
get nosuchtype
auth can-i create pods
auth whoami
delete pod one --grace-period=0 --force
delete deploy web --cascade=orphan --wait=false
delete -f dep3.yaml
explain deployment.spec.nosuch
create -f pruned/kept.yaml --dry-run=server -o yaml
delete cm,quota,pdb --all
"""
_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000"), "TIME"),
    (re.compile(r"resourceVersion: \"\d+\""), "VERSION"),
    (re.compile(r"\b10\.0\.0\.\d+"), "CLUSTERIP"),
    (re.compile(r"\b\d+m?s\b|<unknown>"), "AGE"),
    (re.compile(r"/tmp/\S+"), "PATH"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r" +"), " "),
)


def say(kubeconfig: Path, command: str) -> str:
    done = subprocess.run(
        [str(KUBECTL), "--kubeconfig", str(kubeconfig), *shlex.split(command)],
        capture_output=True, text=True, cwd=MANIFESTS, timeout=60, check=False,
    )  # fmt: skip
    text = f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


@pytest.fixture
def embedded(tmp_path: Path):
    running = start_apiserver(tmp_path)
    yield running.kubeconfig
    stop(running)


def test_kubectl_hears_the_same_words(control_plane: ControlPlane, embedded: Path) -> None:
    different = []
    for command in COMMANDS.strip().splitlines():
        real, ours = say(control_plane.kubeconfig, command), say(embedded, command)
        if real != ours:
            different.append(f"kubectl {command}\n--- real\n{real}\n--- embedded\n{ours}")
    assert different == [], "\n\n".join(different)
