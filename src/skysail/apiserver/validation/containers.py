"""Containers of every sort: plain, init, ephemeral.

Source: pkg/apis/core/validation/validation.go validateContainerCommon, validateInitContainers ..., v1.36.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, not_found, not_supported, required
from skysail.apiserver.validation.environment import env, env_from
from skysail.apiserver.validation.field import Errors, at, too_many
from skysail.apiserver.validation.handlers import lifecycle, probes
from skysail.apiserver.validation.mounts import devices, mounts
from skysail.apiserver.validation.names import dns_label, port_name, port_number
from skysail.apiserver.validation.resources import requirements
from skysail.apiserver.validation.security import container_security

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_INIT_ONLY = "may not be set for init containers without restartPolicy=Always"
_EPHEMERAL_ALLOWED = frozenset(
    {
        "name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices",
        "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin",
        "stdinOnce", "tty", "targetContainerName",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What a container's check must know of its pod."""

    volumes: Mapping[str, Raw]
    claims: Collection[str]
    restart_policy: str
    grace: int | None
    os: Raw | None
    host_users: bool
    is_pod: bool


def plain(items: Sequence[Raw], path: str, pod: PodFacts) -> Errors:
    """Check the containers of a pod."""
    if not items:
        return [required(path)]
    errors: Errors = []
    names: set[str] = set()
    for index, item in enumerate(items):
        here, name = f"{path}[{index}]", item.get("name") or ""
        errors += _common(item, here, pod)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        if item.get("lifecycle") is not None:
            errors += lifecycle(item["lifecycle"], pod.grace, f"{here}.lifecycle", pod.os)
        errors += probes(item, here)
        errors += _restart_policy(item, here)
    return errors + _host_ports(items, path)


