"""Jobs.

Source: pkg/apis/batch/validation/validation.go ValidateJob, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, not_supported, required, too_long
from skysail.apiserver.validation.field import Errors, immutable, non_negative, same
from skysail.apiserver.validation.go_form import go_form
from skysail.apiserver.validation.job_policies import failure_policy, success_policy
from skysail.apiserver.validation.job_status import is_true
from skysail.apiserver.validation.metadata import label_selector
from skysail.apiserver.validation.names import dns_label
from skysail.apiserver.validation.network import domain_prefixed_path
from skysail.apiserver.validation.pods import template_spec
from skysail.apiserver.validation.selectors import selects

_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_INDEXED_LIMIT, _HIGH, _HIGH_LIMIT = 100_000, 100_000, 10_000


def job(obj: Raw) -> Errors:
    """Check a Job."""
    spec = obj.get("spec") or {}
    errors = _generated_selector(obj) + job_spec(spec, "spec") + _selector(spec)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        name = obj["metadata"].get("name") or ""
        hostname = f"{name}-{completions - 1}"
        if dns_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(invalid("metadata.name", name, detail))
    return errors


def _generated_selector(obj: Raw) -> Errors:
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    expected: Raw = {}
    errors: Errors = []
    for keys, value in ((_UID_LABELS, meta.get("uid") or ""), (_NAME_LABELS, meta.get("name") or "")):
        expected.update(dict.fromkeys(keys, value))
    for key in (_UID_LABELS[0], _NAME_LABELS[0], _UID_LABELS[1], _NAME_LABELS[1]):
        here = "spec.template.metadata.labels"
        if key not in labels:
            errors.append(required(f"{here}[{key}]", f"must be '{expected[key]}'"))
        elif labels[key] != expected[key]:
            errors.append(invalid(f"{here}[{key}]", labels, f"must be '{expected[key]}'"))
    if not selects(spec["selector"], expected):
        errors.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return errors


def _selector(spec: Raw) -> Errors:
    selector = spec.get("selector")
    errors = [required("spec.selector")] if selector is None else label_selector(selector, "spec.selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not label_selector(selector, "") and not selects(selector, labels):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", labels, detail))
    return errors


def job_spec(spec: Raw, path: str) -> Errors:
    """Check the spec of a Job, wherever it stands."""
    errors: Errors = []
    for key in _COUNTS:
        errors += non_negative(spec.get(key), f"{path}.{key}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        errors += _managed_by(spec["managedBy"], f"{path}.managedBy")
    errors += _completion_mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        errors += failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        errors += success_policy(spec, f"{path}.successPolicy")
    errors += _replacement(spec, f"{path}.podReplacementPolicy")
    errors += template_spec(spec.get("template") or {}, f"{path}.template")
    return errors + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _managed_by(value: str, path: str) -> Errors:
    errors = domain_prefixed_path(value, path)
    if len(value) > 63:
        errors.append(too_long(path, 63))
    return errors


def _completion_mode(spec: Raw, path: str) -> Errors:
    mode = spec.get("completionMode")
    errors: Errors = []
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                errors.append(invalid(f"{path}.{key}", spec[key], "requires indexed completion mode"))
    return errors


def _indexed(spec: Raw, path: str) -> Errors:
    completions, parallelism, failed = (spec.get(k) for k in ("completions", "parallelism", "maxFailedIndexes"))
    errors: Errors = []
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > _INDEXED_LIMIT:
        detail = f"must be less than or equal to {_INDEXED_LIMIT} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > _INDEXED_LIMIT:
        detail = f"must be less than or equal to {_INDEXED_LIMIT}"
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    if completions is not None and completions > _HIGH and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            detail = f"must be specified when completions is above {_HIGH}"
            errors.append(required(f"{path}.maxFailedIndexes", detail))
        detail = (
            f"must be less than or equal to {_HIGH_LIMIT} when completions are above {_HIGH} and used with backoff "
            "limit per index"
        )
        for key, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
            if value is not None and value > _HIGH_LIMIT:
                errors.append(invalid(f"{path}.{key}", value, detail))
    return errors


def _replacement(spec: Raw, path: str) -> Errors:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    if spec.get("podFailurePolicy") is not None:
        return [] if policy == "Failed" else [not_supported(path, policy, ("Failed",))]
    known = ("Failed", "TerminatingOrFailed")
    return [] if policy in known else [not_supported(path, policy, known)]


def _restart_policy(spec: Raw, path: str) -> Errors:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def job_update(new: Raw, old: Raw) -> Errors:
    """Check what may change in a Job: while suspended, where and how its pods run; later hardly anything."""
    spec, before = new["spec"], old["spec"]
    errors = job_spec(spec, "spec") + _selector(spec)
    if spec.get("completionMode") != "Indexed":
        errors += immutable(spec.get("completions"), before.get("completions"), "spec.completions")
    elif spec.get("completions") not in (None, before.get("completions"), spec.get("parallelism")):
        detail = "can only be modified in tandem with spec.parallelism"
        errors.append(invalid("spec.completions", spec["completions"], detail))
    errors += immutable(spec.get("selector"), before.get("selector"), "spec.selector")
    errors += _template_update(new, old)
    for key in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        errors += immutable(spec.get(key), before.get(key), f"spec.{key}")
    return errors


def _template_update(new: Raw, old: Raw) -> Errors:
    template, before = new["spec"]["template"], old["spec"]["template"]
    if same(template, before):
        return []
    status = old.get("status") or {}
    suspended = bool(old["spec"].get("suspend"))
    idle = status.get("startTime") is None or is_true(status, "Suspended")
    mutable = suspended and idle and not status.get("active")
    if mutable:
        before = _with_directives(before, template)
        return _only_resources(template.get("spec") or {}, before.get("spec") or {})
    if same(template, before):
        return []
    shown = {**(template.get("metadata") or {}), "Spec": go_form("PodSpec", template.get("spec"))}
    return [invalid("spec.template", shown, "field is immutable")]


def _with_directives(before: Raw, template: Raw) -> Raw:
    """The old template with everything taken over that decides where pods run."""
    old, new = dict(before.get("spec") or {}), template.get("spec") or {}
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        old[key] = new.get(key)
    node = (new.get("affinity") or {}).get("nodeAffinity")
    rest = {key: value for key, value in (old.get("affinity") or {}).items() if key != "nodeAffinity"}
    if node is not None:
        rest["nodeAffinity"] = node
    old["affinity"] = rest or (new.get("affinity") if new.get("affinity") == {} else None)
    meta = {**(before.get("metadata") or {})}
    for key in ("labels", "annotations"):
        meta[key] = (template.get("metadata") or {}).get(key)
    return {**before, "metadata": meta, "spec": old}


def _only_resources(new: Raw, old: Raw) -> Errors:
    before = dict(old)
    for key in ("containers", "initContainers"):
        wanted, known = new.get(key) or [], old.get(key) or []
        if len(wanted) == len(known):
            before[key] = [
                {**item, "resources": other.get("resources")} if item.get("name") == other.get("name") else item
                for item, other in zip(known, wanted, strict=True)
            ]
    if same(new, before):
        return []
    return [invalid("spec.template.spec", go_form("PodSpec", new), "field is immutable")]
