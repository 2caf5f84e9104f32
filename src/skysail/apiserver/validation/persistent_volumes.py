"""PersistentVolumes, and volumes written inline in a VolumeAttachment.

Source: pkg/apis/core/validation/validation.go ValidatePersistentVolume, v1.36.
Differs: sources other than hostPath, local, nfs and csi are counted, not looked into.
"""

import posixpath
from collections.abc import Mapping

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.claims import ACCESS_MODES, VOLUME_MODES
from skysail.apiserver.validation.field import Errors, at, immutable, same
from skysail.apiserver.validation.go_form import go_form, spec_difference
from skysail.apiserver.validation.metadata import look_again
from skysail.apiserver.validation.names import dns_subdomain
from skysail.apiserver.validation.node_selectors import node_selector
from skysail.apiserver.validation.paths import no_backsteps
from skysail.apiserver.validation.volumes import csi_driver_name, host_path, nfs

_SOURCES: Mapping[str, str] = {
    "hostPath": "hostPath", "gcePersistentDisk": "gcePersistentDisk", "awsElasticBlockStore": "awsElasticBlockStore",
    "glusterfs": "glusterfs", "flocker": "flocker", "nfs": "nfs", "rbd": "rbd", "quobyte": "quobyte",
    "cephfs": "cephFS", "iscsi": "iscsi", "cinder": "cinder", "fc": "fc", "flexVolume": "flexVolume",
    "azureFile": "azureFile", "vsphereVolume": "vsphereVolume", "photonPersistentDisk": "photonPersistentDisk",
    "portworxVolume": "portworxVolume", "azureDisk": "azureDisk", "scaleIO": "scaleIO", "local": "local",
    "storageos": "storageos", "csi": "csi",
}  # fmt: skip
"""Kinds of volumes in upstream's order, and how a complaint about one names it."""
_RECLAIM = ("Delete", "Recycle", "Retain")
_ONE_ONLY = "may not specify more than 1 volume type"
_INLINE = "may not be specified in the context of inline volumes"
_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")
_GA_LABELS: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_AFFINITY_FIXED = "field is immutable, except for updating from beta label to GA"


def persistent_volume(obj: Raw) -> Errors:
    """Check a PersistentVolume."""
    return volume_spec(obj.get("spec") or {}, "spec")


def volume_spec(spec: Raw, path: str, *, inline: bool = False) -> Errors:
    """Check the spec of a volume, wherever it stands."""
    errors: Errors = []
    if inline:
        errors += [forbidden(f"{path}.{key}", _INLINE) for key in ("claimRef", "capacity") if spec.get(key)]
        if spec.get("csi") is None:
            errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    errors += _access_modes(spec.get("accessModes") or (), f"{path}.accessModes")
    if not inline:
        errors += _capacity(spec.get("capacity") or {}, f"{path}.capacity")
    errors += _reclaim_policy(spec, path, inline)
    affinity = spec.get("nodeAffinity")
    if affinity is not None and inline:
        errors.append(forbidden(f"{path}.nodeAffinity", _INLINE))
    elif affinity is not None:
        errors += _node_affinity(affinity, f"{path}.nodeAffinity")
    errors += _sources(spec, path)
    name = spec.get("storageClassName")
    if name and inline:
        errors.append(forbidden(f"{path}.storageClassName", _INLINE))
    elif name:
        errors += at(f"{path}.storageClassName", dns_subdomain(name), name)
    return errors + _volume_mode(spec, path, inline) + _attributes_class(spec, path)


