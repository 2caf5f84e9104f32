"""The small bodies that verbs send beside objects: how to delete, what to bind, whom to evict."""

from enum import StrEnum

from skysail.api.raw import Raw


class PatchType(StrEnum):
    """How a patch is to be read; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


JSON = PatchType.JSON
MERGE = PatchType.MERGE
STRATEGIC = PatchType.STRATEGIC
APPLY = PatchType.APPLY


def delete_options(
    *,
    propagation: str = "",
    grace_period_seconds: int | None = None,
    uid: str = "",
    resource_version: str = "",
    dry_run: bool = False,
) -> Raw:
    """metav1.DeleteOptions; `uid` and `resource_version` say which object, not just which name, is meant."""
    options: Raw = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    preconditions = {"uid": uid} if uid else {}
    if resource_version:
        preconditions["resourceVersion"] = resource_version
    if preconditions:
        options["preconditions"] = preconditions
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def binding(namespace: str, name: str, uid: str, node_name: str) -> Raw:
    """A v1 Binding: this very pod (by uid, when given) goes to that node."""
    metadata = {"name": name, "namespace": namespace}
    if uid:
        metadata["uid"] = uid
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def eviction(namespace: str, name: str, options: Raw) -> Raw:
    """A policy/v1 Eviction."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
