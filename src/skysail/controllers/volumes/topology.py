"""A volume that is nothing but an object: whether a class wants such, what it looks like, and where it can be used.

A class wants hollow volumes when its provisioner is `skysail.io/hollow`, or when it is annotated
`skysail.io/hollow: "true"`: so a real cluster's classes can be taken over as they are.

    the class has allowed topologies         the first that admits the chosen node, with the node's values
    none, but a node was chosen              the zone of the node; the parameter `topologyKey` names another label
    neither, or the node has no such label   everywhere
"""

from collections.abc import Iterable
from typing import Final

from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skysail.api.kinds import PERSISTENT_VOLUMES
from skysail.api.meta import ObjectMeta
from skysail.api.node import Node
from skysail.api.storage import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
)
from skysail.api.volumes import PROVISIONED_BY, admits_topology, claim_class, claim_reference, storage_size

HOLLOW_PROVISIONER: Final = "skysail.io/hollow"
HOLLOW: Final = "skysail.io/hollow"
"""The annotation: on classes it asks for hollow volumes, on volumes it says that they are."""
HOLLOW_DRIVER: Final = "hollow.skysail.io"
TOPOLOGY_KEY: Final = "topologyKey"
ZONE: Final = "topology.kubernetes.io/zone"


class WrongNode(ValueError):
    """The class makes no volumes for the chosen node."""


def is_hollow(storage_class: StorageClass) -> bool:
    """Whether a class wants hollow volumes."""
    return storage_class.provisioner == HOLLOW_PROVISIONER or storage_class.metadata.annotations.get(HOLLOW) == "true"


def volume_name(claim: PersistentVolumeClaim) -> str:
    """The name of the volume made for a claim: the same however often it is made."""
    return f"pvc-{claim.uid}"


def new_volume(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None) -> PersistentVolume:
    """The volume for a claim.

    Args:
        claim: For whom.
        storage_class: What makes it.
        node: Where it must be usable; None for anywhere.

    Raises:
        WrongNode: The class makes none for this node.
    """
    name, provisioner = volume_name(claim), storage_class.provisioner
    return PersistentVolume(
        api_version=PERSISTENT_VOLUMES.api_version,
        kind=PERSISTENT_VOLUMES.name,
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: provisioner, HOLLOW: "true"}),
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity={"storage": str(storage_size(claim))},
            claim_ref=claim_reference(claim),
            node_affinity=_affinity(storage_class, node),
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            storage_class_name=claim_class(claim),
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            csi=CSIPersistentVolumeSource(
                driver=HOLLOW_DRIVER if "/" in provisioner else provisioner, volume_handle=name
            ),
        ),
    )


def _affinity(storage_class: StorageClass, node: Node | None) -> VolumeNodeAffinity | None:
    labels = node.metadata.labels if node is not None else {}
    if storage_class.allowed_topologies:
        if node is not None and not admits_topology(storage_class, labels):
            raise WrongNode(f'storage class "{storage_class.name}" makes no volumes for node "{node.name}"')
        for term in storage_class.allowed_topologies:
            wanted = term.match_label_expressions
            if node is None:
                return _within((each.key, each.values[:1]) for each in wanted)
            if wanted and all(labels.get(each.key) in each.values for each in wanted):
                return _within((each.key, (labels[each.key],)) for each in wanted)
    key = storage_class.parameters.get(TOPOLOGY_KEY, ZONE)
    return _within([(key, (labels[key],))]) if key in labels else None


def _within(places: Iterable[tuple[str, tuple[str, ...]]]) -> VolumeNodeAffinity | None:
    expressions = tuple(NodeSelectorRequirement(key=key, operator="In", values=values) for key, values in places)
    if not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=expressions)
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
