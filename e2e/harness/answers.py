"""What pods, and decisions of ours, say about themselves."""

import re

from skysail.api.core import Pod
from skysail.api.raw import Raw

_CLAIM_MISSED = re.compile('persistentvolumeclaim "[^"]+" not found|unbound immediate PersistentVolumeClaims')


def reason_of(pod: Pod) -> str:
    """What the PodScheduled condition says; empty when nothing, or only that the pod is gated."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason != "SchedulingGated":
            return condition.message
    return ""


def is_decided(pod: Pod) -> bool:
    """Whether a pod is bound, or has been refused with a reason."""
    return bool(pod.spec.node_name or reason_of(pod))


def is_final(pod: Pod, decision: Raw) -> bool:
    """Whether a pod is decided for good: not when kube-scheduler alone misses a claim, or its volume.

    It has not heard of them yet then, and tries again once it has.
    """
    reason = reason_of(pod)
    return is_decided(pod) and not (_CLAIM_MISSED.search(reason) and reason not in possible_reasons(decision))


def possible_reasons(decision: Raw) -> set[str]:
    """What may be said of a refused pod: where plugins fail on several nodes, kube-scheduler names any of them."""
    if "cycle_error" not in decision:
        return {decision.get("fit_error", "")}
    failed = [each for each in decision.get("filter", {}).values() if each["code"] == "Error"]
    return {decision["cycle_error"], *(reason for each in failed for reason in each["reasons"])}


def waits_for(spec: Raw) -> int:
    """How many claims controllers make for a pod."""
    devices = sum("resourceClaimTemplateName" in each for each in spec.get("resourceClaims", ()))
    return devices + sum("ephemeral" in each for each in spec.get("volumes", ()))


def told(decision: Raw) -> str:
    """A decision for people, shortened."""
    kept = ("chosen_set", "fit_error", "cycle_error", "feasible", "preemption")
    return str({name: decision[name] for name in kept if decision.get(name)})[:600]
