"""Least privilege: what the engine asks of a server, recorded, is what deploy/batch grants, no less and little more.

Informers watch from the beginning where a server can, so that `list` is granted beside every `watch` for those that
cannot.
"""

from pathlib import Path

import yaml

from skysail.api.kinds import DEPLOYMENTS, JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, Kind
from skysail.api.ports import Request
from skysail.apiserver.authentication import ADMIN
from skysail.batch.config import default_configuration
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.foreign.registry import (
    CLUSTER_QUEUES,
    COSCHEDULING_GROUPS,
    ELASTIC_QUOTAS,
    FLAVORS,
    KAI_GROUPS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    RESERVATIONS,
    VOLCANO_GROUPS,
    VOLCANO_QUEUES,
    WORKLOADS,
)
from skysail.batch.kinds import JOB_QUEUES, QUEUES, QUOTAS, batch_definitions
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.controller.customresources.installing import install
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.lease import LeaderElection
from skysail.simulator.clock import run_virtual
from skysail.testing.calls import call_of
from skysail.testing.cluster import Cluster

MANIFEST = Path(__file__).parents[3] / "deploy" / "batch" / "batch.yaml"
GRANTED_UNUSED_HERE = {
    # owners of kinds this server does not have, and of pods that the test does not make
    ("apps", "replicasets", "get"), ("apps", "statefulsets", "get"), ("apps", "daemonsets", "get"),
    ("kubeflow.org", "*", "get"), ("jobset.x-k8s.io", "*", "get"), ("leaderworkerset.x-k8s.io", "*", "get"),
    ("ray.io", "*", "get"),
    # upstream's gangs, alpha: the server does not serve them
    ("scheduling.k8s.io", "podgroups", "watch"),
    ("scheduling.k8s.io", "podgroups/status", "patch"),
    # volumes that wait for their first consumer; events of which several are one
    ("", "persistentvolumeclaims", "get"), ("", "persistentvolumeclaims", "patch"),
    ("", "persistentvolumes", "get"), ("", "persistentvolumes", "patch"), ("", "events", "patch"),
    ("events.k8s.io", "events", "create"), ("events.k8s.io", "events", "patch"),
    # an owner that the cache does not have yet
    ("batch", "jobs", "get"),
}  # fmt: skip


def granted():
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    return {
        (group, resource, verb)
        for document in documents
        if document["kind"] in ("ClusterRole", "Role")
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(request: Request):
    call = call_of(request)
    parts = request.path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    return group, f"{call.resource}/{call.subresource}" if call.subresource else call.resource, call.verb


def pod(name, labels=None, annotations=None, cpu="1", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"schedulerName": "sky-scheduler", "containers": [container], **spec}}


def job(name, labels=None, *, suspend=False, count=2, **more):
    template = pod("", **more)
    template["spec"]["restartPolicy"] = "Never"
    template["metadata"].pop("name")
    template["metadata"]["annotations"] |= {"skysail.io/run-seconds": "600"}
    spec = {"parallelism": count, "completions": count, "suspend": suspend, "template": template}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


