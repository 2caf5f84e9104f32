"""LimitRanger: defaults and bounds that a LimitRange sets for its namespace.

Source: plugin/pkg/admission/limitranger, v1.36.
"""

from collections.abc import Iterator, Mapping

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.validation.amounts import pod_amounts

LIMIT_RANGES = GroupResource("", "limitranges")
_ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = Mapping[str, Quantity]


def set_defaults(a: Attributes) -> None:
    """Give containers the limits and requests their namespace says they have by default."""
    if a.operation != "CREATE" or a.ctx.subresource:
        return
    for item in a.ctx.reader.list(LIMIT_RANGES, a.namespace):
        _set_defaults(a.obj, item)


def _set_defaults(pod: Raw, limit_range: Raw) -> None:
    requests: Raw = {}
    limits: Raw = {}
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            requests.update(limit.get("defaultRequest") or {})
            limits.update(limit.get("default") or {})
    notes: list[str] = []
    spec = pod.get("spec") or {}
    for word, key in (("container", "containers"), ("init container", "initContainers")):
        for container in spec.get(key) or ():
            notes += _merge(container, requests, limits, f"{word} {container.get('name') or ''}")
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, _ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _merge(container: Raw, requests: Raw, limits: Raw, about: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for word, defaults in (("request", requests), ("limit", limits)):
        present = resources.get(f"{word}s") or {}
        added = {name: amount for name, amount in defaults.items() if name not in present}
        if added:
            container["resources"] = resources = {**resources, f"{word}s": {**present, **added}}
            yield f"{', '.join(sorted(added))} {word} for {about}"


def enforce(a: Attributes) -> None:
    """Refuse what is under the minimum, over the maximum, or too far apart."""
    is_pod = a.resource.resource == "pods"
    if a.ctx.subresource and not (is_pod and a.ctx.subresource == "resize"):
        return
    if is_pod and a.operation == "UPDATE" and a.ctx.subresource != "resize":
        return
    if a.old is not None and a.old["metadata"].get("deletionTimestamp"):
        return
    for item in a.ctx.reader.list(LIMIT_RANGES, a.namespace):
        faults: list[str] = []
        for limit in (item.get("spec") or {}).get("limits") or ():
            faults += _pod_faults(a.obj, limit) if is_pod else _claim_faults(a.obj, limit)
        faults = list(dict.fromkeys(faults))
        if faults:
            raise a.refuse(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _pod_faults(pod: Raw, limit: Raw) -> list[str]:
    faults: list[str] = []
    spec = pod.get("spec") or {}
    if limit.get("type") == "Container":
        for key in ("containers", "initContainers"):
            for container in spec.get(key) or ():
                resources = container.get("resources") or {}
                faults += _bounds(limit, _parse(resources.get("requests")), _parse(resources.get("limits")))
    elif limit.get("type") == "Pod":
        faults += _bounds(limit, pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))
    return faults


def _claim_faults(claim: Raw, limit: Raw) -> list[str]:
    if limit.get("type") != "PersistentVolumeClaim":
        return []
    requests = _parse(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    kind = "PersistentVolumeClaim"
    faults = [_minimum(kind, name, bound, requests, {}) for name, bound in _parse(limit.get("min")).items()]
    for name, bound in _parse(limit.get("max")).items():
        faults.append(_maximum_request(kind, name, bound, requests))
    return [fault for fault in faults if fault]


def _bounds(limit: Raw, requests: Amounts, limits: Amounts) -> list[str]:
    kind = limit.get("type") or ""
    faults = [_minimum(kind, name, bound, requests, limits) for name, bound in _parse(limit.get("min")).items()]
    faults += [_maximum(kind, name, bound, requests, limits) for name, bound in _parse(limit.get("max")).items()]
    for name, bound in _parse(limit.get("maxLimitRequestRatio")).items():
        faults.append(_ratio(kind, name, bound, requests, limits))
    return [fault for fault in faults if fault]


def _parse(amounts: Raw | None) -> Amounts:
    return {name: parse_quantity(str(text)) for name, text in sorted((amounts or {}).items())}


def _minimum(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"minimum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        return f"{head}.  No request is specified"
    if request < bound:
        return f"{head}, but request is {request}"
    if limit is not None and limit < bound:
        return f"{head}, but limit is {limit}"
    return ""


def _maximum(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"maximum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        return f"{head}.  No limit is specified"
    if limit > bound:
        return f"{head}, but limit is {limit}"
    if request is not None and request > bound:
        return f"{head}, but request is {request}"
    return ""


def _maximum_request(kind: str, name: str, bound: Quantity, requests: Amounts) -> str:
    head = f"maximum {name} usage per {kind} is {bound}"
    request = requests.get(name)
    if request is None:
        return f"{head}.  No request is specified"
    return f"{head}, but request is {request}" if request > bound else ""


def _ratio(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    head = f"{name} max limit to request ratio per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if not request:
        return f"{head}, but no request is specified or request is 0"
    if not limit:
        return f"{head}, but no limit is specified or limit is 0"
    if limit.nano * 1000 > request.nano * bound.milli_value():
        return f"{head}, but provided ratio is {limit.nano / request.nano:f}"
    return ""
