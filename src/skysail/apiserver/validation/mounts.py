"""Where a container sees its volumes.

Source: pkg/apis/core/validation/validation.go ValidateVolumeMounts, ValidateVolumeDevices, v1.36.
"""

from collections.abc import Mapping

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_found, not_supported, required
from skysail.apiserver.validation.field import Errors
from skysail.apiserver.validation.paths import local_descending, no_backsteps

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mounts(container: Raw, volumes: Mapping[str, Raw], path: str) -> Errors:
    """Check `volumeMounts`."""
    errors: Errors = []
    device_paths = {item.get("name"): item.get("devicePath") for item in container.get("volumeDevices") or ()}
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here, name, where = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{here}.name"))
        if name not in volumes:
            errors.append(not_found(f"{here}.name", name))
        if not where:
            errors.append(required(f"{here}.mountPath"))
        if where in seen:
            errors.append(invalid(f"{here}.mountPath", where, "must be unique"))
        seen.add(where)
        if name in device_paths:
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if where in device_paths.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{here}.mountPath", where, detail))
        errors += _options(mount, container, path, here)
    return errors


def _options(mount: Raw, container: Raw, path: str, here: str) -> Errors:
    errors: Errors = []
    sub, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if sub:
        errors += local_descending(sub, f"{path}.subPath")
    if expression:
        if sub:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{here}.subPathExpr", expression, detail))
        errors += local_descending(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            errors.append(not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(f"{path}.mountPropagation", detail))
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None:
        errors += _recursive(recursive, mount, f"{path}.recursiveReadOnly")
    return errors


def _recursive(value: str, mount: Raw, path: str) -> Errors:
    if value == "Disabled":
        return []
    if value not in _RECURSIVE:
        return [not_supported(path, value, _RECURSIVE)]
    errors: Errors = []
    if not mount.get("readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def devices(container: Raw, volumes: Mapping[str, Raw], path: str) -> Errors:
    """Check `volumeDevices`: raw block volumes."""
    errors: Errors = []
    mounted = {item.get("name"): item.get("mountPath") for item in container.get("volumeMounts") or ()}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        here, name, where = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        if not name:
            errors.append(required(f"{here}.name"))
        if name in names:
            errors.append(invalid(f"{here}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            errors.append(not_found(f"{here}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{here}.name", name, detail))
        if not where:
            errors.append(required(f"{here}.devicePath"))
        if where in paths:
            errors.append(invalid(f"{here}.devicePath", where, "must be unique"))
        if where and no_backsteps(where, ""):
            errors.append(invalid(f"{here}.devicePath", where, "can not contain backsteps ('..')"))
        else:
            paths.add(where)
        if name in mounted:
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if where in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{here}.devicePath", where, detail))
        if name:
            names.add(name)
    return errors
