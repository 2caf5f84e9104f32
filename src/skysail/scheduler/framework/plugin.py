"""The extension points, as a plugin sees them.

A plugin is a class with a `name`, made as `Plugin(args, handle)`; which points it takes part in shows in the methods it
has. Filter and Score come in two forms, and the framework takes either: one node at a time (`filter`, `score`), or all
rows of the node table in one call (`filter_rows`, `score_rows`).

    point        method                                  stops at                     answers combined
    PreEnqueue   pre_enqueue                             first refusal                all must pass
    QueueSort    sort_key                                -                            exactly one plugin
    PreFilter    pre_filter (add_pod, remove_pod)        first refusal                node sets meet; Skip drops Filter
    Filter       filter | filter_rows + explain          first refusal, per node      all must pass
    PostFilter   post_filter                             first success or error       first success wins
    PreScore     pre_score                               first failure                Skip drops Score
    Score        score | score_rows, normalize           first failure                sum of weight x normalised
    Reserve      reserve / unreserve (reverse order)     first failure                all or none
    Permit       permit                                  first refusal                any Wait waits
    PreBind      pre_bind                                first failure                all
    Bind         bind                                    first that does not Skip     exactly one
    PostBind     post_bind                               -                            informational

Source: k8s.io/kube-scheduler/framework/interface.go, v1.36.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import Codes, Reads, ScoreArray
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.events import ClusterEventWithHint
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.framework.status import Status


class Plugin(Protocol):
    """What every plugin has."""

    name: str


@runtime_checkable
class PreEnqueue(Protocol):
    """Says whether a pod may enter the active queue at all."""

    name: str

    def pre_enqueue(self, pod: Pod) -> Status:
        """Success, or why the pod must wait outside. Must be quick: it runs in event handlers."""
        ...


class SortKey(Protocol):
    """Anything that compares with `<`."""

    def __lt__(self, other: "SortKey", /) -> bool: ...


@runtime_checkable
class QueueSort(Protocol):
    """Orders the active queue. Exactly one is enabled, the same in every profile."""

    name: str

    def sort_key(self, pod: QueuedPodInfo) -> SortKey:
        """The pod's place: smallest first. Asked once each time the pod enters a queue (Go's `Less`, as a key)."""
        ...


@runtime_checkable
class EnqueueExtensions(Protocol):
    """Says which events may help a pod that this plugin refused. Asked once, at start."""

    name: str

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The events, each with an optional closer look."""
        ...


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A narrowing of the search: only these nodes are looked at; None means all."""

    node_names: frozenset[str] | None = None

    def merge(self, other: "PreFilterResult") -> "PreFilterResult":
        """Both narrowings at once."""
        if self.node_names is None:
            return other
        if other.node_names is None:
            return self
        return PreFilterResult(self.node_names & other.node_names)


ALL_NODES = PreFilterResult()


@runtime_checkable
class PreFilter(Protocol):
    """Computes once, per attempt, what Filter needs for every node."""

    name: str

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Success with an optional narrowing, Skip (Filter is then not called), or a refusal for all nodes."""
        ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Keeps a PreFilter's state right in a what-if (nominated pods, preemption). Called on cloned states only."""

    name: str

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status:
        """`added` is now on `node` (already in its pods)."""
        ...

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status:
        """`removed` is no longer on `node`."""
        ...


@runtime_checkable
class Filter(Protocol):
    """May the pod run on this node? The simple form."""

    name: str

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Success, or the refusal with its reasons. Look at `node` only, never at the snapshot's own copy of it."""
        ...


@runtime_checkable
class TableFilter(Protocol):
    """May the pod run on these nodes? The fast form.

    Attributes:
        reads: What the answer depends on.
    """

    name: str
    reads: Reads

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """One code per row: `rows` is a slice of all rows, or an int array of a few."""
        ...

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The same answer for one row with figures added (need, free); only when somebody asks."""
        ...


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter found.

    Attributes:
        nominated_node: Where the pod shall go once room is made; "" clears a nomination, None leaves it as it is.
        victims: Pods to evict first, by node order of importance.
    """

    nominated_node: str | None = None
    victims: tuple[Pod, ...] = ()


@runtime_checkable
class PostFilter(Protocol):
    """Tries to make room when no node fits."""

    name: str

    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> tuple[Status, PostFilterResult]:
        """Success when the pod can be made schedulable, Unschedulable when not, Error when something broke."""
        ...


@runtime_checkable
class PreScore(Protocol):
    """Computes once, per attempt, what Score needs."""

    name: str

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: npt.NDArray[np.intp]) -> Status:
        """Success, or Skip (Score is then not called). `rows` are feasible; only GLOBAL plugins may read them."""
        ...


@runtime_checkable
class Score(Protocol):
    """How good is this node? The simple form."""

    name: str

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[int, Status]:
        """Any number when the plugin normalises, else 0..100."""
        ...


@runtime_checkable
class TableScore(Protocol):
    """How good are these nodes? The fast form."""

    name: str
    reads: Reads

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """(n_rows,) int64: any number when the plugin normalises, else 0..100. Rows may be infeasible."""
        ...


@runtime_checkable
class Normalize(Protocol):
    """Brings raw scores to 0..100, knowing the least and the greatest among the feasible nodes.

    A pure function of its arguments (and of what PreScore wrote), element by element: the framework keeps the answer
    until the extremes move. A plugin that must see all scores at once has `reads = GLOBAL` and may look at `raw` whole.
    """

    name: str

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """(n,) int64, 0..100. `low` and `high` are the extremes over the feasible rows."""
        ...


@runtime_checkable
class Reserve(Protocol):
    """Notes that a pod takes a node, before it is bound."""

    name: str

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, or why not; then every plugin's `unreserve` runs, last first."""
        ...

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo. Idempotent, also when `reserve` never ran."""
        ...


@runtime_checkable
class Permit(Protocol):
    """The last word before binding."""

    name: str

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Success, a refusal, or Wait with a time-out in seconds."""
        ...


@runtime_checkable
class PreBind(Protocol):
    """Does what must be done before the pod is bound (volumes, devices)."""

    name: str

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success when there is something to do, Skip when not."""
        ...

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Do it."""
        ...


@runtime_checkable
class Bind(Protocol):
    """Binds the pod."""

    name: str

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success when bound, Skip to leave it to the next plugin."""
        ...


@runtime_checkable
class PostBind(Protocol):
    """Is told that the pod was bound."""

    name: str

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Clean up."""
        ...


@runtime_checkable
class Sign(Protocol):
    """Says what of a pod this plugin's Filter and Score look at, so that equal pods share answers."""

    name: str

    def sign(self, pod: PodInfo) -> Hashable:
        """Equal for two pods only if this plugin answers the same for both, on every node.

        A plugin without it is given everything but the pod's identity: namespace, labels, annotations, spec.
        """
        ...


@runtime_checkable
class Idle(Protocol):
    """Says for which pods the plugin has nothing to do, so that it need not be asked at every attempt."""

    name: str

    def idle(self, pod: PodInfo) -> bool:
        """Whether PreFilter skips and Score gives 0 everywhere, whatever the cluster holds. Reads the pod alone."""
        ...


@runtime_checkable
class RunsBeside(Protocol):
    """A plugin with work of its own, for instance writing what Unreserve takes back: nobody waits for it."""

    name: str

    async def run_beside(self) -> None:
        """Work until cancelled; started when the scheduler starts to schedule."""
        ...