def init(items: Sequence[Raw], others: Sequence[Raw], path: str, pod: PodFacts) -> Errors:
    """Check the init containers of a pod; those that always restart are sidecars and may have probes."""
    errors: Errors = []
    names = {item.get("name") or "" for item in others}
    for index, item in enumerate(items):
        here, name = f"{path}[{index}]", item.get("name") or ""
        errors += _common(item, here, pod)
        errors += _restart_policy(item, here)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        errors += _host_ports([item], path)
        if item.get("restartPolicy") == "Always":
            if item.get("lifecycle") is not None:
                errors += lifecycle(item["lifecycle"], pod.grace, f"{here}.lifecycle", pod.os)
            errors += probes(item, here)
            continue
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if item.get(key) is not None:
                errors.append(forbidden(f"{here}.{key}", _INIT_ONLY))
        for number, policy in enumerate(item.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(invalid(f"{here}.resizePolicy[{number}].restartPolicy", "RestartContainer", detail))
    return errors


def ephemeral(items: Sequence[Raw], others: Sequence[Raw], path: str, pod: PodFacts) -> Errors:
    """Check the ephemeral containers of a pod: few fields, names of their own."""
    errors: Errors = []
    known = {item.get("name") or "" for item in others}
    names = set(known)
    for index, item in enumerate(items):
        here, name = f"{path}[{index}]", item.get("name") or ""
        errors += _common(item, here, pod) + _trimmed_image(item, here)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        target = item.get("targetContainerName") or ""
        if target and target not in known:
            errors.append(not_found(f"{here}.targetContainerName", target))
        for key, value in item.items():
            if key not in _EPHEMERAL_ALLOWED and value:
                errors.append(forbidden(f"{here}.{key}", "cannot be set for an Ephemeral Container"))
        for number, mount in enumerate(item.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    detail = "cannot be set for an Ephemeral Container"
                    errors.append(forbidden(f"{here}.volumeMounts[{number}].{key}", detail))
    return errors


def trimmed_images(items: Sequence[Raw], path: str) -> Errors:
    """Image names of pods (not of templates) have no blanks around them."""
    return [error for index, item in enumerate(items) for error in _trimmed_image(item, f"{path}[{index}]")]


def _trimmed_image(item: Raw, path: str) -> Errors:
    image = item.get("image") or ""
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _common(item: Raw, path: str, pod: PodFacts) -> Errors:
    errors: Errors = []
    name = item.get("name") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        errors += at(f"{path}.name", dns_label(name), name)
    if not item.get("image"):
        errors.append(required(f"{path}.image"))
    errors += one_of(item.get("terminationMessagePolicy") or "", _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    if item.get("ports"):
        errors += _ports(item["ports"], f"{path}.ports")
    if item.get("env"):
        errors += env(item["env"], f"{path}.env")
    if item.get("envFrom"):
        errors += env_from(item["envFrom"], f"{path}.envFrom")
    if item.get("volumeMounts") or item.get("volumeDevices"):
        errors += mounts(item, pod.volumes, f"{path}.volumeMounts")
        errors += devices(item, pod.volumes, f"{path}.volumeDevices")
    errors += one_of(item.get("imagePullPolicy") or "", _PULL_POLICIES, f"{path}.imagePullPolicy")
    if item.get("resources"):
        errors += requirements(item["resources"], f"{path}.resources", claims=pod.claims)
    if item.get("resizePolicy"):
        errors += _resize_policy(item["resizePolicy"], f"{path}.resizePolicy", pod.restart_policy)
    if item.get("securityContext"):
        errors += container_security(item["securityContext"], f"{path}.securityContext", pod.host_users)
    return errors


def one_of(value: str, choices: Sequence[str], path: str) -> Errors:
    """A value out of a closed set; empty is missing."""
    if value in choices:
        return []
    return [not_supported(path, value, choices)] if value else [required(path)]


def _ports(items: Sequence[Raw], path: str) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, item in enumerate(items):
        here, name = f"{path}[{index}]", item.get("name") or ""
        if name:
            messages = port_name(name)
            errors += at(f"{here}.name", messages, name)
            if not messages and name in names:
                errors.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = item.get("containerPort") or 0
        if number == 0:
            errors.append(required(f"{here}.containerPort"))
        else:
            errors += at(f"{here}.containerPort", port_number(number), number)
        host = item.get("hostPort") or 0
        if host:
            errors += at(f"{here}.hostPort", port_number(host), host)
        errors += one_of(item.get("protocol") or "", _PROTOCOLS, f"{here}.protocol")
    return errors


def _host_ports(items: Sequence[Raw], path: str) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, item in enumerate(items):
        for number, port in enumerate(item.get("ports") or ()):
            if port.get("hostPort"):
                key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
                if key in taken:
                    errors.append(duplicate(f"{path}[{index}].ports[{number}].hostPort", key))
                taken.add(key)
    return errors


def _resize_policy(items: Sequence[Raw], path: str, restart_policy: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, policy = item.get("resourceName") or "", item.get("restartPolicy") or ""
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
        errors += one_of(name, ("cpu", "memory"), path)
        errors += one_of(policy, ("NotRequired", "RestartContainer"), path)
        if restart_policy == "Never" and policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, policy, detail))
    return errors


def _restart_policy(item: Raw, path: str) -> Errors:
    policy, rules = item.get("restartPolicy"), item.get("restartPolicyRules") or ()
    errors: Errors = []
    if policy is None:
        if rules:
            detail = "must specify restartPolicy when restart rules are used"
            errors.append(required(f"{path}.restartPolicy", detail))
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        here, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action") not in ("Restart", "RestartAllContainers"):
            choices = ("Restart", "RestartAllContainers")
            errors.append(not_supported(f"{here}.action", rule.get("action") or "", choices))
        if codes is None:
            errors.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            errors.append(not_supported(f"{here}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn")))
        if len(codes.get("values") or ()) > 255:
            errors.append(too_many(f"{here}.exitCodes.values", len(codes["values"]), 255))
    return errors
