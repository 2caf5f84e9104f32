"""Claims, volumes and classes in one line: the storage that pods of a test mount.

>>> claim = make_claim("data", storage_class="local", size="2Gi")
>>> claim.key, claim.spec.resources.requests["storage"]
('default/data', '2Gi')
>>> make_volume("disk-1", zone="a").spec.node_affinity.required.node_selector_terms[0].match_expressions[0].values
('a',)
>>> [volume.name for volume in mount(make_pod("web"), "data", "logs").spec.volumes]
['data', 'logs']
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skysail.api.cluster import ObjectReference
from skysail.api.core import PersistentVolumeClaimVolumeSource, Pod, Volume
from skysail.api.kinds import kind_of
from skysail.api.meta import ApiObject, ObjectMeta
from skysail.api.storage import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumeResourceRequirements,
)
from skysail.api.volumes import AVAILABLE, BIND_COMPLETED, BOUND, PENDING, WAIT_FOR_FIRST_CONSUMER
from skysail.testing.builders import HOSTNAME, ZONE, make_pod

__all__ = ["make_claim", "make_pod", "make_storage_class", "make_volume", "mount"]

T = TypeVar("T", bound=ApiObject)

ONCE = ("ReadWriteOnce",)


def make_claim(
    name: str = "data",
    namespace: str = "default",
    *,
    storage_class: str = "standard",
    size: str = "1Gi",
    modes: Sequence[str] = ONCE,
    volume: str = "",
    bound: bool = False,
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
) -> PersistentVolumeClaim:
    """A claim.

    Args:
        name: Its name.
        namespace: Its namespace.
        storage_class: Its class.
        size: How much it asks for.
        modes: Its access modes.
        volume: The volume it names.
        bound: Whether the binding is complete.
        uid: Its uid; the name's when empty.
        annotations: Its annotations.
    """
    done = {BIND_COMPLETED: "yes"} if bound else {}
    return _typed(
        PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=name, namespace=namespace, uid=uid or f"{name}-uid", annotations={**(annotations or {}), **done}
            ),
            spec=PersistentVolumeClaimSpec(
                access_modes=tuple(modes),
                resources=VolumeResourceRequirements(requests={"storage": size}),
                storage_class_name=storage_class,
                volume_name=volume,
            ),
            status=PersistentVolumeClaimStatus(phase=BOUND if bound else PENDING),
        )
    )


def make_volume(
    name: str = "volume",
    *,
    storage_class: str = "standard",
    size: str = "1Gi",
    modes: Sequence[str] = ONCE,
    node: str = "",
    zone: str = "",
    claim: PersistentVolumeClaim | None = None,
    driver: str = "csi.example.com",
    policy: str = "Retain",
    labels: Mapping[str, str] | None = None,
) -> PersistentVolume:
    """A volume.

    Args:
        name: Its name, and its handle.
        storage_class: Its class.
        size: What it holds.
        modes: Its access modes.
        node: The only node it can be used on.
        zone: The only zone it can be used in.
        claim: The claim it is bound to.
        driver: Its CSI driver.
        policy: What becomes of it when it is given back.
        labels: Its labels.
    """
    places = [(key, value) for key, value in ((HOSTNAME, node), (ZONE, zone)) if value]
    tests = tuple(NodeSelectorRequirement(key=key, operator="In", values=(value,)) for key, value in places)
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=tests),))
    ref = None
    if claim is not None:
        ref = ObjectReference(
            kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.uid, api_version="v1"
        )
    return _typed(
        PersistentVolume(
            metadata=ObjectMeta(name=name, uid=f"{name}-uid", labels=dict(labels or {})),
            spec=PersistentVolumeSpec(
                access_modes=tuple(modes),
                capacity={"storage": size},
                claim_ref=ref,
                node_affinity=VolumeNodeAffinity(required=required) if tests else None,
                persistent_volume_reclaim_policy=policy,
                storage_class_name=storage_class,
                csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name),
            ),
            status=PersistentVolumeStatus(phase=BOUND if claim is not None else AVAILABLE),
        )
    )


def make_storage_class(
    name: str = "standard",
    *,
    provisioner: str = "skysail.io/hollow",
    waits: bool = True,
    zones: Sequence[str] = (),
    policy: str = "Delete",
    annotations: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> StorageClass:
    """A storage class.

    Args:
        name: Its name.
        provisioner: Who makes its volumes.
        waits: Whether a claim waits for its first pod.
        zones: The only zones it makes volumes in.
        policy: What becomes of its volumes when they are given back.
        annotations: Its annotations.
        parameters: Its parameters.
    """
    within = TopologySelectorLabelRequirement(key=ZONE, values=tuple(zones))
    return _typed(
        StorageClass(
            metadata=ObjectMeta(name=name, annotations=dict(annotations or {})),
            provisioner=provisioner,
            volume_binding_mode=WAIT_FOR_FIRST_CONSUMER if waits else "Immediate",
            allowed_topologies=(TopologySelectorTerm(match_label_expressions=(within,)),) if zones else (),
            reclaim_policy=policy,
            parameters=dict(parameters or {}),
        )
    )


def mount(pod: Pod, *claims: str) -> Pod:
    """The pod with volumes for these claims of its namespace."""
    volumes = tuple(
        Volume(name=claim, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for claim in claims
    )
    spec = msgspec.structs.replace(pod.spec, volumes=(*pod.spec.volumes, *volumes))
    return msgspec.structs.replace(pod, spec=spec)


def _typed(obj: T) -> T:
    kind = kind_of(type(obj))
    return msgspec.structs.replace(obj, api_version=kind.api_version, kind=kind.name)