def _access_modes(modes: tuple[str, ...] | list[str], path: str) -> Errors:
    errors = [] if modes else [required(path)]
    errors += [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _capacity(capacity: Raw, path: str) -> Errors:
    errors = [] if capacity else [required(path)]
    if set(capacity) != {"storage"}:
        errors.append(not_supported(path, capacity or None, ("storage",)))
    for name, value in capacity.items():
        quantity = parse_quantity(str(value))
        if quantity.nano < 0:
            errors.append(invalid(f"{path}[{name}]", quantity.value(), "must be a valid resource quantity"))
        if quantity.nano <= 0:
            errors.append(invalid(f"{path}[{name}]", str(quantity), "must be greater than zero"))
    return errors


def _reclaim_policy(spec: Raw, path: str, inline: bool) -> Errors:
    policy, here = spec.get("persistentVolumeReclaimPolicy"), f"{path}.persistentVolumeReclaimPolicy"
    if not policy:
        return []
    if inline:
        return [] if policy == "Retain" else [forbidden(here, "may only be Retain in the context of inline volumes")]
    return [] if policy in _RECLAIM else [not_supported(here, policy, _RECLAIM)]


def _node_affinity(affinity: Raw, path: str) -> Errors:
    if affinity.get("required") is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return node_selector(affinity["required"], f"{path}.required")


def _sources(spec: Raw, path: str) -> Errors:
    errors: Errors = []
    found = ""
    for key, word in _SOURCES.items():
        source = spec.get(key)
        if source is None:
            continue
        if found and key != "flexVolume":
            errors.append(forbidden(f"{path}.{word}", _ONE_ONLY))
            continue
        found = found or key
        errors += _source(key, source, spec, path)
    if not found:
        errors.append(required(path, "must specify a volume type"))
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if recycled and posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    return errors


def _source(key: str, source: Raw, spec: Raw, path: str) -> Errors:
    here = f"{path}.{key}"
    match key:
        case "hostPath":
            return host_path(source, here)
        case "nfs":
            missing = [required(f"{here}.{part}") for part in ("server", "path") if not source.get(part)]
            return missing + nfs(source, here)
        case "csi":
            return _csi(source, here)
        case "local":
            place = source.get("path")
            errors = no_backsteps(place, f"{here}.path") if place else [required(f"{here}.path")]
            if spec.get("nodeAffinity") is None:
                errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
            return errors
    return []


def _csi(source: Raw, path: str) -> Errors:
    errors = csi_driver_name(source.get("driver") or "", f"{path}.driver")
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    for key in _SECRETS:
        if source.get(key) is not None:
            errors += [required(f"{path}.{key}.{part}") for part in ("name", "namespace") if not source[key].get(part)]
    return errors


def _volume_mode(spec: Raw, path: str, inline: bool) -> Errors:
    mode, here = spec.get("volumeMode"), f"{path}.volumeMode"
    if mode is None:
        return []
    if inline:
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        return [] if mode == "Filesystem" else [forbidden(here, detail)]
    return [] if mode in VOLUME_MODES else [not_supported(here, mode, VOLUME_MODES)]


def _attributes_class(spec: Raw, path: str) -> Errors:
    name, here = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if name is None:
        return []
    errors = at(here, dns_subdomain(name), name) if name else [required(here, "an empty string is disallowed")]
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def persistent_volume_update(new: Raw, old: Raw) -> Errors:
    """Check a changed volume: its source, mode and place stay. Upstream looks at the new state twice."""
    spec, before = new["spec"], old["spec"]
    errors = [*look_again(new, dns_subdomain), *persistent_volume(new)] * 2
    source, known = _source_of(spec), _source_of(before)
    if source.get("csi") and known.get("csi") and known["csi"].get("controllerExpandSecretRef") is None:
        source["csi"] = {key: value for key, value in source["csi"].items() if key != "controllerExpandSecretRef"}
    if not same(source, known):
        difference = spec_difference("PersistentVolumeSource", known, source)
        detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    errors += immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    affinity, placed = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if placed is not None and not _same_affinity(affinity, placed):
        errors.append(invalid("nodeAffinity", go_form("*VolumeNodeAffinity", affinity), _AFFINITY_FIXED))
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        detail = "update from non-nil value to nil is forbidden"
        errors.append(forbidden("spec.volumeAttributesClassName", detail))
    return errors


def _source_of(spec: Raw) -> Raw:
    return {key: spec[key] for key in _SOURCES if spec.get(key) is not None}


def _same_affinity(new: Raw | None, old: Raw) -> bool:
    """Whether a volume stays where it was; labels may go from their beta name to their name."""
    if same(new, old):
        return True
    terms, before = (((block or {}).get("required") or {}).get("nodeSelectorTerms") or () for block in (new, old))
    return len(terms) == len(before) and all(map(_same_term, terms, before))


def _same_term(new: Raw, old: Raw) -> bool:
    if not same(new.get("matchFields"), old.get("matchFields")):
        return False
    wanted, before = new.get("matchExpressions") or (), old.get("matchExpressions") or ()
    return len(wanted) == len(before) and all(
        same({**item, "key": ""}, {**other, "key": ""})
        and item.get("key") in (other.get("key"), _GA_LABELS.get(other.get("key") or ""))
        for item, other in zip(wanted, before, strict=True)
    )
