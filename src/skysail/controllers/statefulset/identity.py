"""Which pod of a stateful set is which, and what it must look like.

Source: pkg/controller/statefulset/stateful_set_utils.go, v1.36.
"""

import re

import msgspec

from skysail.api.apps import StatefulSet
from skysail.api.core import Pod
from skysail.api.kinds import STATEFULSETS
from skysail.api.raw import Raw
from skysail.controllers.history.revisions import REVISION_LABEL
from skysail.controllers.statefulset.claims import claim_names
from skysail.controllers.templates import controller_reference, pod_from_template

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]+)")


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """The set's name and the ordinal that a pod's name says; `("", -1)` for a name of another form."""
    match = _NAME.fullmatch(name)
    if match is None:
        return "", -1
    ordinal = int(match[2])
    return match[1], ordinal if ordinal < 2**31 else -1


def ordinal_of(pod: Pod) -> int:
    """The pod's ordinal; -1 without one."""
    return parent_and_ordinal(pod.name)[1]


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's name says that it belongs to the set."""
    return parent_and_ordinal(pod.name)[0] == stateful_set.name


def first_ordinal(stateful_set: StatefulSet) -> int:
    """The lowest ordinal."""
    return stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0


def wanted_replicas(stateful_set: StatefulSet) -> int:
    """How many pods are wanted."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def ordinals(stateful_set: StatefulSet) -> range:
    """The ordinals that are wanted."""
    start = first_ordinal(stateful_set)
    return range(start, start + wanted_replicas(stateful_set))


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    """The name of the pod of an ordinal."""
    return f"{stateful_set.name}-{ordinal}"


def revision_of(pod: Pod) -> str:
    """The name of the revision the pod was made from."""
    return pod.metadata.labels.get(REVISION_LABEL, "")


def identity_matches(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether name and label of the pod are those of its ordinal."""
    return is_member(stateful_set, pod) and pod.metadata.labels.get(POD_NAME_LABEL) == pod.name


def identity_labels(pod: Pod) -> dict[str, str]:
    """The labels that go with a pod's identity."""
    return {POD_NAME_LABEL: pod.name, INDEX_LABEL: str(ordinal_of(pod))}


def storage_matches(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether the pod mounts the claims of its ordinal."""
    mounted = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    wanted = claim_names(stateful_set, ordinal_of(pod))
    return all(mounted.get(volume) == claim for volume, claim in wanted.items())


def claim_volumes(stateful_set: StatefulSet, ordinal: int) -> list[Raw]:
    """The volumes by which the pod of an ordinal mounts its claims."""
    claims = claim_names(stateful_set, ordinal)
    return [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]


def new_pod(stateful_set: StatefulSet, template: msgspec.Raw, revision: str, ordinal: int) -> Raw:
    """The pod of an ordinal.

    Args:
        stateful_set: Whose.
        template: Of the revision it is made from.
        revision: That revision's name.
        ordinal: Which.
    """
    name = pod_name(stateful_set, ordinal)
    owner = controller_reference(stateful_set, STATEFULSETS.api_version, STATEFULSETS.name)
    body = pod_from_template(template, stateful_set.name, owner)
    body["metadata"]["name"] = name
    own = {POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), **own}
    claims = claim_names(stateful_set, ordinal)
    others = [volume for volume in body["spec"].get("volumes") or () if volume["name"] not in claims]
    mounts = claim_volumes(stateful_set, ordinal)
    body["spec"] = {**body["spec"], "hostname": name}
    if stateful_set.spec.service_name:
        body["spec"]["subdomain"] = stateful_set.spec.service_name
    if mounts or others:
        body["spec"]["volumes"] = [*mounts, *others]
    return body
