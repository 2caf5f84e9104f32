"""Volumes of pods.

Source: pkg/apis/core/validation/validation.go ValidateVolumes, validateVolumeSource, v1.36.
"""

from collections.abc import Callable, Mapping, Sequence

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, not_supported, required, too_long
from skysail.apiserver.validation.claims import claim_spec
from skysail.apiserver.validation.downward import downward_file
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import annotations, labels
from skysail.apiserver.validation.names import dns_label, dns_subdomain
from skysail.apiserver.validation.paths import (
    file_mode,
    local_descending,
    local_non_reserved,
    no_backsteps,
)
from skysail.apiserver.validation.projections import projected

_ONE_ONLY = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_REQUIRED_KEYS: Mapping[str, tuple[str, ...]] = {
    "gitRepo": ("repository",),
    "persistentVolumeClaim": ("claimName",),
    "nfs": ("server", "path"),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "iscsi": ("targetPortal", "iqn"),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": ("volumeName",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "quobyte": ("registry", "volume"),
    "flexVolume": ("driver",),
}
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_OWN_PATH = {"gcePersistentDisk": "persistentDisk"}


def volumes(items: Sequence[Raw], pod_name: str, path: str, *, is_pod: bool) -> tuple[dict[str, Raw], Errors]:
    """Check all volumes of a pod.

    Args:
        items: The volumes.
        pod_name: Name of the pod, empty in templates.
        path: Where the list stands.
        is_pod: Whether this is a pod rather than a template.

    Returns:
        The sound volumes by name, and what is wrong with the others.
    """
    errors: Errors = []
    made = {f"{pod_name}-{item.get('name')}" for item in items if item.get("ephemeral") is not None and pod_name}
    sound: dict[str, Raw] = {}
    for index, item in enumerate(items):
        here, name = f"{path}[{index}]", item.get("name") or ""
        faults = source(item, name, pod_name, here, is_pod=is_pod)
        if not name:
            faults.append(required(f"{here}.name"))
        else:
            faults += at(f"{here}.name", dns_label(name), name)
        if name in sound:
            faults.append(duplicate(f"{here}.name", name))
        if faults:
            errors += faults
        else:
            sound[name] = item
        claim = (item.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return sound, errors


def source(item: Raw, name: str, pod_name: str, path: str, *, is_pod: bool) -> Errors:
    """Check that a volume has exactly one source, and that one."""
    errors: Errors = []
    found = False
    for kind in _ORDER:
        spec = item.get(kind)
        if spec is None:
            continue
        if found and kind != "emptyDir":
            errors.append(forbidden(f"{path}.{kind}", _ONE_ONLY))
            continue
        found = True
        here = f"{path}.{_OWN_PATH.get(kind, kind)}"
        errors += [required(f"{here}.{key}") for key in _REQUIRED_KEYS.get(kind, ()) if not spec.get(key)]
        check = _CHECKS.get(kind)
        if check is not None:
            errors += check(spec, here)
        if kind == "ephemeral" and pod_name and name:
            claim = f"{pod_name}-{name}"
            errors += [
                invalid(f"{path}.name", name, f'PVC name "{claim}": {message}') for message in dns_subdomain(claim)
            ]
        if kind == "image":
            errors += _image(spec, here, is_pod)
    if not found:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _empty_dir(spec: Raw, path: str) -> Errors:
    limit = spec.get("sizeLimit")
    if limit is not None and parse_quantity(str(limit)).nano < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def host_path(spec: Raw, path: str) -> Errors:
    """Check a directory or file of the node."""
    value = spec.get("path") or ""
    if not value:
        return [required(f"{path}.path")]
    errors = no_backsteps(value, f"{path}.path")
    kind = spec.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return errors


def _git_repo(spec: Raw, path: str) -> Errors:
    return local_descending(spec.get("directory") or "", f"{path}.directory")


def _secret(spec: Raw, path: str) -> Errors:
    errors = [] if spec.get("secretName") else [required(f"{path}.secretName")]
    return errors + file_mode(spec.get("defaultMode"), f"{path}.defaultMode") + key_paths(spec, path)


def _config_map(spec: Raw, path: str) -> Errors:
    errors = [] if spec.get("name") else [required(f"{path}.name")]
    return errors + file_mode(spec.get("defaultMode"), f"{path}.defaultMode") + key_paths(spec, path)


def key_paths(spec: Raw, path: str) -> Errors:
    """Check the `items` that put keys at paths."""
    errors: Errors = []
    for index, item in enumerate(spec.get("items") or ()):
        here = f"{path}.items[{index}]"
        errors += [required(f"{here}.{key}") for key in ("key", "path") if not item.get(key)]
        errors += local_non_reserved(item.get("path") or "", f"{here}.path")
        errors += file_mode(item.get("mode"), f"{here}.mode")
    return errors


def nfs(spec: Raw, path: str) -> Errors:
    """Check an NFS export."""
    value = spec.get("path") or ""
    return [] if value.startswith("/") else [invalid(f"{path}.path", value, "must be an absolute path")]


def _downward(spec: Raw, path: str) -> Errors:
    errors = file_mode(spec.get("defaultMode"), f"{path}.defaultMode")
    for item in spec.get("items") or ():
        errors += downward_file(item, path)
    return errors


def _csi(spec: Raw, path: str) -> Errors:
    errors = csi_driver_name(spec.get("driver") or "", f"{path}.driver")
    reference = spec.get("nodePublishSecretRef")
    if reference is not None:
        name = reference.get("name") or ""
        errors += at(f"{path}.name", dns_subdomain(name), name) if name else [
            required(f"{path}.nodePublishSecretRef.name")
        ]  # fmt: skip
    return errors


def csi_driver_name(name: str, path: str) -> Errors:
    """Check the name of a CSI driver: a DNS name of at most 63 characters, in any letter case."""
    if not name:
        return [required(path)]
    errors = [too_long(path, 63)] if len(name) > 63 else []
    return errors + at(path, dns_subdomain(name.lower()), name)


def _ephemeral(spec: Raw, path: str) -> Errors:
    template = spec.get("volumeClaimTemplate")
    here = f"{path}.volumeClaimTemplate"
    if template is None:
        return [required(here)]
    meta = template.get("metadata") or {}
    errors = annotations(meta.get("annotations") or {}, f"{here}.metadata.annotations")
    errors += labels(meta.get("labels") or {}, f"{here}.metadata.labels")
    for key, value in meta.items():
        if key not in ("annotations", "labels") and value:
            errors.append(forbidden(f"{here}.metadata.{key}", "cannot be set"))
    return errors + claim_spec(template.get("spec") or {}, f"{here}.spec")


def _image(spec: Raw, path: str, is_pod: bool) -> Errors:
    errors = [required(f"{path}.reference")] if is_pod and not spec.get("reference") else []
    policy = spec.get("pullPolicy") or ""
    if not policy:
        errors.append(required(f"{path}.pullPolicy"))
    elif policy not in _PULL_POLICIES:
        errors.append(not_supported(f"{path}.pullPolicy", policy, _PULL_POLICIES))
    return errors


_CHECKS: Mapping[str, Callable[[Raw, str], Errors]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "secret": _secret,
    "configMap": _config_map,
    "nfs": nfs,
    "downwardAPI": _downward,
    "projected": projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
}