async def make_everything(client):
    """Objects of every kind the engine reads or writes a status of, and pods that make it bind and evict."""
    await client.create(QUEUES, {"metadata": {"name": "a"}, "spec": {"deserved": {"cpu": 32}}})
    await client.create(QUEUES, {"metadata": {"name": "b"}, "spec": {"deserved": {"cpu": 32}}})
    await client.create(JOB_QUEUES, {"metadata": {"name": "line"}, "spec": {"queue": "a"}}, "default")
    await client.create(QUOTAS, {"metadata": {"name": "slot"}, "spec": {"queue": "a", "resources": {"cpu": 1},
                        "owners": [{"labelSelector": {"matchLabels": {"x": "y"}}}]}}, "default")  # fmt: skip
    await client.create(FLAVORS[0], {"metadata": {"name": "f"}})
    await client.create(CLUSTER_QUEUES[0], {"metadata": {"name": "cq"}, "spec": {}})
    await client.create(LOCAL_QUEUES[0], {"metadata": {"name": "lq"}, "spec": {"clusterQueue": "cq"}}, "default")
    await client.create(WORKLOADS[0], {"metadata": {"name": "job-borrower"}, "spec": {}}, "default")
    await client.create(KAI_QUEUES[0], {"metadata": {"name": "kai"}, "spec": {}})
    await client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "v"}, "spec": {}})
    for group in ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io"):
        (kind,) = [each for each in ELASTIC_QUOTAS if each.group == group]
        await client.create(kind, {"metadata": {"name": "e"}, "spec": {"min": {"cpu": 1}}}, "kube-public")
    for kind in (VOLCANO_GROUPS[0], KAI_GROUPS[0], COSCHEDULING_GROUPS[0]):
        name = f"g-{kind.group.split('.')[1]}"
        await client.create(kind, {"metadata": {"name": name}, "spec": {"minMember": 3}}, "default")
        await client.create(PODS, pod(f"p-{name}", annotations={"scheduling.k8s.io/group-name": name}), "default")
    containers = [{"resources": {"requests": {"cpu": "1"}}}]
    owners = [{"labelSelector": {"matchLabels": {"nobody": "here"}}}]
    spec = {"template": {"spec": {"containers": containers}}, "owners": owners}
    await client.create(RESERVATIONS[0], {"metadata": {"name": "r"}, "spec": spec})
    await client.create(JOBS, job("borrower", count=5, cpu="10", labels={}, annotations={
        "scheduling.skysail.io/queue": "b", "scheduling.skysail.io/min-member": "1"}), "default")  # fmt: skip
    await client.create(JOBS, job("grows", labels={"scheduling.skysail.io/job-queue": "line"}), "default")
    await client.create(JOBS, job("kueues", {"kueue.x-k8s.io/queue-name": "lq"}, suspend=True), "default")
    claim = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
             "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim, "default")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    await client.create(PODS, pod("volume", volumes=volumes), "default")
    template = pod("", labels={"app": "web"})
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await client.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "default")


class Recording:
    """A transport that remembers what was asked."""

    def __init__(self, inner, seen):
        self._inner, self._seen = inner, seen

    async def request(self, request):
        self._seen.add(asked(request))
        return await self._inner.request(request)

    def stream(self, request):
        self._seen.add(asked(request))
        return self._inner.stream(request)


def record(seen):
    async def main(clock):
        async with Cluster(seed=1) as cluster:
            client = cluster.client
            await install(client, (*batch_definitions(), *foreign_definitions()))
            await cluster.add_nodes(2)
            await cluster.start_controllers()

            async def run(_):
                transport = Recording(InProcessTransport(cluster.server, ADMIN), seen)
                own = ApiClient(transport, user_agent="batch", clock=cluster.clock, rng=cluster.rng)
                election = LeaderElection("skysail-batch", namespace="kube-system")
                elector = LeaderElector(own, election, "one", clock=cluster.clock, rng=cluster.rng)
                process = BatchProcess(
                    own, default_configuration(), clock=cluster.clock, rng=cluster.rng, elector=elector
                )
                await process.run()

            await cluster.run("batch", run)
            await make_everything(client)
            await cluster.advance(10)
            await client.create(PODS, pod("owner", cpu="20", labels={"scheduling.skysail.io/queue": "a"}), "default")
            await cluster.advance(20)
            await client.patch(JOBS, "borrower", "default", {"spec": {"parallelism": 2}})
            await client.patch(JOBS, "grows", "default", {"spec": {"parallelism": 1}})
            await client.delete(Kind("apps", "v1", "Deployment", "deployments", True, dict), "web", "default")
            await cluster.advance(60)

    run_virtual(main)


def test_what_the_engine_asks_for_is_granted_and_hardly_anything_else():
    seen = set()
    record(seen)
    allowed = granted()
    assert {("", "pods/eviction", "create"), ("", "pods/binding", "create")} <= seen
    assert sorted(seen - allowed) == []
    lists = {(group, resource, "list") for group, resource, verb in seen if verb == "watch"}
    assert sorted(allowed - seen - lists - GRANTED_UNUSED_HERE) == []
