"""HorizontalPodAutoscalers: kept as autoscaling/v2, shown and taken as v1 too.

Source: pkg/apis/autoscaling/v1/conversion.go, v1.36.
Differs: the annotations by which v1 carries what it has no fields for hold the v2 form.
"""

import json
from collections.abc import Mapping, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, RequestContext
from skysail.apiserver.strategies.generic import GenericStrategy

_V1, _V2 = "autoscaling/v1", "autoscaling/v2"
_ANNOTATIONS: Mapping[str, tuple[str, str]] = {
    "autoscaling.alpha.kubernetes.io/metrics": ("spec", "metrics"),
    "autoscaling.alpha.kubernetes.io/behavior": ("spec", "behavior"),
    "autoscaling.alpha.kubernetes.io/current-metrics": ("status", "currentMetrics"),
    "autoscaling.alpha.kubernetes.io/conditions": ("status", "conditions"),
}
_SPEC_PERCENT, _STATUS_PERCENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"


class AutoscalerStrategy(GenericStrategy):
    """Converts between the two versions; the rules are those of v2."""

    def default(self, obj: Raw) -> None:
        """The defaults of the version the object is written in."""
        if obj.get("apiVersion") != _V1:
            super().default(obj)
            return
        spec = obj.setdefault("spec", {})
        if spec.get("minReplicas") is None:
            spec["minReplicas"] = 1
        status = obj.setdefault("status", {})
        for key in ("currentReplicas", "desiredReplicas"):
            status.setdefault(key, 0)

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Blank status."""
        super().prepare_create(obj, ctx)
        if obj.get("apiVersion") == _V1:
            obj["status"] = {"currentReplicas": 0, "desiredReplicas": 0}

    def validate_create(self, obj: Raw) -> Sequence[FieldError]:
        """Checked in the v2 form."""
        return super().validate_create(_as_v2(obj))

    def validate_update(self, new: Raw, old: Raw) -> Sequence[FieldError]:
        """Checked in the v2 form."""
        return super().validate_update(_as_v2(new), _as_v2(old))

    def to_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Into v2."""
        stored = _as_v2(obj)
        if stored is not obj:
            super().default(stored)
        return stored

    def from_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Into the version that was asked for."""
        return _as_v1(obj) if version == "v1" else super().from_storage(obj, group, version)


def _as_v2(obj: Raw) -> Raw:
    if obj.get("apiVersion") != _V1:
        return obj
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    meta = dict(obj["metadata"])
    annotations = dict(meta.get("annotations") or {})
    parts = {"spec": spec, "status": status}
    percent, used = spec.pop(_SPEC_PERCENT, None), status.pop(_STATUS_PERCENT, None)
    for name, (part, key) in _ANNOTATIONS.items():
        value = _parsed(annotations.pop(name, ""))
        if value:
            parts[part][key] = value
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [*(spec.get("metrics") or ()), _cpu("target", target)]
    if used is not None and not status.get("currentMetrics"):
        status["currentMetrics"] = [_cpu("current", {"averageUtilization": used, "averageValue": "0"})]
    meta["annotations"] = annotations
    if not annotations:
        del meta["annotations"]
    return {**obj, "apiVersion": _V2, "metadata": meta, "spec": spec, "status": status}


def _cpu(key: str, value: Raw) -> Raw:
    return {"type": "Resource", "resource": {"name": "cpu", key: value}}


def _parsed(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except json.JSONDecodeError:
        return None


def _as_v1(obj: Raw) -> Raw:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    meta = dict(obj["metadata"])
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _ANNOTATIONS}
    percents = [_utilization(metric, "target") for metric in spec.get("metrics") or ()]
    others = [metric for metric, share in zip(spec.get("metrics") or (), percents, strict=True) if share is None]
    known = [share for share in percents if share is not None]
    if known:
        spec[_SPEC_PERCENT] = known[0]
    used = [_utilization(metric, "current") for metric in status.get("currentMetrics") or ()]
    used = [share for share in used if share is not None]
    if used:
        status[_STATUS_PERCENT] = used[0]
    spec["metrics"] = others
    for name, (part, key) in _ANNOTATIONS.items():
        value = (spec if part == "spec" else status).pop(key, None)
        if value:
            annotations[name] = json.dumps(value, separators=(",", ":"))
    status.setdefault("currentReplicas", 0)
    if annotations:
        meta["annotations"] = annotations
    else:
        meta.pop("annotations", None)
    return {**obj, "apiVersion": _V1, "metadata": meta, "spec": spec, "status": status}


def _utilization(metric: Raw, key: str) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    share: int | None = (resource.get(key) or {}).get("averageUtilization")
    return share
