"""Volumes and ingresses: protection while in use, default classes, growing claims.

Source: plugin/pkg/admission/storage/{storageobjectinuseprotection,storageclass/setdefault,persistentvolume/resize},
    plugin/pkg/admission/network/defaultingressclass, v1.36.
"""

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import GroupResource

STORAGE_CLASSES = GroupResource("storage.k8s.io", "storageclasses")
INGRESS_CLASSES = GroupResource("networking.k8s.io", "ingressclasses")
_PROTECTION = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
}
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def protect(a: Attributes) -> None:
    """Hold new volumes and claims with a finalizer."""
    if a.operation != "CREATE" or a.ctx.subresource:
        return
    finalizer = _PROTECTION[a.resource.resource]
    metadata = a.obj["metadata"]
    if finalizer not in (metadata.get("finalizers") or ()):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]


def default_class(a: Attributes) -> None:
    """A claim that names no class gets the default one: the newest, then the first by name."""
    if a.operation != "CREATE" or a.ctx.subresource or _names_class(a.obj):
        return
    defaults = [item for item in a.ctx.reader.list(STORAGE_CLASSES) if _is_default(item)]
    if defaults:
        newest = max(item["metadata"].get("creationTimestamp") or "" for item in defaults)
        names = [
            item["metadata"]["name"] for item in defaults if (item["metadata"].get("creationTimestamp") or "") == newest
        ]
        a.obj["spec"]["storageClassName"] = min(names)


def _names_class(claim: Raw) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return _CLASS_ANNOTATION in annotations or (claim.get("spec") or {}).get("storageClassName") is not None


def _is_default(item: Raw) -> bool:
    annotations = item["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in _DEFAULT)


def default_ingress_class(a: Attributes) -> None:
    """An Ingress that names no class gets the default one."""
    if a.operation != "CREATE" or a.ctx.subresource:
        return
    spec = a.obj.setdefault("spec", {})
    annotated = "kubernetes.io/ingress.class" in (a.obj["metadata"].get("annotations") or {})
    if spec.get("ingressClassName") is not None or annotated:
        return
    defaults = [
        item
        for item in a.ctx.reader.list(INGRESS_CLASSES)
        if (item["metadata"].get("annotations") or {}).get(_DEFAULT_INGRESS) == "true"
    ]
    if defaults:
        newest = max(item["metadata"].get("creationTimestamp") or "" for item in defaults)
        names = [
            item["metadata"]["name"] for item in defaults if (item["metadata"].get("creationTimestamp") or "") == newest
        ]
        spec["ingressClassName"] = min(names)


def check_resize(a: Attributes) -> None:
    """A bound claim may grow only when its class allows it."""
    if a.operation != "UPDATE" or a.ctx.subresource or a.old is None:
        return
    new, old = _storage(a.obj), _storage(a.old)
    if new is None or old is None or parse_quantity(new) <= parse_quantity(old):
        return
    if (a.old.get("status") or {}).get("phase") != "Bound":
        raise a.refuse("Only bound persistent volume claims can be expanded")
    name = (a.obj["spec"].get("storageClassName")) or (a.obj["metadata"].get("annotations") or {}).get(
        _CLASS_ANNOTATION, ""
    )
    found = a.ctx.reader.get(STORAGE_CLASSES, "", name) if name else None
    if not (found or {}).get("allowVolumeExpansion"):
        raise a.refuse(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize"
        )


def _storage(claim: Raw) -> str | None:
    resources = (claim.get("spec") or {}).get("resources") or {}
    value = (resources.get("requests") or {}).get("storage")
    return None if value is None else str(value)
