"""Definitions that let a server without those systems take their objects: everything is kept, nothing is checked.

For `skysail up`, demonstrations and tests. A cluster that runs Volcano, Kueue or KAI has their own, stricter ones.
"""

from typing import Final

from skysail.api.raw import Raw
from skysail.batch.foreign.registry import (
    CLUSTER_QUEUES,
    COHORTS,
    COSCHEDULING_GROUPS,
    ELASTIC_QUOTAS,
    FLAVORS,
    KAI_GROUPS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    RESERVATIONS,
    VOLCANO_GROUPS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITIES,
    WORKLOADS,
    RawKind,
)

_TABLE: Final[tuple[tuple[RawKind, ...], ...]] = (
    VOLCANO_QUEUES,
    VOLCANO_GROUPS,
    CLUSTER_QUEUES,
    COHORTS,
    LOCAL_QUEUES,
    FLAVORS,
    KAI_QUEUES,
    KAI_GROUPS,
    COSCHEDULING_GROUPS,
    ELASTIC_QUOTAS[:1],
    ELASTIC_QUOTAS[1:],
    WORKLOAD_PRIORITIES,
    WORKLOADS,
    RESERVATIONS,
)
_ANYTHING: Final[Raw] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
_APPROVAL: Final = {"api-approved.kubernetes.io": "unapproved, a stand-in that keeps everything and checks nothing"}


def foreign_definitions() -> tuple[Raw, ...]:
    """One definition for each kind of another system, all its versions served, the newest stored."""
    return tuple(_definition(versions) for versions in _TABLE)


def _definition(versions: tuple[RawKind, ...]) -> Raw:
    newest = versions[0]
    metadata: Raw = {"name": newest.resource}
    if newest.group.endswith(".k8s.io"):
        metadata["annotations"] = dict(_APPROVAL)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": newest.group,
            "names": {
                "kind": newest.name,
                "listKind": f"{newest.name}List",
                "plural": newest.plural,
                "singular": newest.name.lower(),
            },
            "scope": "Namespaced" if newest.namespaced else "Cluster",
            "versions": [
                {
                    "name": each.version,
                    "served": True,
                    "storage": each is newest,
                    "schema": _ANYTHING,
                    "subresources": {"status": {}},
                }
                for each in versions
            ],
        },
    }
