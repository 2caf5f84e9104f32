"""Security contexts, seccomp and AppArmor, operating systems.

Source: pkg/apis/core/validation/validation.go ValidateSecurityContext, validatePodSpecSecurityContext, v1.36.
"""

import re
from collections.abc import Iterator

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from skysail.apiserver.validation.field import Errors
from skysail.apiserver.validation.go_form import go_form
from skysail.apiserver.validation.names import in_range
from skysail.apiserver.validation.paths import local_descending

_MAX_ID = 2**31 - 1
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_sysctl_re = re.compile(_SYSCTL)
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.", "kernel.sem")
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_WINDOWS = "cannot be set for a windows pod"


def containers_with_path(spec: Raw, path: str) -> Iterator[tuple[Raw, str]]:
    """Every container of a pod with its path: init, plain, ephemeral."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield container, f"{path}.{key}[{index}]"


def _identity(value: object, path: str) -> Errors:
    if isinstance(value, int) and not 0 <= value <= _MAX_ID:
        return [invalid(path, value, in_range(0, _MAX_ID))]
    return []


def container_security(context: Raw, path: str, host_users: bool) -> Errors:
    """Check the security context of a container."""
    errors: Errors = []
    for key in ("runAsUser", "runAsGroup"):
        errors += _identity(context.get(key), f"{path}.{key}")
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            errors.append(not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        if host_users and mount == "Unmasked":
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, go_form("SecurityContext", context), detail))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, go_form("SecurityContext", context), detail))
    return errors + _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def pod_security(context: Raw, spec: Raw, path: str) -> Errors:
    """Check the security context of a pod."""
    errors: Errors = []
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _identity(context.get(key), f"{path}.{key}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += _identity(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    if context.get("sysctls"):
        errors += _sysctls(context["sysctls"], spec, f"{path}.sysctls")
    policy = context.get("fsGroupChangePolicy")
    if policy is not None and policy not in ("Always", "OnRootMismatch"):
        errors.append(not_supported(f"{path}.fsGroupChangePolicy", policy, ("Always", "OnRootMismatch")))
    errors += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    errors += _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    policy = context.get("supplementalGroupsPolicy")
    if policy is not None and policy not in ("Merge", "Strict"):
        errors.append(not_supported(f"{path}.supplementalGroupsPolicy", policy, ("Merge", "Strict")))
    policy = context.get("seLinuxChangePolicy")
    if policy is not None and policy not in ("MountOption", "Recursive"):
        errors.append(not_supported(f"{path}.seLinuxChangePolicy", policy, ("MountOption", "Recursive")))
    return errors


def _sysctls(items: list[Raw], spec: Raw, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, here = item.get("name") or "", f"{path}[{index}].name"
        if not name:
            errors.append(required(here))
        elif len(name) > 253 or not _sysctl_re.fullmatch(name):
            errors.append(invalid(here, name, f"must have at most 253 characters and match regex ^{_SYSCTL}$"))
        elif name in seen:
            errors.append(duplicate(here, name))
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            errors.append(invalid(here, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return errors


def _seccomp(profile: Raw | None, path: str) -> Errors:
    if profile is None:
        return []
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    errors: Errors = []
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{path}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            detail = "must be set when seccomp type is Localhost"
            errors.append(required(f"{path}.localhostProfile", detail))
        else:
            errors += local_descending(local, f"{path}.localhostProfile")
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        errors.append(invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost"))
    return errors


def _app_armor(profile: Raw | None, path: str) -> Errors:
    if profile is None:
        return []
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    match kind:
        case "Localhost":
            if local is None or not local:
                return [required(here, "must be set when AppArmor type is Localhost")]
            if local.strip() != local:
                return [invalid(here, local, "must not be padded with whitespace")]
            return [too_long(here, 4095)] if len(local) > 4095 else []
        case "RuntimeDefault" | "Unconfined":
            if local is not None:
                return [invalid(here, local, "can only be set when AppArmor type is Localhost")]
            return []
        case "":
            return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    return [not_supported(f"{path}.type", kind, _PROFILES)]


def annotation_profiles(annotations: Raw, spec: Raw, path: str) -> Errors:
    """Check the annotations in which profiles used to be named."""
    errors: Errors = []
    if _SECCOMP_POD in annotations:
        errors += _seccomp_name(annotations[_SECCOMP_POD], f"{path}.{_SECCOMP_POD}")
    for key, value in annotations.items():
        if key.startswith(_SECCOMP_CONTAINER):
            errors += _seccomp_name(value, f"{path}.{key}")
    for key, value in annotations.items():
        if not key.startswith(_APPARMOR):
            continue
        name = key.removeprefix(_APPARMOR)
        if all(container.get("name") != name for container, _ in containers_with_path(spec, "")):
            errors.append(invalid(f"{path}[{key}]", name, "container not found"))
        if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
            errors.append(invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"'))
    return errors


def _seccomp_name(name: str, path: str) -> Errors:
    if name in ("runtime/default", "docker/default", "unconfined"):
        return []
    if name.startswith("localhost/"):
        return local_descending(name.removeprefix("localhost/"), path)
    return [invalid(path, name, "must be a valid seccomp profile")]


def profiles_match_annotations(annotations: Raw, spec: Raw, path: str) -> Errors:
    """A profile named twice, in a field and in an annotation, must be the same."""
    if not annotations:
        return []
    errors: Errors = []
    context = spec.get("securityContext") or {}
    profile = context.get("seccompProfile")
    if profile is not None and _SECCOMP_POD in annotations:
        here = f"{path}.securityContext.seccompProfile"
        errors += _same_profile(annotations[_SECCOMP_POD], profile, here, "seccomp")
    for container, at_container in containers_with_path(spec, path):
        own = container.get("securityContext") or {}
        key = f"{_SECCOMP_CONTAINER}{container.get('name')}"
        if own.get("seccompProfile") is not None and key in annotations:
            here = f"{at_container}.securityContext.seccompProfile"
            errors += _same_profile(annotations[key], own["seccompProfile"], here, "seccomp")
    for container, at_container in containers_with_path(spec, path):
        own = container.get("securityContext") or {}
        armor = own.get("appArmorProfile") or context.get("appArmorProfile")
        key = f"{_APPARMOR}{container.get('name')}"
        if armor is not None and key in annotations:
            here = f"{at_container}.securityContext.appArmorProfile"
            errors += _same_profile(annotations[key], armor, here, "apparmor")
    return errors


def _same_profile(annotation: str, profile: Raw, path: str, word: str) -> Errors:
    wrong_type = [forbidden(f"{path}.type", f"{word} type in annotation and field must match")]
    match profile.get("type"):
        case "Unconfined":
            return [] if annotation == "unconfined" else wrong_type
        case "RuntimeDefault":
            return [] if annotation in ("runtime/default", "docker/default") else wrong_type
        case "Localhost":
            if not annotation.startswith("localhost/"):
                return wrong_type
            if annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
                detail = f"{word} profile in annotation and field must match"
                return [forbidden(f"{path}.localhostProfile", detail)]
    return []


def operating_system(spec: Raw, path: str) -> Errors:
    """Check `os`, and what a pod of that system may not have."""
    system = spec["os"].get("name") or ""
    if not system:
        return [required(f"{path}.os.name")]
    if system not in ("linux", "windows"):
        return [not_supported(f"{path}.os", system, ("linux", "windows"))]
    return _linux(spec, path) if system == "linux" else _windows(spec, path)


def _linux(spec: Raw, path: str) -> Errors:
    detail = "windows options cannot be set for a linux pod"
    errors: Errors = []
    if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
        errors.append(forbidden(f"{path}.securityContext.windowsOptions", detail))
    for container, here in containers_with_path(spec, path):
        if (container.get("securityContext") or {}).get("windowsOptions") is not None:
            errors.append(forbidden(f"{here}.securityContext.windowsOptions", detail))
    return errors


_POD_LINUX_ONLY = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_CONTAINER_LINUX_ONLY = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def _windows(spec: Raw, path: str) -> Errors:
    errors: Errors = []
    context = spec.get("securityContext") or {}
    for key in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        if spec.get(key) or (spec.get(key) is not None and key in ("hostUsers", "shareProcessNamespace")):
            errors.append(forbidden(f"{path}.{key}", _WINDOWS))
    errors += _set_keys(context, _POD_LINUX_ONLY, f"{path}.securityContext")
    for container, here in containers_with_path(spec, path):
        errors += _set_keys(container.get("securityContext") or {}, _CONTAINER_LINUX_ONLY, f"{here}.securityContext")
    return errors


def _set_keys(context: Raw, keys: tuple[str, ...], path: str) -> list[FieldError]:
    return [forbidden(f"{path}.{key}", _WINDOWS) for key in keys if context.get(key) not in (None, [])]
