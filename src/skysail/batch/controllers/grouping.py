"""What the object of a gang must say that nobody has written: its minimum, queue, priority, wishes.

The minimum, first match wins: the annotation `scheduling.skysail.io/min-member` (or Volcano's, Kueue's word) on the
owner or its pods; a batch/v1 Job's parallelism, but no more than its completions; the replicas of all roles of a
training job; the pods of all jobs of a JobSet; the size of a LeaderWorkerSet's group; else one: replicas of a service
need not start together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from skysail.api.core import Pod
from skysail.api.raw import Raw
from skysail.batch.controllers.owners import TopOwner
from skysail.batch.foreign.pods import read_any_membership, said
from skysail.batch.kinds import GROUP, VERSION, PodGroup
from skysail.batch.membership import SLA_WORDS

IMPLICIT: Final = "scheduling.skysail.io/implicit"
"""The label of gangs made here: those only are changed and removed."""
MIN_MEMBER_WORDS: Final = (
    "scheduling.skysail.io/min-member",
    "scheduling.volcano.sh/group-min-member",
    "kueue.x-k8s.io/pod-group-total-count",
)
KUEUE: Final = "kueue.x-k8s.io/"
KUEUE_PRIORITY: Final = f"{KUEUE}priority-class"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
BUNDLE: Final = "scheduling.skysail.io/bundle"
REQUIRED_WORDS: Final = (
    "scheduling.skysail.io/required-topology",
    "kai.scheduler/topology-required-placement",
    "kueue.x-k8s.io/podset-required-topology",
)
PREFERRED_WORDS: Final = (
    "scheduling.skysail.io/preferred-topology",
    "kai.scheduler/topology-preferred-placement",
    "kueue.x-k8s.io/podset-preferred-topology",
)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What to do about one gang's object.

    Attributes:
        create: The object to create.
        patch: The change to make.
        delete: Whether to remove it.
    """

    create: Raw | None = None
    patch: Raw | None = None
    delete: bool = False


NOTHING: Final = GroupPlan()


def plan_group(
    name: str, existing: PodGroup | None, pods: Sequence[Pod], owner: TopOwner | None, owner_object: Raw | None
) -> GroupPlan:
    """What the object of one gang needs.

    Args:
        name: The gang's.
        existing: Its object.
        pods: Its pods, any order.
        owner: The top owner, or None for a gang that pods name themselves.
        owner_object: The owner, if it could be read.
    """
    if existing is not None and IMPLICIT not in existing.metadata.labels:
        return NOTHING
    if not pods:
        return GroupPlan(delete=True) if existing is not None and owner_object is None else NOTHING
    first = min(pods, key=lambda pod: (pod.metadata.creation_timestamp is None, pod.name))
    if owner is None and not said(first, *MIN_MEMBER_WORDS):
        return NOTHING
    spec = wanted_spec(first, owner, owner_object)
    if existing is None:
        sla = said(with_words_of(first, owner_object or {}), *SLA_WORDS)
        return GroupPlan(
            create=_object(name, first.namespace, spec, owner, owner_object, {SLA_WORDS[0]: sla} if sla else {})
        )
    if existing.spec.min_member != spec["minMember"] or dict(existing.spec.min_task_member) != spec["minTaskMember"]:
        return GroupPlan(patch={"spec": {key: spec[key] for key in ("minMember", "minTaskMember")}})
    return NOTHING


def wanted_spec(pod: Pod, owner: TopOwner | None, owner_object: Raw | None) -> Raw:
    """The spec of an implied gang, from one of its pods and its owner."""
    said_of = read_any_membership(with_words_of(pod, owner_object or {}))
    roles = role_sizes(owner_object or {})
    spec: Raw = {"minMember": minimum(pod, owner, owner_object or {}), "minTaskMember": {}}
    if roles and sum(roles.values()) == spec["minMember"]:
        spec["minTaskMember"] = roles
    if said_of.queue:
        spec["queue"] = said_of.queue
    if said_of.job_queue:
        spec["jobQueue"] = said_of.job_queue
    if priority := said(with_words_of(pod, owner_object or {}), KUEUE_PRIORITY) or pod.spec.priority_class_name:
        spec["priorityClassName"] = priority
    if said_of.preemptible is False:
        spec["preemptibility"] = "NonPreemptible"
    if bundle := said(pod, BUNDLE):
        spec["bundle"] = bundle
    return spec | _topology(pod) | _slices(pod, int(spec["minMember"])) | _length(owner_object or {})


def with_words_of(pod: Pod, owner: Raw) -> Pod:
    """A pod that says, beside its own words, what only its owner says: Kueue labels the Job, not its pods."""
    metadata = owner.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **pod.metadata.labels}
    annotations = {**(metadata.get("annotations") or {}), **pod.metadata.annotations}
    return replace(pod, metadata=replace(pod.metadata, labels=labels, annotations=annotations))


