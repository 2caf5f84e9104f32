"""Pods and pod templates.

Source: pkg/apis/core/validation/validation.go ValidatePodSpec, ValidatePodCreate, ValidatePodTemplateSpec, v1.36
    (feature gates at their defaults).
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, not_found, required, too_long
from skysail.apiserver.validation import containers, node_selectors, placement, resources, security
from skysail.apiserver.validation.containers import PodFacts, one_of
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import annotations, core_finalizer, labels
from skysail.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    dns_subdomain_underscore,
    in_range,
    ip_address,
    qualified_name,
)
from skysail.apiserver.validation.volumes import volumes

_MAX_INT32 = 2**31 - 1
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pod_create(pod: Raw) -> Errors:
    """Check a new pod."""
    spec = pod.get("spec") or {}
    errors = pod_metadata_and_spec(pod)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors + security.profiles_match_annotations(pod["metadata"].get("annotations") or {}, spec, "spec")


def pod_metadata_and_spec(pod: Raw) -> Errors:
    """Check what holds for a pod at any time."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    errors: Errors = []
    if meta.get("annotations"):
        errors += pod_annotations(meta["annotations"], spec, "metadata.annotations")
    errors += pod_spec(spec, "spec", pod_name=meta.get("name") or "", is_pod=True)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    path = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                    errors.append(forbidden(path, "must not be specified when serviceAccountName is not set"))
    errors += containers.trimmed_images(spec.get("containers") or (), "spec.containers")
    return errors + containers.trimmed_images(spec.get("initContainers") or (), "spec.initContainers")


def pod_annotations(values: Raw, spec: Raw, path: str) -> Errors:
    """Check the annotations that mean something to pods."""
    errors: Errors = []
    if _MIRROR in values and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{_MIRROR}]", values[_MIRROR], detail))
    cost = values.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        errors.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    return errors + security.annotation_profiles(values, spec, path)


def _is_int32(text: str) -> bool:
    digits = text[1:] if text[:1] == "-" else text
    if not digits.isascii() or not digits.isdigit() or (digits[0] == "0" and digits != "0"):
        return False
    return -_MAX_INT32 - 1 <= int(text) <= _MAX_INT32


def template_spec(template: Raw, path: str) -> Errors:
    """Check a pod template: labels, annotations, spec; no ephemeral containers."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors: Errors = []
    if meta.get("labels"):
        errors += labels(meta["labels"], f"{path}.labels")
    if meta.get("annotations"):
        errors += annotations(meta["annotations"], f"{path}.annotations")
        errors += pod_annotations(meta["annotations"], spec, f"{path}.annotations")
    errors += pod_spec(spec, f"{path}.spec", pod_name="", is_pod=False)
    errors += security.profiles_match_annotations(meta.get("annotations") or {}, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return errors


def pod_template_object(obj: Raw) -> Errors:
    """Check a PodTemplate."""
    return template_spec(obj.get("template") or {}, "template")


def pod_spec(spec: Raw, path: str, *, pod_name: str, is_pod: bool) -> Errors:
    """Check the spec of a pod or of a template."""
    errors: Errors = []
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    sound, faults = volumes(spec.get("volumes") or (), pod_name, f"{path}.volumes", is_pod=is_pod)
    errors += faults
    claims = spec.get("resourceClaims") or ()
    if claims:
        errors += _resource_claims(claims, f"{path}.resourceClaims")
    facts = PodFacts(
        volumes=sound,
        claims={claim.get("name") for claim in claims if claim.get("name")},
        restart_policy=spec.get("restartPolicy") or "",
        grace=grace,
        os=spec.get("os"),
        host_users=spec.get("hostUsers") is not False,
        is_pod=is_pod,
    )
    plain, init = spec.get("containers") or (), spec.get("initContainers") or ()
    errors += containers.plain(plain, f"{path}.containers", facts)
    if init:
        errors += containers.init(init, plain, f"{path}.initContainers", facts)
    if spec.get("ephemeralContainers"):
        others = [*plain, *init]
        errors += containers.ephemeral(spec["ephemeralContainers"], others, f"{path}.ephemeralContainers", facts)
    if spec.get("resources") is not None:
        errors += _pod_resources(spec, path)
    if spec.get("hostNetwork"):
        errors += _host_network_ports(spec, path, is_pod)
    errors += one_of(facts.restart_policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    errors += one_of(spec.get("dnsPolicy") or "", _DNS_POLICIES, f"{path}.dnsPolicy")
    return errors + _rest(spec, path)


def _rest(spec: Raw, path: str) -> Errors:
    """What is seldom there: each part is only looked at when it is."""
    errors: Errors = []
    if spec.get("nodeSelector"):
        errors += labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("securityContext"):
        errors += security.pod_security(spec["securityContext"], spec, f"{path}.securityContext")
    if spec.get("affinity"):
        errors += node_selectors.affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        errors += _dns_config(spec.get("dnsConfig"), spec.get("dnsPolicy") or "", f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        errors += at(f"{path}.readinessGates[{index}].conditionType", qualified_name(kind), kind)
    if spec.get("schedulingGates"):
        errors += placement.scheduling_gates(spec["schedulingGates"], f"{path}.schedulingGates")
    if spec.get("topologySpreadConstraints"):
        errors += placement.topology_spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    if spec.get("hostUsers") is False:
        errors += _own_users(spec, path)
    if spec.get("hostnameOverride") is not None:
        errors += _hostname_override(spec, f"{path}.hostnameOverride")
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            errors += at(f"{path}.{key}", dns_subdomain(spec[key]), spec[key])
    return errors + _late(spec, path)


def _late(spec: Raw, path: str) -> Errors:
    """The second half of what is seldom there, in upstream's order."""
    errors: Errors = []
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, in_range(1, _MAX_INT32)))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            errors += at(f"{path}.{key}", dns_label(spec[key]), spec[key])
    if spec.get("tolerations"):
        errors += placement.tolerations(spec["tolerations"], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        errors += at(f"{here}.ip", ip_address(alias.get("ip") or ""), alias.get("ip") or "")
        for number, name in enumerate(alias.get("hostnames") or ()):
            errors += at(f"{here}.hostnames[{number}]", dns_subdomain(name), name)
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key) or (key == "runtimeClassName" and spec.get(key) is not None):
            errors += at(f"{path}.{key}", dns_subdomain(spec[key]), spec[key])
    if spec.get("preemptionPolicy") is not None:
        errors += one_of(spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"), f"{path}.preemptionPolicy")
    if spec.get("overhead"):
        errors += resources.requirements({"limits": spec["overhead"]}, f"{path}.overhead")
    if spec.get("os") is not None:
        errors += security.operating_system(spec, path)
    return errors + _file_key_volumes(spec, path)


def _resource_claims(claims: Sequence[Raw], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            errors.append(required(f"{here}.name"))
        elif name in seen:
            errors.append(duplicate(f"{here}.name", name))
        else:
            errors += at(f"{here}.name", dns_label(name), name)
            seen.add(name)
        given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key) is not None]
        shown = {
            "Name": name,
            "ResourceClaimName": claim.get("resourceClaimName"),
            "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName"),
        }
        if len(given) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(here, shown, detail))
        if not given:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(here, shown, detail))
        for key in given:
            errors += at(f"{here}.{key}", dns_subdomain(claim[key]), claim[key])
    return errors


