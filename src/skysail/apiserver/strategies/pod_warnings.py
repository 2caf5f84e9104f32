"""What a client is warned of in a pod or a template: nothing wrong, but hardly meant.

Source: pkg/api/pod/warnings.go, pkg/api/node/util.go, v1.36.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import quote
from skysail.apiserver.validation.names import label_value, parse_ip

Warnings = list[str]

_OLD_LABELS: Mapping[str, str] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_OLD_ANNOTATIONS: Mapping[str, str] = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_OLD_VOLUMES: Mapping[str, str] = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP, _SECCOMP_CONTAINER = (
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/",
)
_USE_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_USE_APPARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution",
)  # fmt: skip
_SELDOM = frozenset(
    (
        "nodeSelector", "affinity", "topologySpreadConstraints", "volumes", "hostAliases", "imagePullSecrets",
        "overhead", "dnsConfig",
    )
)  # fmt: skip
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def pod_warnings(pod: Raw, path: str = "") -> Warnings:
    """The warnings about a pod, or about a template standing at `path` (with a dot behind it)."""
    spec, annotations = pod.get("spec") or {}, (pod.get("metadata") or {}).get("annotations") or {}
    found = [] if spec.keys().isdisjoint(_SELDOM) else _seldom(spec, path)
    if annotations:
        found += [
            f"{path}metadata.annotations[{key}]: {words}"
            for key, words in _OLD_ANNOTATIONS.items()
            if key in annotations
        ]
    context = spec.get("securityContext") or {}
    if _SECCOMP in annotations and not context.get("seccompProfile"):
        found.append(f"{path}metadata.annotations[{_SECCOMP}]: {_USE_SECCOMP}")
    for container, place in _containers(spec, path):
        found += _container(container, place)
        if annotations:
            found += _container_annotations(container, context, annotations, path)
    found += _ports(spec, path)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        place = f"{path}spec.terminationGracePeriodSeconds"
        found.append(f"{place}: must be >= 0; negative values are invalid and will be treated as 1")
    return found


def _seldom(spec: Raw, path: str) -> Warnings:
    """The warnings about what few pods have."""
    found: Warnings = []
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_LABELS:
            found.append(f"{path}spec.nodeSelector[{key}]: {_OLD_LABELS[key]}")
    if spec.get("affinity"):
        found += _node_affinity(spec["affinity"].get("nodeAffinity") or {}, f"{path}spec.affinity.nodeAffinity")
    if spec.get("topologySpreadConstraints"):
        found += _spread(spec["topologySpreadConstraints"], f"{path}spec.topologySpreadConstraints")
    for index, volume in enumerate(spec.get("volumes") or ()):
        found += [
            f"{path}spec.volumes[{index}].{kind}: {_OLD_VOLUMES[kind]}" for kind in volume.keys() & _OLD_VOLUMES.keys()
        ]
    found += _repeated(spec, path) + _fractions(spec.get("overhead") or {}, f"{path}spec.overhead")
    for kind in ("podAffinity", "podAntiAffinity"):
        found += _pod_affinity((spec.get("affinity") or {}).get(kind) or {}, f"{path}spec.affinity.{kind}")
    return found + _addresses(spec, path)


def _containers(spec: Raw, path: str) -> Iterator[tuple[Raw, str]]:
    for key in _CONTAINERS:
        for index, container in enumerate(spec.get(key) or ()):
            yield container, f"{path}spec.{key}[{index}]"


def _node_affinity(affinity: Raw, path: str) -> Warnings:
    found: Warnings = []
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        found += _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        place, preference = f"{path}.{_PREFERRED}[{index}].preference", term.get("preference") or {}
        found += _node_term(preference, place)
        found += [
            f"{place}.matchExpressions[{number}].values[{where}]: {value} is invalid, {message}"
            for number, item in enumerate(preference.get("matchExpressions") or ())
            for where, value in enumerate(item.get("values") or ())
            for message in label_value(value)
        ]
    return found


def _node_term(term: Raw, path: str) -> Warnings:
    return [
        f"{path}.matchExpressions[{index}].key: {item['key']} is {_OLD_LABELS[item['key']]}"
        for index, item in enumerate(term.get("matchExpressions") or ())
        if item.get("key") in _OLD_LABELS
    ]


def _spread(constraints: Sequence[Raw], path: str) -> Warnings:
    found: Warnings = []
    for index, item in enumerate(constraints):
        key = item.get("topologyKey") or ""
        if key in _OLD_LABELS:
            found.append(f"{path}[{index}].topologyKey: {key} is {_OLD_LABELS[key]}")
        if item.get("labelSelector") is None:
            found.append(f"{path}[{index}].labelSelector: {_NULL_SELECTOR}")
    return found


def _pod_affinity(affinity: Raw, path: str) -> Warnings:
    found = [
        f"{path}.{_REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}"
        for index, term in enumerate(affinity.get(_REQUIRED) or ())
        if term.get("labelSelector") is None
    ]
    return found + [
        f"{path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}"
        for index, term in enumerate(affinity.get(_PREFERRED) or ())
        if (term.get("podAffinityTerm") or {}).get("labelSelector") is None
    ]


def _repeated(spec: Raw, path: str) -> Warnings:
    found: Warnings = []
    for key, part in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(key) or ()):
            value = item.get(part) or ""
            if value in seen:
                found.append(f"{path}spec.{key}[{index}].{part}: duplicate {part} {quote(value)}")
            seen.add(value)
    found += [
        f'{path}spec.imagePullSecrets[{index}].name: invalid empty name ""'
        for index, item in enumerate(spec.get("imagePullSecrets") or ())
        if not item.get("name")
    ]
    return found


def _fractions(amounts: Raw, path: str) -> Warnings:
    """Bytes cannot be divided."""
    found: Warnings = []
    for name in ("memory", "ephemeral-storage"):
        value = amounts.get(name)
        if value is not None and str(value).endswith("m") and parse_quantity(str(value)).milli_value() % 1000:
            found.append(f"{path}[{name}]: fractional byte value {quote(str(value))} is invalid, must be an integer")
    return found


def _container(container: Raw, path: str) -> Warnings:
    found: Warnings = []
    resources = container.get("resources")
    if resources:
        for side in ("limits", "requests"):
            if resources.get(side):
                found += _fractions(resources[side], f"{path}.resources.{side}")
    env = container.get("env") or ()
    if len(env) < 2:
        return found
    seen: set[str] = set()
    for index, item in enumerate(env):
        name, value = item.get("name") or "", item.get("value") or ""
        reference = f"$({name})"
        if name in seen and (item.get("valueFrom") is not None or value == reference or reference not in value):
            hides = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            found.append(f"{path}.env[{index}]: {hides}")
        seen.add(name)
    return found


def _container_annotations(container: Raw, context: Raw, annotations: Raw, path: str) -> Warnings:
    own, name = container.get("securityContext") or {}, container.get("name") or ""
    found: Warnings = []
    key = f"{_SECCOMP_CONTAINER}{name}"
    if key in annotations and not own.get("seccompProfile"):
        found.append(f"{path}metadata.annotations[{key}]: {_USE_SECCOMP}")
    key = f"{_APPARMOR}{name}"
    if path and key in annotations and not own.get("appArmorProfile") and not context.get("appArmorProfile"):
        found.append(f"{path}metadata.annotations[{key}]: {_USE_APPARMOR}")
    return found


def _ports(spec: Raw, path: str) -> Warnings:
    """Ports of one number and protocol, in one or in several containers."""
    found: Warnings = []
    known: dict[tuple[object, object], list[tuple[str, Raw]]] = {}
    for container, place in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            here = f"{place}.ports[{index}]"
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for other, before in others:
                problem = _conflict(port, before)
                if problem:
                    found.append(f"{here}: {problem} port definition with {other}")
            others.append((here, port))
    return found


def _conflict(port: Raw, other: Raw) -> str:
    host, before = port.get("hostPort") or 0, other.get("hostPort") or 0
    ip, other_ip = port.get("hostIP") or "", other.get("hostIP") or ""
    if (host, ip) == (before, other_ip):
        return "duplicate"
    if not host or not before:
        return "overlapping"
    return "dangerously ambiguous" if host == before and bool(ip) != bool(other_ip) else ""


def _addresses(spec: Raw, path: str) -> Warnings:
    found: Warnings = []
    for index, value in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        found += address_warnings(value, f"{path}spec.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += address_warnings(alias.get("ip") or "", f"{path}spec.hostAliases[{index}].ip")
    return found


def address_warnings(value: str, path: str) -> Warnings:
    """An IPv6 address that is not spelled the one true way."""
    address = parse_ip(value)
    if address is None or address.version == 4 or str(address) == value:
        return []
    return [f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(str(address))})"]


def template_warnings(place: tuple[str, ...]) -> Callable[[Raw], Warnings]:
    """The warnings about the template that an object holds at a place."""
    path = f"{'.'.join(place)}."

    def warnings(obj: Raw) -> Warnings:
        holder = obj
        for key in place:
            holder = holder.get(key) or {}
        return pod_warnings(holder, path)

    return warnings