def _topology(pod: Pod) -> Raw:
    required, preferred = said(pod, *REQUIRED_WORDS), said(pod, *PREFERRED_WORDS)
    if required or preferred:
        wish = {"requiredTopologyLevel": required, "preferredTopologyLevel": preferred}
        return {"topologyConstraint": {key: level for key, level in wish.items() if level}}
    mode = said(pod, "volcano.sh/network-topology-mode")
    if mode not in ("hard", "soft"):
        return {}
    tier = said(pod, "volcano.sh/network-topology-highest-tier")
    return {"networkTopology": {"mode": mode} | ({"highestTierAllowed": int(tier)} if tier.isdecimal() else {})}


def _slices(pod: Pod, members: int) -> Raw:
    """Kueue's slices: so many pods after each other, by completion index, share a domain of a level."""
    level, size = said(pod, f"{KUEUE}podset-slice-required-topology"), said(pod, f"{KUEUE}podset-slice-size")
    if not level or not size.isdecimal() or not 0 < int(size) <= members:
        return {}
    return {
        "subGroups": [
            {
                "name": f"slice-{first // int(size)}",
                "minMember": min(int(size), members - first),
                "size": int(size),
                "topologyConstraint": {"requiredTopologyLevel": level},
                "labelSelector": _indexes(range(first, min(first + int(size), members))),
            }
            for first in range(0, members, int(size))
        ]
    }


def _indexes(numbers: range) -> Raw:
    values = [str(number) for number in numbers]
    return {"matchExpressions": [{"key": COMPLETION_INDEX, "operator": "In", "values": values}]}


def _length(owner: Raw) -> Raw:
    """How long it runs at most, where the owner says so: lets it pass a blocked head."""
    spec = owner.get("spec") or {}
    seconds = spec.get("activeDeadlineSeconds") or (spec.get("runPolicy") or {}).get("activeDeadlineSeconds")
    return {"maximumExecutionTime": seconds} if isinstance(seconds, int) else {}


def minimum(pod: Pod, owner: TopOwner | None, owner_object: Raw) -> int:
    """How many members must start together."""
    metadata = owner_object.get("metadata") or {}
    for words in (metadata.get("annotations") or {}, metadata.get("labels") or {}):
        for word in MIN_MEMBER_WORDS:
            if str(words.get(word, "")).isdecimal():
                return int(words[word])
    text = said(pod, *MIN_MEMBER_WORDS)
    if text.isdecimal():
        return int(text)
    return _by_kind(owner.kind, owner_object.get("spec") or {}) if owner is not None else 1


def _by_kind(kind: str, spec: Raw) -> int:
    if "tasks" in spec:  # Volcano's
        return int(spec.get("minAvailable") or sum(int(each.get("replicas", 1)) for each in spec["tasks"]))
    if kind == "Job":
        parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
        completions = spec.get("completions")
        return parallelism if completions is None else min(parallelism, int(completions))
    if kind == "LeaderWorkerSet":
        return int((spec.get("leaderWorkerTemplate") or {}).get("size") or 1)
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    if isinstance(policy.get("minAvailable"), int):
        return int(policy["minAvailable"])
    return sum(role_sizes({"spec": spec}).values()) or 1


def role_sizes(owner: Raw) -> dict[str, int]:
    """How many pods of each role an owner makes: of a training job's replica specs, or a JobSet's jobs."""
    spec = owner.get("spec") or {}
    found: dict[str, int] = {}
    for field, roles in spec.items():
        if field.endswith("ReplicaSpecs") and isinstance(roles, Mapping):
            for role, each in roles.items():
                replicas = (each or {}).get("replicas")
                found[str(role).lower()] = 1 if replicas is None else int(replicas)
    for each in spec.get("tasks") or ():
        found[str(each.get("name", "")).lower()] = int(each.get("replicas", 1))
    for each in spec.get("replicatedJobs") or ():
        job = (each.get("template") or {}).get("spec") or {}
        count = 1 if each.get("replicas") is None else int(each["replicas"])
        found[str(each.get("name", "")).lower()] = count * _by_kind("Job", job)
    return found


def _object(
    name: str,
    namespace: str,
    spec: Raw,
    owner: TopOwner | None,
    owner_object: Raw | None,
    annotations: Mapping[str, str],
) -> Raw:
    metadata: Raw = {"name": name, "namespace": namespace, "labels": {IMPLICIT: "true"}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if owner is not None:
        known = (owner_object or {}).get("metadata") or {}
        uid = known.get("uid") or owner.uid
        if uid:
            reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": uid}
            metadata["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": False}]
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "PodGroup", "metadata": metadata, "spec": spec}
