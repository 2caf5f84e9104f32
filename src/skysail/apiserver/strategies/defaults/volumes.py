"""Volumes of pods and sources of PersistentVolumes.

Source: pkg/apis/core/v1/defaults.go SetDefaults_Volume ..., v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.containers import field_reference, pull_policy
from skysail.apiserver.strategies.defaults.quantities import canonical, requirements

_DEFAULTS: dict[str, tuple[tuple[str, object], ...]] = {
    "iscsi": (("iscsiInterface", "default"),),
    "rbd": (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")),
    "scaleIO": (("storageMode", "ThinProvisioned"), ("fsType", "xfs")),
}
_POINTER_DEFAULTS: dict[str, tuple[tuple[str, object], ...]] = {
    "hostPath": (("type", ""),),
    "secret": (("defaultMode", 420),),
    "configMap": (("defaultMode", 420),),
    "downwardAPI": (("defaultMode", 420),),
    "projected": (("defaultMode", 420),),
    "azureDisk": (("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("readOnly", False), ("kind", "Shared")),
}


def volume(spec: Raw) -> None:
    """Defaults of one volume; without any source it is an emptyDir."""
    if all(key == "name" or value is None for key, value in spec.items()):
        spec["emptyDir"] = {}
        return
    source(spec)
    empty_dir = spec.get("emptyDir")
    if empty_dir and empty_dir.get("sizeLimit") is not None:
        empty_dir["sizeLimit"] = canonical(empty_dir["sizeLimit"])
    image = spec.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference") or "")
    downward = spec.get("downwardAPI")
    if downward is not None:
        _downward(downward)
    for projection in (spec.get("projected") or {}).get("sources") or ():
        _projection(projection)
    template = (spec.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        claim_spec(template.setdefault("spec", {}))
        if template.get("metadata") is None:
            template["metadata"] = {}


def source(spec: Raw) -> None:
    """Defaults that a volume of a pod and a PersistentVolume share."""
    for key, value in spec.items():
        if isinstance(value, dict):
            for name, default in _DEFAULTS.get(key, ()):
                if not value.get(name):
                    value[name] = default
            for name, default in _POINTER_DEFAULTS.get(key, ()):
                if value.get(name) is None:
                    value[name] = default


def _downward(spec: Raw) -> None:
    for item in spec.get("items") or ():
        if item.get("fieldRef") is not None:
            field_reference(item["fieldRef"])
        resource = item.get("resourceFieldRef")
        if resource is not None and not resource.get("divisor"):
            resource["divisor"] = "0"


def _projection(spec: Raw) -> None:
    if spec.get("downwardAPI") is not None:
        _downward(spec["downwardAPI"])
    token = spec.get("serviceAccountToken")
    if token is not None and token.get("expirationSeconds") is None:
        token["expirationSeconds"] = 3600


def claim_spec(spec: Raw) -> None:
    """Defaults of a PersistentVolumeClaim's spec, wherever it is embedded."""
    if not spec.get("volumeMode"):
        spec["volumeMode"] = "Filesystem"
    resources = spec.get("resources")
    if resources is None:
        spec["resources"] = {}
    else:
        requirements(resources)
