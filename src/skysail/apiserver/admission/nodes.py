"""TaintNodesByCondition: a new node is not ready.

Source: plugin/pkg/admission/nodetaint, v1.36.
"""

from skysail.apiserver.admission.attributes import Attributes

_NOT_READY = "node.kubernetes.io/not-ready"


def taint_not_ready(a: Attributes) -> None:
    """Keep pods off a node until somebody says that it is ready."""
    if a.operation != "CREATE" or a.ctx.subresource:
        return
    spec = a.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(taint.get("key") == _NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]
