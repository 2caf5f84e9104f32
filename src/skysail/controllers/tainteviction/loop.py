"""The taint eviction controller's shell: keeps a timer for each pod that has to leave, and evicts it in time.

Source: pkg/controller/tainteviction/taint_eviction.go, v1.36.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from skysail.api.core import Pod, PodCondition, PodStatus
from skysail.api.errors import NotFound
from skysail.api.kinds import PODS
from skysail.api.node import Node, Taint
from skysail.controller.controller import Result
from skysail.controller.events import Reference
from skysail.controllers.builtin import PODS_BY_NODE, BuiltinController, index_by_node
from skysail.controllers.pods import pod_condition
from skysail.controllers.tainteviction.plan import eviction_delay, no_execute_taints
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key


@dataclass(frozen=True, slots=True)
class _Timer:
    """A pod's eviction to come.

    Attributes:
        since: On the monotonic clock: since when it is to come.
        due: And when.
        is_told: Whether people know that it is due; from then on it is tried until it is done.
    """

    since: float
    due: float
    is_told: bool = False


class TaintEvictionController(BuiltinController):
    """Evicts pods from nodes whose taints they do not tolerate."""

    name = "taint-eviction"
    workers = 8

    def setup(self) -> None:
        """Hook up nodes and pods: changes set or cancel timers at once, workers evict."""
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        self._timers: dict[Key, _Timer] = {}
        self.informer(Pod).add_indexes({PODS_BY_NODE: index_by_node})
        self.informer(Node).add_handler(
            Handlers(add=self._node_seen, update=self._node_changed, delete=self._node_gone), name=self.name
        )
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_seen, update=self._pod_changed, delete=self._pod_gone), name=self.name
        )

    # What sets and cancels timers

    def _node_seen(self, node: Node) -> None:
        taints = no_execute_taints(node.spec.taints)
        if taints:
            self._tainted[node.name] = taints
        else:
            self._tainted.pop(node.name, None)
        for pod in self.lister(Pod).by_index(PODS_BY_NODE, node.name):
            self._weigh(pod, taints)

    def _node_changed(self, old: Node, new: Node) -> None:
        if no_execute_taints(old.spec.taints) != no_execute_taints(new.spec.taints):
            self._node_seen(new)

    def _node_gone(self, node: Node) -> None:
        self._tainted.pop(node.name, None)

    def _pod_seen(self, pod: Pod) -> None:
        taints = self._tainted.get(pod.spec.node_name)
        if pod.spec.node_name and taints is not None:
            self._weigh(pod, taints)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.spec.tolerations != new.spec.tolerations or old.spec.node_name != new.spec.node_name:
            self._pod_seen(new)

    def _pod_gone(self, pod: Pod) -> None:
        key = Key(pod.namespace, pod.name)
        timer = self._timers.get(key)
        if timer is not None and timer.is_told:
            del self._timers[key]
        else:
            self._cancel(key)

    def _weigh(self, pod: Pod, taints: Sequence[Taint]) -> None:
        """Set, keep or cancel the pod's timer."""
        key, now = Key(pod.namespace, pod.name), self.clock.monotonic()
        delay = eviction_delay(taints, pod.spec.tolerations)
        if delay is None:
            self._cancel(key)
            return
        since, current = now, self._timers.get(key)
        if current is not None and current.is_told:
            return
        if delay > 0 and current is not None:
            if current.since + delay < now + delay:
                return
            since = current.since
        if delay == 0 or current is not None:
            self._cancel(key)
        if key not in self._timers:
            self._timers[key] = _Timer(since, now + delay)
            self.enqueue(key, delay)

    def _cancel(self, key: Key) -> None:
        """Take a timer back; people hear of it only if the eviction had not been carried out."""
        if self._timers.pop(key, None) is not None:
            words = f"Cancelling deletion of Pod {key}"
            self.recorder.event(_reference(key), "Normal", "TaintManagerEviction", words)

    # What evicts

    async def reconcile(self, key: Key) -> Result | None:
        """Evict a pod whose time has come."""
        timer = self._timers.get(key)
        if timer is None:
            return None
        left = timer.due - self.clock.monotonic()
        if left > 0:
            return Result(left)
        if not timer.is_told:
            words = f"Marking for deletion Pod {key}"
            self.recorder.event(_reference(key), "Normal", "TaintManagerEviction", words)
        working = self._timers[key] = replace(timer, is_told=True)
        with suppress(NotFound):
            await self._evict(key)
        if self._timers.get(key) is working:
            del self._timers[key]
        return None

    async def _evict(self, key: Key) -> None:
        pod = await self.api.get(PODS, key.name, key.namespace)
        mark = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            last_transition_time=self.written_now(),
        )
        known = pod_condition(pod, mark.type)
        if known is None or (known.status, known.reason, known.message) != (mark.status, mark.reason, mark.message):
            others = tuple(item for item in pod.status.conditions if item.type != mark.type)
            old, new = PodStatus(conditions=pod.status.conditions), PodStatus(conditions=(*others, mark))
            await self.write_status(PODS, pod, old, new)
        await self.api.delete(PODS, key.name, key.namespace)


def _reference(key: Key) -> Reference:
    return Reference("v1", "Pod", key.namespace, key.name, "", "")
