"""Pods: first status, gates, matchLabelKeys, graceful deletion, immutability.

Source: pkg/registry/core/pod/strategy.go, v1.36.
"""

from collections.abc import Mapping, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import DeleteOptions, RequestContext
from skysail.apiserver.strategies.generic import GenericStrategy, keep, text_at
from skysail.apiserver.strategies.match_label_keys import merge_pod_affinity, merge_topology_spread
from skysail.apiserver.strategies.pod_warnings import pod_warnings
from skysail.apiserver.validation.field import same
from skysail.apiserver.validation.names import dns_label
from skysail.apiserver.validation.quality import qos_class

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "spec.nodeName": ("spec", "nodeName"),
    "spec.restartPolicy": ("spec", "restartPolicy"),
    "spec.schedulerName": ("spec", "schedulerName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "status.phase": ("status", "phase"),
    "status.nominatedNodeName": ("status", "nominatedNodeName"),
}


class PodStrategy(GenericStrategy):
    """What only pods do."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Pending, with its quality of service, at generation 1."""
        obj["metadata"]["generation"] = 1
        spec = obj["spec"]
        status: Raw = {"phase": "Pending"}
        if spec.get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": ctx.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "reason": "SchedulingGated",
                    "message": GATED_MESSAGE,
                }
            ]
        status["qosClass"] = qos_class(spec)
        obj["status"] = status
        merge_pod_affinity(obj)
        merge_topology_spread(obj)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status; a changed spec is a new generation."""
        keep(new, old, "status")
        count_generation(new, old)

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """A dot in a pod's name makes an odd hostname."""
        if old is not None:
            return ()
        found: list[str] = []
        messages = dns_label(new["metadata"].get("name") or "")
        if messages:
            found.append(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(messages)}]"
            )
        return found + pod_warnings(new)

    def grace_period(self, obj: Raw, options: DeleteOptions, ctx: RequestContext) -> int | None:
        """What was asked for, else the pod's own; none for a pod that no node runs (any more)."""
        period = options.grace_period_seconds
        if period is None:
            period = obj["spec"].get("terminationGracePeriodSeconds") or 0
        if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in ("Failed", "Succeeded"):
            period = 0
        return 1 if period < 0 else period

    def selectable_fields(self, obj: Raw) -> Mapping[str, str]:
        """Also by the first pod IP and by host networking."""
        values = {name: text_at(obj, path) for name, path in _FIELDS.items()}
        ips = obj.get("status", {}).get("podIPs") or ({"ip": obj.get("status", {}).get("podIP") or ""},)
        values["status.podIP"] = ips[0].get("ip") or ""
        values["spec.hostNetwork"] = "true" if obj["spec"].get("hostNetwork") else "false"
        return values


def count_generation(new: Raw, old: Raw) -> None:
    """A pod's generation follows its spec; pods of before 1.33 have none and get none."""
    generation = old["metadata"].get("generation") or 0
    if not same(new["spec"], old["spec"]):
        generation += 1
    if generation:
        new["metadata"]["generation"] = generation
    else:
        new["metadata"].pop("generation", None)
