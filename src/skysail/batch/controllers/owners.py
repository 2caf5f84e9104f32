"""Which gang a pod belongs to when nobody has named one: that of its top owner.

The gang's name follows from the pod alone, without looking anything up: engine and controllers agree on it before any
object exists, and a rollout that makes a new ReplicaSet makes no new gang. The table, first match wins:

| the pod                                        | its top owner                | gang                 |
| ---------------------------------------------- | ---------------------------- | -------------------- |
| label `jobset.sigs.k8s.io/jobset-name`         | the JobSet                   | `jobset-NAME`        |
| label `leaderworkerset.sigs.k8s.io/name`       | that group of the set        | `lws-NAME-INDEX`     |
| owned by a ReplicaSet `D-HASH`, label with HASH | the Deployment `D`           | `deployment-D`       |
| owned by anything else                         | that                         | `KIND-NAME`          |
| not owned                                      | none                         | a gang of one        |
"""

from dataclasses import dataclass, replace
from typing import Final

from skysail.api.core import Pod
from skysail.api.meta import OwnerReference
from skysail.batch.foreign.pods import GANG, GROUP_WORDS, MembershipReader, said
from skysail.batch.membership import POD_GROUP
from skysail.batch.model.specs import Membership

HASH_LABEL: Final = "pod-template-hash"
JOBSET_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
LWS_LABEL: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
LONGEST: Final = 253


@dataclass(frozen=True, slots=True)
class TopOwner:
    """What a pod's gang is named for.

    Attributes:
        api_version: Of the owner.
        kind: Of the owner.
        name: Of the owner.
        group: The gang's name.
        uid: The owner's, where the pod knows it: only of its own controller.
    """

    api_version: str
    kind: str
    name: str
    group: str
    uid: str = ""


def top_owner(pod: Pod) -> TopOwner | None:
    """A pod's top owner, or None for a pod nobody owns."""
    labels = pod.metadata.labels
    if jobset := labels.get(JOBSET_LABEL):
        return TopOwner("jobset.x-k8s.io/v1alpha2", "JobSet", jobset, _named("jobset", jobset))
    if workers := labels.get(LWS_LABEL):
        group = _named("lws", f"{workers}-{labels.get(LWS_INDEX, '0')}")
        return TopOwner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", workers, group)
    owner = _controller(pod)
    if owner is None:
        return None
    suffix = f"-{labels[HASH_LABEL]}" if HASH_LABEL in labels else ""
    if owner.kind == "ReplicaSet" and suffix and owner.name.endswith(suffix):
        name = owner.name.removesuffix(suffix)
        return TopOwner(owner.api_version, "Deployment", name, _named("deployment", name))
    return TopOwner(owner.api_version, owner.kind, owner.name, _named(owner.kind.lower(), owner.name), owner.uid)


def _controller(pod: Pod) -> OwnerReference | None:
    return next((each for each in pod.metadata.owner_references if each.controller), None)


def _named(kind: str, name: str) -> str:
    return f"{kind}-{name}"[:LONGEST].rstrip("-.")


def names_its_group(pod: Pod) -> bool:
    """Whether the pod says in anybody's words which gang it is of."""
    group = pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return True
    return bool(said(pod, POD_GROUP, f"{GANG}name", *GROUP_WORDS))


class OwnerMembershipReader(MembershipReader):
    """Reads what a pod says; of a pod that names no gang, what its owner implies."""

    __slots__ = ()

    def __call__(self, pod: Pod) -> Membership:
        """Its group, role, queue."""
        found = super().__call__(pod)
        if found.group:
            return found
        owner = top_owner(pod)
        if owner is None:
            return found
        return replace(found, group=f"{pod.namespace}/{owner.group}", role=found.role or _role(pod))


def _role(pod: Pod) -> str:
    return said(pod, "training.kubeflow.org/replica-type", "jobset.sigs.k8s.io/replicatedjob-name").lower()
