"""The objects kube-apiserver itself creates at its first start, and nothing else.

Source: pkg/controlplane (system namespaces, kubernetes service), pkg/registry/scheduling/rest, v1.36.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from random import Random

from skysail.api.ports import Clock, User
from skysail.api.raw import Raw
from skysail.apiserver.bootstrap_rbac import rbac_documents
from skysail.apiserver.contract import GroupResource, RequestContext
from skysail.apiserver.registry import Registry

SYSTEM = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
DEFAULT_SERVICE_CIDR = "10.0.0.0/24"
_PRIORITIES = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def bootstrap(registry: Registry, clock: Clock, rng: Random, options: Mapping[str, str]) -> None:
    """Create what is missing."""
    wanted = list(_documents(options.get("service-cidr", DEFAULT_SERVICE_CIDR)))
    if options.get("authorization-mode") == "RBAC":
        wanted += rbac_documents(registry.schema)
    for resource, namespace, document in wanted:
        name = document["metadata"]["name"]
        if registry.get(resource, namespace, name) is not None:
            continue
        ctx = RequestContext(
            user=SYSTEM,
            now=clock.now(),
            rng=rng,
            reader=registry,
            resource=registry.handle_of(resource).resource,
            verb="create",
            namespace=namespace or (name if resource.resource == "namespaces" else ""),
            name=name,
            field_manager="kube-apiserver",
            field_validation="Strict",
            options=options,
        )
        registry.create(resource, namespace, document, ctx)


def _documents(service_cidr: str) -> Iterator[tuple[GroupResource, str, Raw]]:
    for name in NAMESPACES:
        yield GroupResource("", "namespaces"), "", {"metadata": {"name": name}}
    for name, value, description in _PRIORITIES:
        yield (
            GroupResource("scheduling.k8s.io", "priorityclasses"),
            "",
            {"metadata": {"name": name}, "value": value, "description": description},
        )
    first = str(next(ipaddress.ip_network(service_cidr).hosts()))
    labels = {"component": "apiserver", "provider": "kubernetes"}
    yield (
        GroupResource("", "services"),
        "default",
        {
            "metadata": {"name": "kubernetes", "labels": labels},
            "spec": {
                "clusterIP": first,
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "ipFamilyPolicy": "SingleStack",
            },
        },
    )
