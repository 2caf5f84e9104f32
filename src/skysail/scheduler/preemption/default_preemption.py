"""The plugin that makes room for pods that fit nowhere.

Source: pkg/scheduler/framework/plugins/defaultpreemption, v1.36.
Differs: the search reads the pod as it was tried, not as the informer has it by then. A nomination counts from when it
    is made, not only once the server has heard of it: else a preemptor that is tried again in between, as when its
    evictions failed half-way, could choose another node, and its first victims would die in vain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from skysail.api.core import Pod
from skysail.api.kinds import POD_DISRUPTION_BUDGETS
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.conversation import Conversation, ExtenderCall, ExtenderFailed, alone
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.events import POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import PostFilterResult
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.plugins.args import DefaultPreemptionArgs
from skysail.scheduler.preemption.budgets import Budgets
from skysail.scheduler.preemption.candidates import Candidates, find_candidates, potential_rows
from skysail.scheduler.preemption.picking import best_nodes
from skysail.scheduler.preemption.victims import Search, Victims, may_be_evicted, priority_of

NOT_HELPFUL = Status.unresolvable("Preemption is not helpful for scheduling")
NEVER = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."
WAITING = Status.unresolvable("waiting for the preemption for this pod to be finished")


@dataclass(frozen=True, slots=True)
class PreemptionOutcome:
    """What the plugin found, as data.

    Attributes:
        ineligible_reason: Why the pod may not preempt; empty when it may.
        candidates: Where evicting helps, and where not.
        best: The nodes left after all criteria.
    """

    ineligible_reason: str = ""
    candidates: Candidates | None = None
    best: tuple[str, ...] = ()


class PreemptionExtenders(Protocol):
    """Extenders with a say in preemption."""

    def preempt(
        self, pod: Pod, victims: Mapping[str, Victims], snapshot: Snapshot, calls: list[ExtenderCall]
    ) -> Conversation[Mapping[str, Victims]]:
        """Which candidates remain, with which victims.

        Raises:
            ExtenderFailed: One that may not be ignored failed.
        """
        ...


class DefaultPreemption:
    """The plugin.

    Attributes:
        is_preempting: Whether the victims of a pod (by uid) are still being evicted: it stays out of the queue then.
            Set by whoever evicts; where nobody does, nobody waits.
        is_going: Whether a pod (by uid) was deleted by whoever evicts, and is not gone yet. Set likewise.
        extenders: Who narrows the choice of candidates; None where nobody does. Set by whoever has extenders.
    """

    name = "DefaultPreemption"

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args, self._handle = args, handle
        self._budgets = handle.lister(POD_DISRUPTION_BUDGETS)
        self._asynchronous = handle.feature_gates["SchedulerAsyncPreemption"]
        self._framework: Framework | None = None
        self.is_preempting: Callable[[str], bool] = lambda uid: False
        self.is_going: Callable[[str], bool] = lambda uid: False
        self.extenders: PreemptionExtenders | None = None

    def use_framework(self, framework: Framework) -> None:
        """Take the profile whose filters the search runs."""
        self._framework = framework

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold a pod back while its victims are being evicted."""
        return WAITING if self._asynchronous and self.is_preempting(pod.uid) else SUCCESS

    @property
    def asks(self) -> bool:
        """Whether extenders have a say."""
        return self.extenders is not None

    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> tuple[Status, PostFilterResult]:
        """Find victims. Success nominates a node; a refusal without any candidate clears the nomination."""
        return alone(self.post_filter_asking(state, pod, diagnosis))

    def post_filter_asking(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> Conversation[tuple[Status, PostFilterResult]]:
        """Find victims, and let extenders narrow the choice."""
        outcome = self.search(state, pod, diagnosis)
        diagnosis.preemption = outcome
        if outcome.ineligible_reason:
            return Status.unschedulable(f"preemption: {outcome.ineligible_reason}"), PostFilterResult()
        found = outcome.candidates
        assert found is not None
        if not found.victims and found.errors:
            return Status.error(f"preemption: {aggregate(found.errors)}"), PostFilterResult()
        if not found.victims:
            message = self._not_helpful(found)
            return Status.unschedulable(f"preemption: {message}"), PostFilterResult(nominated_node="")
        victims: Mapping[str, Victims] = found.victims
        best: Sequence[str] = outcome.best
        if self.extenders is not None:
            try:
                victims = yield from self.extenders.preempt(
                    pod, victims, self._handle.snapshot(), diagnosis.extender_calls
                )
            except ExtenderFailed as failure:
                return Status.error(f"preemption: {failure}"), PostFilterResult()
            best = best_nodes(victims)
        if not best:
            return Status.unschedulable("preemption: no candidate node for preemption"), PostFilterResult()
        return SUCCESS, PostFilterResult(best[0], victims[best[0]].pods)

    def search(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> PreemptionOutcome:
        """What `post_filter` decides on, as data."""
        assert self._framework is not None, "the framework is given to the plugin when it is made"
        reason = self._ineligible(pod, diagnosis)
        if reason:
            return PreemptionOutcome(reason)
        table = self._handle.snapshot().table
        search = Search(self._framework, table, state, pod, Budgets(self._budgets.list()), self._promised(pod))
        rows = potential_rows(search, diagnosis)
        if not rows:
            return PreemptionOutcome(candidates=Candidates())
        offset = self._handle.rng.randrange(len(rows))
        found = find_candidates(search, rows, offset, self._candidates_wanted(len(rows)))
        return PreemptionOutcome(candidates=found, best=tuple(best_nodes(found.victims)))

    def _ineligible(self, pod: Pod, diagnosis: Diagnosis) -> str:
        if pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = self._handle.nominations.node_of(pod) or pod.status.nominated_node_name
        if not nominated or diagnosis.status_of(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        node = self._handle.snapshot().get(nominated)
        if node is None:
            return ""
        waits = any(
            may_be_evicted(info, pod) and (_is_being_preempted(info.pod) or self.is_going(info.key))
            for info in node.pods.values()
        )
        return STILL_TERMINATING if waits else ""

    def _promised(self, pod: Pod) -> dict[str, list[PodInfo]]:
        promised: dict[str, list[PodInfo]] = {}
        for node_name, others in self._handle.nominations.by_node.items():
            infos = [other for uid, other in others.items() if other.priority >= priority_of(pod) and uid != pod.uid]
            if infos:
                promised[node_name] = infos
        return promised

    def _candidates_wanted(self, nodes: int) -> int:
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)

    def _not_helpful(self, found: Candidates) -> str:
        return Diagnosis(len(self._handle.snapshot()), found.failures, NOT_HELPFUL).message()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Deletions, which never help by themselves: whoever refused the pod before decides."""
        if not self._asynchronous:
            return ()
        return (ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), _skip),)


def _skip(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    return QueueingHint.SKIP


def _is_being_preempted(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp is None:
        return False
    condition = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


def aggregate(errors: Sequence[str]) -> str:
    """Several errors in one text, as upstream joins them."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
