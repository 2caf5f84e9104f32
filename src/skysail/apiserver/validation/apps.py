"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions, ReplicationControllers.

Source: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.claims import claim_spec
from skysail.apiserver.validation.field import Errors, at, immutable, non_negative, same
from skysail.apiserver.validation.metadata import annotations, label_selector, labels
from skysail.apiserver.validation.names import dns_label, percent
from skysail.apiserver.validation.pods import pod_annotations, template_spec
from skysail.apiserver.validation.selectors import is_empty, is_readable, selects

_MISMATCH = "`selector` does not match template `labels`"


def _spec(obj: Raw) -> Raw:
    spec: Raw = obj.get("spec") or {}
    return spec


def deployment(obj: Raw) -> Errors:
    """Check a Deployment."""
    spec = _spec(obj)
    errors = non_negative(spec.get("replicas"), "spec.replicas")
    errors += _selector_and_template(spec, "deployment", "ReplicaSet")
    errors += _deployment_strategy(spec.get("strategy") or {}, "spec.strategy")
    for key in ("minReadySeconds", "revisionHistoryLimit"):
        errors += non_negative(spec.get(key), f"spec.{key}")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        errors += non_negative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def selector_is_fixed(new: Raw, old: Raw) -> Errors:
    """A selector never changes."""
    return immutable(_spec(new).get("selector"), _spec(old).get("selector"), "spec.selector")


def replica_set(obj: Raw) -> Errors:
    """Check a ReplicaSet."""
    spec = _spec(obj)
    errors = non_negative(spec.get("replicas"), "spec.replicas")
    errors += non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    return errors + _selector_and_template(spec, "deployment", "ReplicaSet")


def _selector_and_template(spec: Raw, word: str, kind: str) -> Errors:
    selector = spec.get("selector")
    errors: Errors = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += label_selector(selector, "spec.selector")
        if is_empty(selector):
            errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {word}"))
    if not is_readable(selector):
        errors.append(invalid("spec.selector", selector, "invalid label selector"))
        return errors
    template = spec.get("template") or {}
    if not is_empty(selector) and not selects(selector, _labels(template)):
        errors.append(invalid("spec.template.metadata.labels", _labels(template), _MISMATCH))
    return errors + _always_restarting(template, kind)


def _labels(template: Raw) -> Raw | None:
    return (template.get("metadata") or {}).get("labels")


