"""The rows of volumes and of what provides them.

Source: pkg/printers/internalversion/printers.go, v1.36.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.tables.cells import NONE, UNSET, age, part

Row = Sequence[object]

_MODES = (("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP"))
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _modes(modes: Iterable[str] | None) -> str:
    given = set(modes or ())
    return ",".join(short for mode, short in _MODES if mode in given)


def _class(obj: Raw) -> str:
    annotations = part(obj, "metadata", "annotations")
    return str(annotations.get(_OLD_CLASS) or part(obj, "spec").get("storageClassName") or "")


def _phase(obj: Raw) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(part(obj, "status").get("phase", ""))


def volume_cells(obj: Raw, now: datetime) -> Row:
    """Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, two classes, Reason, Age; VolumeMode."""
    spec = part(obj, "spec")
    claim = spec.get("claimRef")
    return [
        obj["metadata"]["name"], part(spec, "capacity").get("storage", "0"), _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""), _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "", _class(obj),
        _or_unset(spec, "volumeAttributesClassName"), part(obj, "status").get("reason", ""), age(obj, now),
        _or_unset(spec, "volumeMode"),
    ]  # fmt: skip


def claim_cells(obj: Raw, now: datetime) -> Row:
    """Name, Status, Volume, Capacity, Access Modes, two classes, Age; VolumeMode."""
    spec, status = part(obj, "spec"), part(obj, "status")
    volume = spec.get("volumeName", "")
    capacity = part(status, "capacity").get("storage", "0") if volume else ""
    return [
        obj["metadata"]["name"], _phase(obj), volume, capacity, _modes(status.get("accessModes")) if volume else "",
        _class(obj), _or_unset(spec, "volumeAttributesClassName"), age(obj, now), _or_unset(spec, "volumeMode"),
    ]  # fmt: skip


def _or_unset(spec: Raw, name: str) -> str:
    return UNSET if spec.get(name) is None else str(spec[name])


def storage_class_cells(obj: Raw, now: datetime) -> Row:
    """Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age."""
    annotations = part(obj, "metadata", "annotations")
    default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        obj["metadata"]["name"] + (" (default)" if default else ""), obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete", obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")), age(obj, now),
    ]  # fmt: skip


def attributes_class_cells(obj: Raw, now: datetime) -> Row:
    """Name, DriverName, Age."""
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now)]


def attachment_cells(obj: Raw, now: datetime) -> Row:
    """Name, Attacher, PV, Node, Attached, Age."""
    spec = part(obj, "spec")
    volume = part(spec, "source").get("persistentVolumeName") or ""
    attached = bool(part(obj, "status").get("attached"))
    return [
        obj["metadata"]["name"], spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, now),
    ]  # fmt: skip


def csi_node_cells(obj: Raw, now: datetime) -> Row:
    """Name, Drivers, Age."""
    return [obj["metadata"]["name"], len(part(obj, "spec").get("drivers") or ()), age(obj, now)]


def csi_driver_cells(obj: Raw, now: datetime) -> Row:
    """Name, AttachRequired, PodInfoOnMount, StorageCapacity, TokenRequests, RequiresRepublish, Modes, Age."""
    spec = part(obj, "spec")
    requests = spec.get("tokenRequests")
    tokens = UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)
    return [
        obj["metadata"]["name"], spec.get("attachRequired", True), bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")), tokens, bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE, age(obj, now),
    ]  # fmt: skip


def csi_capacity_cells(obj: Raw, _: datetime) -> Row:
    """Name, StorageClassName, Capacity."""
    return [obj["metadata"]["name"], obj.get("storageClassName", ""), obj.get("capacity") or UNSET]
