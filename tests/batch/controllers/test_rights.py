"""The rights in deploy/batch are enough: the engine runs with them alone, on a server that enforces them."""

from pathlib import Path

import yaml

from skysail.api.kinds import JOBS, Kind
from skysail.api.ports import User
from skysail.batch.config import default_configuration
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.foreign.registry import VOLCANO_GROUPS
from skysail.batch.kinds import POD_GROUPS, QUEUES, batch_definitions
from skysail.controller.customresources.installing import install
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.lease import LeaderElection
from skysail.simulator.clock import run_virtual
from skysail.testing.cluster import Cluster

MANIFEST = Path(__file__).parents[3] / "deploy" / "batch" / "batch.yaml"
ACCOUNT = User(
    "system:serviceaccount:kube-system:skysail-batch",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
)
PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles",
           "RoleBinding": "rolebindings"}  # fmt: skip


def job(name, parallelism, annotations=None):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "sky-scheduler", "restartPolicy": "Never", "containers": [container]}
    words = {"skysail.io/run-seconds": "600"} | (annotations or {})
    template = {"metadata": {"annotations": words}, "spec": spec}
    return {
        "metadata": {"name": name},
        "spec": {"parallelism": parallelism, "completions": parallelism, "template": template},
    }


def test_the_deployed_rights_are_enough_to_elect_bind_and_tell():
    async def main(clock):
        async with Cluster(seed=1, options={"authorization-mode": "RBAC"}) as cluster:
            client = cluster.client
            await install(client, (*batch_definitions(), *foreign_definitions()))
            for document in yaml.safe_load_all(MANIFEST.read_text()):
                if plural := PLURALS.get(document["kind"]):
                    namespaced = not document["kind"].startswith("Cluster")
                    kind = Kind("rbac.authorization.k8s.io", "v1", document["kind"], plural, namespaced, dict)
                    await client.create(kind, document, document["metadata"].get("namespace", ""))
            await cluster.add_nodes(2)
            await cluster.start_controllers()

            async def run(own):
                election = LeaderElection("skysail-batch", namespace="kube-system")
                elector = LeaderElector(own, election, "one", clock=cluster.clock, rng=cluster.rng)
                process = BatchProcess(
                    own, default_configuration(), clock=cluster.clock, rng=cluster.rng, elector=elector
                )
                await process.run()

            await cluster.run("batch", run, user=ACCOUNT)
            await client.create(QUEUES, {"metadata": {"name": "a"}, "spec": {}})
            await client.create(VOLCANO_GROUPS[0], {"metadata": {"name": "g"}, "spec": {"minMember": 2}}, "default")
            await client.create(JOBS, job("train", 2), "default")
            await client.create(JOBS, job("half", 1, {"scheduling.k8s.io/group-name": "g"}), "default")
            await cluster.advance(20)
            (group,) = await cluster.list(POD_GROUPS)
            assert (group.spec.min_member, group.status.phase, group.status.running) == (2, "Running", 2)
            assert (await cluster.get(QUEUES, "a", "")).status.state == "Open"
            status = (await cluster.get(VOLCANO_GROUPS[0], "g"))["status"]
            assert status["conditions"][0]["reason"] == "NotEnoughTasks"

    run_virtual(main)