def _always_restarting(template: Raw, kind: str) -> Errors:
    """Check a template whose pods run for ever."""
    spec = template.get("spec") or {}
    errors = template_spec(template, "spec.template")
    if spec.get("restartPolicy") != "Always":
        path = "spec.template.spec.restartPolicy"
        errors.append(not_supported(path, spec.get("restartPolicy") or "", ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return errors


def _deployment_strategy(strategy: Raw, path: str) -> Errors:
    rolling, here = strategy.get("rollingUpdate"), f"{path}.rollingUpdate"
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                return [forbidden(here, "may not be specified when strategy `type` is 'Recreate'")]
            return []
        case "RollingUpdate":
            if rolling is None:
                return [required(here, "this should be defaulted and never be nil")]
            return _deployment_rolling_update(rolling, here)
    shown = {"Type": strategy.get("type") or "", "RollingUpdate": _go_rolling(rolling)}
    return [not_supported(path, shown, ("Recreate", "RollingUpdate"))]


def _go_rolling(rolling: Raw | None) -> Raw | None:
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable") or 0, "MaxSurge": rolling.get("maxSurge") or 0}


def _deployment_rolling_update(rolling: Raw, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = int_or_percent(unavailable, f"{path}.maxUnavailable") + int_or_percent(surge, f"{path}.maxSurge")
    if amount_of(unavailable) == 0 and amount_of(surge) == 0:
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all(unavailable, f"{path}.maxUnavailable")


def int_or_percent(value: object, path: str) -> Errors:
    """Check a count or a percentage: not negative."""
    if isinstance(value, str):
        return at(path, percent(value), value)
    return non_negative(value, path)


def amount_of(value: object) -> int:
    """The number in a count or a percentage; what is neither counts as nothing."""
    if isinstance(value, str):
        if not percent(value):
            return int(value[:-1])
        return int(value) if value.lstrip("-").isdigit() else 0
    return value if isinstance(value, int) else 0


def at_most_all(value: object, path: str) -> Errors:
    """A percentage is not above a hundred."""
    if isinstance(value, str) and not percent(value) and int(value[:-1]) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def stateful_set(obj: Raw) -> Errors:
    """Check a StatefulSet."""
    return _stateful_set(_spec(obj), new=True)


def _stateful_set(spec: Raw, *, new: bool) -> Errors:
    errors: Errors = []
    policy = spec.get("podManagementPolicy") or ""
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _stateful_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        if retention and retention.get(key) not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            errors.append(not_supported(path, retention.get(key) or "", ("Retain", "Delete")))
    if new:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            errors += claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    for key in ("replicas", "minReadySeconds"):
        errors += non_negative(spec.get(key), f"spec.{key}")
    errors += non_negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    if new and spec.get("serviceName"):
        errors += at("spec.serviceName", dns_label(spec["serviceName"]), spec["serviceName"])
    return errors + _stateful_template(spec)


def _stateful_strategy(strategy: Raw, path: str) -> Errors:
    rolling = strategy.get("rollingUpdate")
    shown = None
    if rolling is not None:
        shown = {"Partition": rolling.get("partition") or 0, "MaxUnavailable": rolling.get("maxUnavailable")}
    match strategy.get("type") or "":
        case "":
            return [required(path)]
        case "OnDelete":
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            return [invalid(f"{path}.rollingUpdate", shown, detail)] if rolling is not None else []
        case "RollingUpdate":
            return _stateful_rolling_update(rolling, f"{path}.rollingUpdate") if rolling is not None else []
    whole = {"Type": strategy["type"], "RollingUpdate": shown}
    return [invalid(path, whole, "must be 'RollingUpdate' or 'OnDelete'")]


def _stateful_rolling_update(rolling: Raw, path: str) -> Errors:
    errors = non_negative(rolling.get("partition"), f"{path}.partition")
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        here = f"{path}.maxUnavailable"
        errors += int_or_percent(unavailable, here)
        if amount_of(unavailable) == 0:
            errors.append(invalid(here, unavailable, "cannot be 0"))
        errors += at_most_all(unavailable, here)
    return errors


def _stateful_template(spec: Raw) -> Errors:
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors: Errors = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += label_selector(selector, "spec.selector")
        if is_empty(selector):
            errors.append(invalid("spec.selector", selector, "empty selector is invalid for statefulset"))
    if not is_readable(selector):
        errors.append(invalid("spec.selector", selector, ""))
    else:
        if not is_empty(selector) and not selects(selector, _labels(template)):
            errors.append(invalid("spec.template.metadata.labels", _labels(template), _MISMATCH))
        errors += template_spec(_with_claims(template, spec), "spec.template")
        errors += _repeated(template)
    pod = template.get("spec") or {}
    if pod.get("restartPolicy") != "Always":
        path = "spec.template.spec.restartPolicy"
        errors.append(not_supported(path, pod.get("restartPolicy") or "", ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in StatefulSet is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return errors


def _with_claims(template: Raw, spec: Raw) -> Raw:
    """The template as its pods will look: claims as volumes, identity left to the controller."""
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")}
    names = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    if names:
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        pod["volumes"] = made + [item for item in pod.get("volumes") or () if item.get("name") not in names]
    return {**template, "spec": pod}


def _repeated(template: Raw) -> Errors:
    """Upstream looks at the template's metadata of a StatefulSet twice."""
    meta = template.get("metadata") or {}
    errors = labels(meta.get("labels") or {}, "spec.template.labels")
    if meta.get("annotations"):
        errors += annotations(meta["annotations"], "spec.template.annotations")
        errors += pod_annotations(meta["annotations"], template.get("spec") or {}, "spec.template.annotations")
    return errors


_STATEFUL_MUTABLE = (
    "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip


def stateful_set_update(new: Raw, old: Raw) -> Errors:
    """Check the new state of a StatefulSet, and that little else than replicas and template changed."""
    errors = _stateful_set(_spec(new), new=False)
    wanted = {key: value for key, value in _spec(new).items() if key not in _STATEFUL_MUTABLE}
    before = {key: value for key, value in _spec(old).items() if key not in _STATEFUL_MUTABLE}
    if not same(wanted, before):
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(forbidden("spec", detail))
    return errors


def daemon_set(obj: Raw) -> Errors:
    """Check a DaemonSet."""
    spec = _spec(obj)
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = label_selector(selector, "spec.selector")
    if is_readable(selector) and not selects(selector, _labels(template)):
        errors.append(invalid("spec.template.metadata.labels", _labels(template), _MISMATCH))
    if is_empty(selector):
        errors.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += _always_restarting(template, "DaemonSet")
    errors += non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += _daemon_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return errors + non_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def daemon_set_update(new: Raw, old: Raw) -> Errors:
    """Check that the selector stays, and the new state."""
    return selector_is_fixed(new, old) + daemon_set(new)


def _daemon_strategy(strategy: Raw, path: str) -> Errors:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": _go_rolling(rolling)}
        return [not_supported(path, shown, ("RollingUpdate", "OnDelete"))]
    here = f"{path}.rollingUpdate"
    if rolling is None:
        return [required(here)]
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = int_or_percent(unavailable, f"{here}.maxUnavailable") + int_or_percent(surge, f"{here}.maxSurge")
    errors += at_most_all(unavailable, f"{here}.maxUnavailable") + at_most_all(surge, f"{here}.maxSurge")
    if amount_of(unavailable) and amount_of(surge):
        errors.append(invalid(f"{here}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    if not amount_of(unavailable) and not amount_of(surge):
        errors.append(required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def controller_revision(obj: Raw) -> Errors:
    """Check a new ControllerRevision: its data is an object."""
    errors = non_negative(obj.get("revision"), "revision")
    data = obj.get("data")
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


def controller_revision_update(new: Raw, old: Raw) -> Errors:
    """Check that the data of a revision stays."""
    errors = non_negative(new.get("revision"), "revision")
    return errors + immutable(new.get("data"), old.get("data"), "data")


def replication_controller(obj: Raw) -> Errors:
    """Check a ReplicationController."""
    spec = _spec(obj)
    errors = non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        errors.append(required("spec.selector"))
    if spec.get("replicas") is None:
        errors.append(required("spec.replicas"))
    errors += non_negative(spec.get("replicas"), "spec.replicas")
    if template is None:
        errors.append(required("spec.template"))
        return errors
    if selector and not selects({"matchLabels": selector}, _labels(template)):
        errors.append(invalid("spec.template.metadata.labels", _labels(template), _MISMATCH))
    return errors + _always_restarting(template, "ReplicationController")
