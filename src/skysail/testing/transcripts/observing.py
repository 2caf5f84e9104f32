"""What is there, in the transcript's own form.

Times become `true`, empty fields and zero-length lists are left out, generated names become aliases, and pods become a
multiset: equal pods are one entry with a count.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from skysail.api.raw import Raw
from skysail.testing.transcripts.naming import Names

_GENERATED_LABELS = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "job-name",
        "controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
_NODE_LABELS = ("kubernetes.io/", "beta.kubernetes.io/")
_DEPLOYMENT_ANNOTATION = "deployment.kubernetes.io/"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_INDEX = "batch.kubernetes.io/job-completion-index"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"

Sight = Callable[[Raw, Names], Raw]


def plain(obj: Raw, **more: Any) -> Raw:
    """The parts every kind shows, with some of its own; what is empty or None is left out."""
    meta = obj["metadata"]
    seen = {
        **more,
        "deleting": True if meta.get("deletionTimestamp") else None,
        "finalizers": meta.get("finalizers"),
    }
    return {key: value for key, value in seen.items() if value is not None and value not in ({}, [])}


def owners(obj: Raw, names: Names) -> list[Raw]:
    """Owner references by kind and alias."""
    return [
        {
            "kind": ref["kind"],
            "name": names.of(ref["name"]),
            **{key: ref[key] for key in ("controller", "blockOwnerDeletion") if key in ref},
        }
        for ref in obj["metadata"].get("ownerReferences") or ()
    ]


def conditions(obj: Raw, names: Names, parts: int = 4) -> list[list[str]]:
    """Conditions as sorted lists of type, status, reason and message."""
    found = [
        [item["type"], item["status"], item.get("reason", ""), names.text(item.get("message", ""))][:parts]
        for item in obj.get("status", {}).get("conditions") or ()
    ]
    return sorted(found)


def status(obj: Raw, names: Names, *left_out: str) -> Raw:
    """The status without conditions and empty parts; times are `true`, revisions aliases."""
    found = {}
    for key, value in obj.get("status", {}).items():
        if key in ("conditions", *left_out) or value in ({}, [], None):
            continue
        found[key] = True if key.endswith("Time") else names.of(value) if isinstance(value, str) else value
    return found


def _image(obj: Raw) -> str:
    template = obj["spec"].get("template", {}).get("spec", {})
    return str((template.get("containers") or [{}])[0].get("image", ""))


def _deployment(obj: Raw, names: Names) -> Raw:
    annotations = obj["metadata"].get("annotations") or {}
    return {
        "spec.replicas": obj["spec"].get("replicas"),
        "image": _image(obj),
        "generation": obj["metadata"].get("generation"),
        "revision": annotations.get(f"{_DEPLOYMENT_ANNOTATION}revision"),
        "paused": obj["spec"].get("paused") or None,
        "status": status(obj, names),
        "conditions": conditions(obj, names),
        "ownerReferences": owners(obj, names),
    }


def _replica_set(obj: Raw, names: Names) -> Raw:
    meta, annotations = obj["metadata"], obj["metadata"].get("annotations") or {}
    ours = {key.removeprefix(_DEPLOYMENT_ANNOTATION): value for key, value in annotations.items() if _is_ours(key)}
    return {
        "spec.replicas": obj["spec"].get("replicas"),
        "image": _image(obj),
        "minReadySeconds": obj["spec"].get("minReadySeconds") or None,
        "status": status(obj, names, "observedGeneration"),
        "conditions": conditions(obj, names),
        "annotations": ours,
        "otherAnnotations": {key: value for key, value in annotations.items() if not _is_ours(key)},
        "ownerReferences": owners(obj, names),
        "observed": obj.get("status", {}).get("observedGeneration") == meta.get("generation"),
    }


def _is_ours(annotation: str) -> bool:
    return annotation.startswith(_DEPLOYMENT_ANNOTATION)


def _stateful_set(obj: Raw, names: Names) -> Raw:
    return {
        "spec.replicas": obj["spec"].get("replicas"),
        "image": _image(obj),
        "generation": obj["metadata"].get("generation"),
        "status": status(obj, names),
        "conditions": conditions(obj, names),
    }


def _daemon_set(obj: Raw, names: Names) -> Raw:
    return {
        "image": _image(obj),
        "generation": obj["metadata"].get("generation"),
        "status": status(obj, names),
        "conditions": conditions(obj, names),
    }


def _job(obj: Raw, names: Names) -> Raw:
    return {
        "parallelism": obj["spec"].get("parallelism"),
        "completions": obj["spec"].get("completions"),
        "suspend": obj["spec"].get("suspend") or None,
        "status": status(obj, names, "uncountedTerminatedPods"),
        "conditions": conditions(obj, names),
        "ownerReferences": owners(obj, names),
    }


def _budget(obj: Raw, names: Names) -> Raw:
    return {
        "generation": obj["metadata"].get("generation"),
        "status": status(obj, names, "disruptedPods"),
        "conditions": conditions(obj, names),
    }


def _revision(obj: Raw, names: Names) -> Raw:
    return {"revision": obj.get("revision"), "ownerReferences": owners(obj, names)}


def _owned(obj: Raw, names: Names) -> Raw:
    return {"ownerReferences": owners(obj, names)}


def _quota(obj: Raw, names: Names) -> Raw:
    return {"hard": obj.get("status", {}).get("hard"), "used": obj.get("status", {}).get("used")}


def _node(obj: Raw, names: Names) -> Raw:
    all_labels = obj["metadata"].get("labels") or {}
    labels = {key: value for key, value in all_labels.items() if not key.startswith(_NODE_LABELS)}
    taints = [
        f"{item['key']}={item.get('value', '')}:{item['effect']}" for item in obj.get("spec", {}).get("taints") or ()
    ]
    return {
        "labels": labels,
        "unschedulable": obj.get("spec", {}).get("unschedulable") or None,
        "taints": sorted(taints),
        "conditions": conditions(obj, names, 3),
    }


SIGHTS: Mapping[str, tuple[str, Sight]] = {
    "Deployment": ("deployments", _deployment),
    "ReplicaSet": ("replicasets", _replica_set),
    "StatefulSet": ("statefulsets", _stateful_set),
    "DaemonSet": ("daemonsets", _daemon_set),
    "ControllerRevision": ("controllerrevisions", _revision),
    "Job": ("jobs", _job),
    "CronJob": ("cronjobs", lambda obj, names: {"status": status(obj, names)}),
    "PodDisruptionBudget": ("poddisruptionbudgets", _budget),
    "ConfigMap": ("configmaps", _owned),
    "PersistentVolumeClaim": ("persistentvolumeclaims", _owned),
    "ResourceQuota": ("resourcequotas", _quota),
    "Node": ("nodes", _node),
}
"""By kind: the key it has in a state, and how its objects are seen."""


def see(kind: str, objects: Iterable[Raw], names: Names) -> Raw:
    """All objects of a kind that a state shows, by alias."""
    sight = SIGHTS[kind][1]
    return {
        names.of(obj["metadata"]["name"]): plain(obj, **sight(obj, names))
        for obj in objects
        if obj["metadata"]["name"] != "kube-root-ca.crt"
    }


def see_pod(pod: Raw, names: Names, born: int, ready_at: int | None, condition_types: frozenset[str]) -> Raw:
    """One pod.

    Args:
        pod: As the server has it.
        names: Aliases.
        born: The step in which it first appeared.
        ready_at: The step in which an action last made it ready.
        condition_types: The conditions that are shown.
    """
    meta, spec, state = pod["metadata"], pod["spec"], pod.get("status", {})
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    listed = state.get("conditions") or ()
    revision = labels.get("controller-revision-hash")
    return plain(
        pod,
        alias=names.of(meta["name"]),
        born=born,
        image=(spec.get("containers") or [{}])[0].get("image"),
        labels={key: value for key, value in labels.items() if key not in _GENERATED_LABELS},
        node=spec.get("nodeName"),
        targetNode=None if spec.get("nodeName") else target_node(pod),
        ownerReferences=owners(pod, names),
        phase=state.get("phase"),
        ready=any(item["type"] == "Ready" and item["status"] == "True" for item in listed),
        readyAt=ready_at,
        revision=_revision_alias(pod, revision, names) if revision else None,
        index=annotations.get(_INDEX),
        failureCount=annotations.get(_FAILURES),
        deletionCost=annotations.get(_DELETION_COST),
        podConditions=sorted(
            [item["type"], item["status"], item.get("reason", "")] for item in listed if item["type"] in condition_types
        ),
    )


def _revision_alias(pod: Raw, revision: str, names: Names) -> str:
    """A stateful set's pods bear the revision's name, a daemon set's only its hash, orphans or not."""
    meta = pod["metadata"]
    owner = next((ref["name"] for ref in meta.get("ownerReferences") or () if ref.get("controller")), "")
    owner = owner or meta.get("generateName", "").removesuffix("-")
    alias = names.of(revision)
    return alias if alias != revision else names.of(f"{owner}-{revision}")


def target_node(pod: Raw) -> str | None:
    """The node a daemon set's pod is meant for."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name":
                return str(field["values"][0])
    return None


def multiset(pods: Iterable[Raw]) -> list[Raw]:
    """Equal pods as one with a count, in a fixed order."""
    counts: dict[bytes, int] = {}
    for pod in pods:
        key = msgspec.json.encode(pod, order="sorted")
        counts[key] = counts.get(key, 0) + 1
    return [{**msgspec.json.decode(key), "count": count} for key, count in sorted(counts.items())]
