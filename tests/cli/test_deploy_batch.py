"""deploy/batch as it is applied: by a server that checks every field, and by the command it starts."""

import inspect
import json

import yaml

from skysail.api.ports import Request
from skysail.apiserver.authentication import ADMIN
from skysail.batch.config import load_configuration
from skysail.cli import batch
from skysail.simulator.clock import run_virtual
from skysail.testing.cluster import Cluster
from tests.cli.test_batch_command import ROOT

FOLDER = ROOT / "deploy" / "batch"
PATHS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments",
    "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/kube-system/configmaps",
    "Secret": "/api/v1/namespaces/kube-system/secrets",
}


def documents(folder=FOLDER):
    found = []
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = folder / name
        found += documents(path) if path.is_dir() else filter(None, yaml.safe_load_all(path.read_text()))
    return found


def of_kind(kind):
    (found,) = [each for each in documents() if each["kind"] == kind]
    return found


def test_a_server_that_knows_every_field_takes_all_of_it():
    async def main(clock):
        async with Cluster(seed=1) as cluster:
            for document in documents():
                request = Request(
                    "POST", PATHS[document["kind"]], (("fieldValidation", "Strict"),),
                    {"content-type": "application/json"}, json.dumps(document).encode(),
                )  # fmt: skip
                response = await cluster.server.handle(request, ADMIN)
                assert response.status == 201, (document["kind"], document["metadata"]["name"], response.body)

    run_virtual(main)


def test_its_configuration_is_one_the_engine_takes():
    text = of_kind("ConfigMap")["data"]["batch.yaml"]
    assert load_configuration(text, "batch.yaml").actions[0].name == "allocateJob"


def test_its_command_uses_options_there_are():
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    program, verb, *options = container["command"]
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(batch.batch).parameters}
    assert (program, verb) == ("skysail", "batch")
    assert {option.partition("=")[0] for option in options} <= known
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    files = [option.partition("=")[2] for option in options if "=/" in option]
    assert [file for file in files if file.rpartition("/")[0] not in mounts] == []


def test_the_lease_it_may_write_is_the_one_it_holds():
    (named,) = [rule["resourceNames"] for rule in of_kind("Role")["rules"] if "resourceNames" in rule]
    assert named == [batch.NAME]
    assert of_kind("Deployment")["spec"]["replicas"] == 2