def _pod_resources(spec: Raw, path: str) -> Errors:
    here = f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(here, "may not be set for a windows pod")]
    block = spec["resources"]
    errors: Errors = []
    if block.get("claims") is not None:
        errors.append(forbidden(f"{here}.claims", "claims may not be set for Resources at pod-level"))
    errors += resources.requirements(block, here, name_check=resources.pod_resource_name)
    return errors + resources.consistent_with_containers(spec, here)


def _host_network_ports(spec: Raw, path: str, is_pod: bool) -> Errors:
    errors: Errors = []
    for index, item in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(item.get("ports") or ()):
            host, inside = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or host) and host != inside:
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{path}.containers[{index}].ports[{number}].hostPort", host, detail))
    return errors


def _dns_config(config: Raw | None, policy: str, path: str) -> Errors:
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    errors: Errors = []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > 3:
        errors.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        errors += at(f"{path}.nameservers[{index}]", ip_address(server), server)
    if len(searches) > 32:
        errors.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            errors += at(f"{path}.searches[{index}]", dns_subdomain_underscore(name), name)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _own_users(spec: Raw, path: str) -> Errors:
    detail = "when `hostUsers` is false"
    errors: Errors = []
    if spec.get("hostNetwork"):
        errors.append(forbidden(f"{path}.hostNetwork", detail))
    for key, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(key):
            errors.append(forbidden(f"{path}.{shown}", detail))
    for container, here in security.containers_with_path(spec, path):
        if container.get("volumeDevices"):
            errors.append(forbidden(f"{here}.volumeDevices", detail))
    return errors


def _hostname_override(spec: Raw, path: str) -> Errors:
    name = spec["hostnameOverride"]
    errors: Errors = []
    for key in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(key):
            errors.append(forbidden(path, f"may not be specified when {key} is true"))
    if len(name) > 64:
        errors.append(too_long(path, 64))
    return errors + at(path, dns_subdomain(name), name)


def _file_key_volumes(spec: Raw, path: str) -> Errors:
    errors: Errors = []
    for container, here in security.containers_with_path(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name, where = reference.get("volumeName") or "", f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
            volume = next((item for item in spec.get("volumes") or () if item.get("name") == name), None)
            if volume is None:
                errors.append(not_found(where, name))
            elif volume.get("emptyDir") is None:
                errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors


def finalizers(names: Sequence[str], path: str) -> Errors:
    """Check the finalizers of a core kind one by one."""
    return [error for index, name in enumerate(names) for error in core_finalizer(name, f"{path}[{index}]")]
