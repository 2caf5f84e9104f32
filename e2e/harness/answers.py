"""What pods, and decisions of ours, say about themselves."""

import re

from skysail.api.core import Pod
from skysail.api.raw import Raw


def reason_of(pod: Pod) -> str:
    """What the PodScheduled condition says; empty when nothing, or only that the pod is gated."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason != "SchedulingGated":
            return condition.message
    return ""


def is_decided(pod: Pod) -> bool:
    """Whether a pod is bound, or has been refused with a reason."""
    return bool(pod.spec.node_name or reason_of(pod))


def missing_claim(pod: Pod) -> str:
    """The claim that kube-scheduler did not find, if it says so; it tries again once it has heard of it."""
    found = re.search(r'persistentvolumeclaim "([^"]+)" not found', reason_of(pod))
    return found[1] if found else ""


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
