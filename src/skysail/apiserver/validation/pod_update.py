"""What may change in a pod: images, a shorter deadline, more tolerations, fewer gates.

Source: pkg/apis/core/validation/validation.go ValidatePodUpdate, ValidatePodEphemeralContainersUpdate,
    ValidatePodResize, v1.36.
"""

from collections.abc import Iterator, Mapping, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, required
from skysail.apiserver.validation.field import Errors, same
from skysail.apiserver.validation.go_form import go_form, spec_difference
from skysail.apiserver.validation.names import in_range
from skysail.apiserver.validation.node_selectors import REQUIRED
from skysail.apiserver.validation.placement import only_added_tolerations, only_removed_gates
from skysail.apiserver.validation.pods import pod_annotations, pod_metadata_and_spec
from skysail.apiserver.validation.quality import qos_class

_MAX_INT32 = 2**31 - 1
_MIRROR = "kubernetes.io/config.mirror"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_update(new: Raw, old: Raw) -> Errors:
    """Check the change of a pod through its main endpoint."""
    errors = pod_metadata_and_spec(new) if _differs(new, old) else []
    errors += annotation_changes(new, old)
    wanted, before = new["spec"], old["spec"]
    for key in ("containers", "initContainers"):
        faults, stop = _images(wanted.get(key) or (), before.get(key) or (), f"spec.{key}")
        errors += faults
        if stop:
            return errors
    faults, stop = _deadline(wanted.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += faults
    if stop:
        return errors
    tolerations = wanted.get("tolerations") or (), before.get("tolerations") or ()
    if not same(*tolerations):
        errors += only_added_tolerations(*tolerations, "spec.tolerations")
    gates = wanted.get("schedulingGates") or (), before.get("schedulingGates") or ()
    errors += only_removed_gates(*gates, "spec.schedulingGates")
    if same(wanted, before):
        return errors
    munged = _munged(wanted, before)
    if before.get("schedulingGates"):
        errors += _gated(munged, before)
    if not same(munged, before):
        difference = spec_difference("PodSpec", before, munged)
        errors.append(forbidden("spec", f"pod updates may not change fields other than {_MAY_CHANGE}\n{difference}"))
    return errors


def _differs(new: Raw, old: Raw) -> bool:
    """Whether anything is new that a check of the whole pod could find fault with."""
    return not same(new["spec"], old["spec"]) or not same(
        new["metadata"].get("annotations"), old["metadata"].get("annotations")
    )


def annotation_changes(new: Raw, old: Raw) -> Errors:
    """Check that AppArmor and mirror annotations stay, and what the others mean."""
    wanted, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    if wanted == before:
        return []
    errors: Errors = []
    path = "metadata.annotations"
    for key, value in before.items():
        if wanted.get(key) == value:
            continue
        if key.startswith(_APPARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
        if key == _MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in wanted.keys() - before.keys():
        if key.startswith(_APPARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == _MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return errors + pod_annotations(wanted, new.get("spec") or {}, path)


def _images(new: Sequence[Raw], old: Sequence[Raw], path: str) -> tuple[Errors, bool]:
    if len(new) != len(old):
        return [forbidden(path, "pod updates may not add or remove containers")], True
    errors: Errors = []
    for index, container in enumerate(new):
        image = container.get("image") or ""
        if not image:
            errors.append(required(f"{path}[{index}].image"))
        if image != image.strip():
            detail = "must not have leading or trailing whitespace"
            errors.append(invalid(f"{path}[{index}].image", image, detail))
    return errors, False


def _deadline(new: int | None, old: int | None) -> tuple[Errors, bool]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is None:
            return [], False
        return [invalid(path, None, "must not update from a positive integer to nil value")], False
    if not 0 <= new <= _MAX_INT32:
        return [invalid(path, new, in_range(0, _MAX_INT32))], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _munged(new: Raw, old: Raw) -> Raw:
    """The new spec with everything put back that was free to change."""
    munged = dict(new)
    for key in ("containers", "initContainers"):
        if munged.get(key):
            munged[key] = [
                {**container, "image": before.get("image")}
                for container, before in zip(new[key], old.get(key) or (), strict=True)
            ]
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged[key] = old.get(key)
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    return munged


def _gated(munged: Raw, old: Raw) -> Errors:
    """A gated pod may narrow where it can run; alters `munged`."""
    errors: Errors = []
    selector, before = munged.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if selector != before:
        if any(selector.get(key) != value for key, value in before.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", selector or None, detail))
        munged["nodeSelector"] = old.get("nodeSelector")
    affinity, known = munged.get("affinity"), old.get("affinity")
    node, known_node = (affinity or {}).get("nodeAffinity"), (known or {}).get("nodeAffinity")
    if same(node, known_node):
        return errors
    errors += _node_affinity(node, known_node)
    if affinity is None:
        munged["affinity"] = {"nodeAffinity": known_node} if known_node is not None else None
    elif known is None and not affinity.get("podAffinity") and not affinity.get("podAntiAffinity"):
        munged["affinity"] = None
    else:
        munged["affinity"] = {**affinity, "nodeAffinity": known_node}
    return errors


def _node_affinity(new: Raw | None, old: Raw | None) -> Errors:
    required_before = (old or {}).get(REQUIRED)
    if required_before is None:
        return []
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    before = required_before.get("nodeSelectorTerms") or []
    after = ((new or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(after):
        shown = [go_form("NodeSelectorTerm", term) for term in after] or None
        return [invalid(path, shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{path}[{index}]", go_form("NodeSelectorTerm", term), detail)
        for index, (term, known) in enumerate(zip(after, before, strict=False))
        if not _only_adds(term, known)
    ]


def _only_adds(new: Raw, old: Raw) -> bool:
    keys = ("matchExpressions", "matchFields")
    if not any(old.get(key) for key in keys):
        return not any(new.get(key) for key in keys)
    return all(same((new.get(key) or [])[: len(old.get(key) or [])], old.get(key) or []) for key in keys)


def ephemeral_containers_update(new: Raw, old: Raw) -> Errors:
    """Check that ephemeral containers are only added."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods do not support ephemeral containers")]
    errors = pod_metadata_and_spec(new) + annotation_changes(new, old)
    path = "spec.ephemeralContainers"
    wanted = {item.get("name"): item for item in new["spec"].get("ephemeralContainers") or ()}
    for known in old["spec"].get("ephemeralContainers") or ():
        name = known.get("name")
        if name not in wanted:
            errors.append(forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif not same(known, wanted[name]):
            difference = spec_difference("EphemeralContainer", known, wanted[name])
            detail = f'existing ephemeral containers "{name}" may not be changed\n{difference}'
            errors.append(forbidden(path, detail))
    return errors


def resize(new: Raw, old: Raw) -> Errors:
    """Check that a resize only moves CPU and memory, and leaves the quality of service."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods cannot be resized")]
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    errors = pod_metadata_and_spec(new)
    quality = (old.get("status") or {}).get("qosClass") or qos_class(old["spec"])
    if quality != qos_class(new["spec"]):
        errors.append(invalid("spec", quality, "Pod QOS Class may not change as a result of resizing"))
    faults = _same_order(new["spec"], old["spec"])
    if faults:
        return errors + faults
    for key in ("initContainers", "containers"):
        for index, wanted, known in _pairs(new, old, key):
            if key == "containers" or known.get("restartPolicy") == "Always":
                path = f"spec.{key}[{index}].resources"
                errors += _not_removed(wanted.get("resources") or {}, known.get("resources") or {}, path)
    for _, wanted, known in _pairs(new, old, "containers"):
        if not same(_without_compute(wanted, known), known):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    for index, wanted, known in _pairs(new, old, "initContainers"):
        if wanted.get("restartPolicy") != "Always":
            if not same(wanted, known):
                errors.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
        elif not same(_without_compute(wanted, known), known):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(f"spec.initContainers[{index}]", detail))
    return errors


def _pairs(new: Raw, old: Raw, key: str) -> Iterator[tuple[int, Raw, Raw]]:
    pairs = zip(new["spec"].get(key) or (), old["spec"].get(key) or (), strict=True)
    return ((index, wanted, known) for index, (wanted, known) in enumerate(pairs))


def _same_order(new: Raw, old: Raw) -> Errors:
    errors: Errors = []
    for word in ("containers", "initContainers"):
        wanted, known = new.get(word) or (), old.get(word) or ()
        if len(wanted) != len(known):
            errors.append(forbidden(f"spec.{word}", f"{word} may not be added or removed on resize"))
            continue
        for index, (left, right) in enumerate(zip(wanted, known, strict=True)):
            if left.get("name") != right.get("name"):
                detail = f"{word} may not be renamed or reordered on resize"
                errors.append(forbidden(f"spec.{word}[{index}].name", detail))
    return errors


def _not_removed(new: Raw, old: Raw, path: str) -> Errors:
    errors: Errors = []
    for key in ("requests", "limits"):
        if (old.get(key) or {}).keys() - (new.get(key) or {}).keys():
            errors.append(forbidden(f"{path}.{key}", f"resource {key} cannot be removed"))
    return errors


def _without_compute(new: Raw, old: Raw) -> Raw:
    """The new container with CPU, memory and resize policies put back."""
    resources = {**(new.get("resources") or {})}
    known: Mapping[str, Raw] = old.get("resources") or {}
    for key in ("limits", "requests"):
        amounts = {k: v for k, v in (resources.get(key) or {}).items() if k not in ("cpu", "memory")}
        amounts |= {k: v for k, v in (known.get(key) or {}).items() if k in ("cpu", "memory")}
        resources[key] = amounts
    return {**new, "resources": resources, "resizePolicy": old.get("resizePolicy")}
