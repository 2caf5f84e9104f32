"""Does the scheduler's account agree with what the informers hold? A check for `/debug/cache` and SIGUSR2.

The two are fed from the same events, so a difference that stays is a bug (or a handler that failed). Differences that
last a moment, while events are under way, are normal.

Source: pkg/scheduler/backend/cache/debugger/comparer.go, v1.36.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.raw import Raw
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.framework.queued_pod import scheduler_name
from skysail.scheduler.handlers import is_live
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class Differences:
    """What one side has and the other has not; names sorted.

    Attributes:
        missed_nodes: Known to the informer, not to the cache.
        redundant_nodes: The other way round.
        missed_pods: Bound pods the cache does not count.
        redundant_pods: Pods it counts that are not bound (assumed ones left out).
        misplaced_pods: Pods it counts on another node.
        missed_pending: Unbound pods of ours that are neither queued nor under way.
        redundant_pending: Queued pods that are gone or bound.
    """

    missed_nodes: tuple[str, ...] = ()
    redundant_nodes: tuple[str, ...] = ()
    missed_pods: tuple[str, ...] = ()
    redundant_pods: tuple[str, ...] = ()
    misplaced_pods: tuple[str, ...] = ()
    missed_pending: tuple[str, ...] = ()
    redundant_pending: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def as_raw(self) -> Raw:
        """For JSON."""
        return {name: list(names) for name, names in asdict(self).items()}


def compare(
    cache: ClusterCache, queue: SchedulingQueue, profiles: Iterable[str], nodes: Iterable[Node], pods: Iterable[Pod]
) -> Differences:
    """Compare the account and the queue with the informers' objects. Cost: one step an object."""
    known_nodes = {node.metadata.name for node in nodes}
    own_nodes = {info.name for info in cache.node_infos() if info.exists}
    live = {pod.metadata.uid: pod for pod in pods if is_live(pod)}
    bound = {uid: pod for uid, pod in live.items() if pod.spec.node_name}
    counted = {state.info.key: state for state in cache.pods()}
    ours = set(profiles)
    pending = {uid: pod for uid, pod in live.items() if not pod.spec.node_name and scheduler_name(pod) in ours}
    queued = {info.pod.metadata.uid: info.pod for info in queue.pending_pods()}
    under_way = {pod.metadata.uid for pod in queue.in_flight_pods}
    settled = {uid for uid, state in counted.items() if not state.assumed}
    return Differences(
        missed_nodes=tuple(sorted(known_nodes - own_nodes)),
        redundant_nodes=tuple(sorted(own_nodes - known_nodes)),
        missed_pods=_names(bound, bound.keys() - counted.keys()),
        redundant_pods=tuple(sorted(counted[uid].info.pod.key for uid in settled - bound.keys())),
        misplaced_pods=_names(
            bound, {uid for uid in bound.keys() & settled if counted[uid].node_name != bound[uid].spec.node_name}
        ),
        missed_pending=_names(pending, pending.keys() - queued.keys() - under_way - counted.keys()),
        redundant_pending=_names(queued, queued.keys() - pending.keys()),
    )


def _names(pods: Mapping[str, Pod], uids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(pods[uid].key for uid in uids))
