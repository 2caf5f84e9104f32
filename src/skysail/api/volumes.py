"""What claims and volumes say about each other: classes, bindings, and which volume suits a claim best.

The scheduler asks with a node, the volume binder without one; both decide by the same rules, so that what one expects
the other does.

Source: k8s.io/component-helpers/storage/{volume,ephemeral}, v1.36.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from skysail.api.cluster import ObjectReference
from skysail.api.core import Pod, Volume
from skysail.api.labels import Selector
from skysail.api.meta import ApiObject
from skysail.api.nodeselector import compile_node_selector
from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, TopologySelectorTerm

T = TypeVar("T", bound=ApiObject)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

AVAILABLE: Final = "Available"
BOUND: Final = "Bound"
LOST: Final = "Lost"
PENDING: Final = "Pending"
RELEASED: Final = "Released"

_STORAGE = "storage"
_NOTHING = parse_quantity("0")


# -- a pod's claims --------------------------------------------------------------------------------------------------


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim behind a pod's volume; None when no claim is behind it.

    An ephemeral volume's claim is named for the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def pod_claims(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Names of the claims a pod mounts, in the order of its volumes, and whether each is for an ephemeral volume."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield name, volume.persistent_volume_claim is None


def not_for_pod(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why a claim is not the one made for the pod's ephemeral volume; empty when it is."""
    controlled = any(each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references)
    if claim.metadata.namespace == pod.metadata.namespace and controlled:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


# -- claims and volumes ----------------------------------------------------------------------------------------------


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The name of a claim's storage class; empty when it asks for none."""
    by_annotation = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    return by_annotation if by_annotation is not None else claim.spec.storage_class_name or ""


def volume_class(volume: PersistentVolume) -> str:
    """The name of a volume's storage class; empty when it has none."""
    by_annotation = volume.metadata.annotations.get(BETA_STORAGE_CLASS)
    return by_annotation if by_annotation is not None else volume.spec.storage_class_name


def requested_storage(claim: PersistentVolumeClaim) -> Quantity | None:
    """How much a claim asks for; None when it does not say."""
    resources = claim.spec.resources
    text = resources.requests.get(_STORAGE) if resources is not None else None
    return parse_quantity(text) if text is not None else None


def storage_size(claim: PersistentVolumeClaim) -> Quantity:
    """How much a claim asks for; nothing when it does not say."""
    return requested_storage(claim) or _NOTHING


def storage_capacity(volume: PersistentVolume) -> Quantity:
    """How much a volume holds."""
    text = volume.spec.capacity.get(_STORAGE)
    return parse_quantity(text) if text is not None else _NOTHING


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim has its volume, and the binder has finished with both."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound, or promised by its maker, to exactly this claim."""
    ref = volume.spec.claim_ref
    if ref is None or ref.name != claim.metadata.name or ref.namespace != claim.metadata.namespace:
        return False
    return not ref.uid or ref.uid == claim.metadata.uid


def claim_reference(claim: PersistentVolumeClaim) -> ObjectReference:
    """What a volume says of the claim it is bound to."""
    metadata = claim.metadata
    return ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace=metadata.namespace, name=metadata.name,
        uid=metadata.uid, resource_version=metadata.resource_version,
    )  # fmt: skip


def with_annotation(obj: T, key: str, value: str) -> T:
    """An object with one more annotation; the same object when it has it already."""
    annotations = obj.metadata.annotations
    if annotations.get(key) == value:
        return obj
    metadata = msgspec.structs.replace(obj.metadata, annotations={**annotations, key: value})
    return msgspec.structs.replace(obj, metadata=metadata)


def without_annotation(obj: T, key: str) -> T:
    """An object without an annotation; the same object when it has none such."""
    if key not in obj.metadata.annotations:
        return obj
    annotations = {name: value for name, value in obj.metadata.annotations.items() if name != key}
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, annotations=annotations))


def admits_labels(volume: PersistentVolume, node_labels: Mapping[str, str]) -> bool:
    """Whether a volume can be used on a node with these labels. Its affinity may not name nodes by field."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    try:
        return compile_node_selector(affinity.required).matches("", node_labels)
    except ValueError:
        return False


def admits_topology(storage_class: StorageClass, node_labels: Mapping[str, str]) -> bool:
    """Whether a class makes volumes for a node with these labels."""
    terms = storage_class.allowed_topologies
    return not terms or any(_admits(term, node_labels) for term in terms)


def _admits(term: TopologySelectorTerm, labels: Mapping[str, str]) -> bool:
    if not term.match_label_expressions:
        return False
    return all(labels.get(each.key) in each.values for each in term.match_label_expressions)


def candidates(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, modes: bool = True
) -> tuple[PersistentVolume | None, list[PersistentVolume]]:
    """What suits a claim, wherever it may be used.

    Args:
        claim: An unbound claim.
        volumes: To choose from, in a repeatable order.
        modes: Whether access modes must suit as well; a promised volume is taken whatever its modes.

    Returns:
        The first volume promised to the claim, and the volumes free for it, the smallest first.

    Raises:
        ValueError: The claim's selector cannot be read.
    """
    size, name, selector = storage_size(claim), claim_class(claim), None
    wanted = frozenset(claim.spec.access_modes)
    if claim.spec.selector is not None:
        selector = Selector.from_label_selector(claim.spec.selector)
    free: list[tuple[Quantity, PersistentVolume]] = []
    for volume in volumes:
        ref = volume.spec.claim_ref
        if ref is not None and not is_bound_to(volume, claim):
            continue
        capacity = storage_capacity(volume)
        if capacity < size or not _is_of_kind(volume, claim):
            continue
        if ref is not None:
            return volume, []
        if (
            volume.status.phase == AVAILABLE
            and (selector is None or selector.matches(volume.metadata.labels))
            and volume_class(volume) == name
            and (not modes or wanted.issubset(volume.spec.access_modes))
        ):
            free.append((capacity, volume))
    free.sort(key=lambda each: each[0])
    return None, [volume for _, volume in free]


def _is_of_kind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    mode, wanted = volume.spec.volume_mode or "Filesystem", claim.spec.volume_mode or "Filesystem"
    attributes = volume.spec.volume_attributes_class_name or ""
    return (
        mode == wanted
        and attributes == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def best_volume(
    promised: PersistentVolume | None,
    free: Iterable[PersistentVolume],
    node_labels: Mapping[str, str],
    taken: Collection[str] = (),
) -> PersistentVolume | None:
    """The volume a claim gets on a node: the promised one or none, else the smallest that can be used there.

    Args:
        promised: See `candidates`.
        free: See `candidates`.
        node_labels: Of the node.
        taken: Names of volumes that other claims of the same pod get.
    """
    if promised is not None:
        return promised if promised.metadata.name not in taken and admits_labels(promised, node_labels) else None
    return next((each for each in free if each.metadata.name not in taken and admits_labels(each, node_labels)), None)
