"""What a pod's failure, or a set of successes, means for its job.

Source: pkg/controller/job/{pod_failure_policy,success_policy}.go, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from skysail.api.batch import (
    JobSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
)
from skysail.api.core import ContainerStatus, Pod
from skysail.controllers.job.indexes import Indexes


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """What the first matching rule says of a failed pod.

    Attributes:
        counts: Whether it counts towards the back-off limit.
        action: The rule's action; empty when no rule matches.
        message: Why the job fails, when the action is FailJob.
    """

    counts: bool = True
    action: str = ""
    message: str = ""


def judge_failure(policy: PodFailurePolicy | None, pod: Pod) -> FailureVerdict:
    """Apply a job's failure policy to a failed pod."""
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        what = _match(rule, pod)
        if not what:
            continue
        match rule.action:
            case "Ignore":
                return FailureVerdict(False, rule.action)
            case "FailIndex" | "Count":
                return FailureVerdict(True, rule.action)
            case "FailJob":
                return FailureVerdict(True, rule.action, f"{what} matching {rule.action} rule at index {index}")
    return FailureVerdict()


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """What of the pod matches the rule, in words; empty for nothing."""
    who = f"{pod.namespace}/{pod.name}"
    if rule.on_exit_codes is not None:
        found = _failed_container(pod.status.container_statuses, rule.on_exit_codes) or _failed_container(
            pod.status.init_container_statuses, rule.on_exit_codes
        )
        return f"Container {found[0]} for pod {who} failed with exit code {found[1]}" if found else ""
    condition = _matching_condition(pod, rule.on_pod_conditions)
    return f"Pod {who} has condition {condition}" if condition else ""


def _failed_container(
    statuses: Sequence[ContainerStatus], requirement: PodFailurePolicyOnExitCodesRequirement
) -> tuple[str, int] | None:
    for status in statuses:
        ended = status.state.terminated if status.state is not None else None
        if ended is None or ended.exit_code == 0 or requirement.container_name not in (None, status.name):
            continue
        listed = ended.exit_code in requirement.values
        if (requirement.operator == "In" and listed) or (requirement.operator == "NotIn" and not listed):
            return status.name, ended.exit_code
    return None


def _matching_condition(pod: Pod, patterns: Sequence[PodFailurePolicyOnPodConditionsPattern]) -> str:
    for condition in pod.status.conditions:
        if any(condition.type == item.type and condition.status == item.status for item in patterns):
            return condition.type
    return ""


def met_success_rule(spec: JobSpec, succeeded: Indexes) -> str:
    """The success policy's words when one of its rules is met; empty otherwise."""
    if spec.success_policy is None or not succeeded:
        return ""
    for index, rule in enumerate(spec.success_policy.rules):
        if rule.succeeded_indexes is not None:
            needed = Indexes.parse(rule.succeeded_indexes, spec.completions or 0)
            reached = needed.overlap(succeeded)
            met = bool(needed) and (
                reached == len(needed) or (rule.succeeded_count is not None and reached >= rule.succeeded_count)
            )
        else:
            met = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        if met:
            return f"Matched rules at index {index}"
    return ""
