"""The daemon set controller's shell.

Source: pkg/controller/daemon/daemon_controller.go, v1.36.
"""

from collections.abc import Iterable, Sequence

from skysail.api.apps import ControllerRevision, DaemonSet
from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import DAEMONSETS, PODS
from skysail.api.labels import Selector
from skysail.api.meta import ApiObject, LabelSelector
from skysail.api.node import Node
from skysail.controller.controller import Result
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controller.watches import For
from skysail.controllers.builtin import PODS_BY_NODE, BuiltinController, Selectors, index_by_node
from skysail.controllers.daemonset.history import (
    History,
    bearing_another_hash,
    hash_in,
    sort_out_history,
    superfluous_history,
)
from skysail.controllers.daemonset.placement import daemon_pod, should_run
from skysail.controllers.daemonset.plan import (
    Plan,
    by_node,
    next_backoff,
    plan_daemon_set,
)
from skysail.controllers.daemonset.status import daemon_set_status
from skysail.controllers.history.revisions import REVISION_LABEL, daemon_revision_hash
from skysail.controllers.history.store import RevisionStore
from skysail.controllers.pod_control import PodControl, PodError
from skysail.controllers.pods import controller_of
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key


class DaemonSetController(BuiltinController):
    """Keeps one pod on every node that fits."""

    name = "daemonset"
    workers = 2

    watches = (For(DaemonSet),)

    def setup(self) -> None:
        """Hook up pods, revisions and nodes."""
        self.selectors = Selectors()
        self.pod_control = PodControl(self.api, self.recorder, self.clock)
        self._backoffs: dict[tuple[str, int, str], tuple[float, float]] = {}
        self.index_by_controller(Pod, ControllerRevision)
        self.informer(Pod).add_indexes({PODS_BY_NODE: index_by_node})
        self.informer(DaemonSet).add_handler(Handlers(delete=self._set_gone), name=self.name)
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone), name=self.name
        )
        self.informer(ControllerRevision).add_handler(
            Handlers(add=self._revision_added, update=self._changed, delete=self._revision_gone), name=self.name
        )
        self.informer(Node).add_handler(Handlers(add=self._node_seen, update=self._node_changed), name=self.name)

    # What wakes it

    def _set_gone(self, daemon_set: DaemonSet) -> None:
        self.pod_control.forget(daemon_set)
        self._backoffs = {key: value for key, value in self._backoffs.items() if key[0] != daemon_set.uid}

    def _owner(self, obj: ApiObject) -> DaemonSet | None:
        reference = controller_of(obj)
        if reference is None or reference.kind != DAEMONSETS.name:
            return None
        found = self.lister(DaemonSet).named(reference.name, obj.metadata.namespace)
        return found if found is not None and found.uid == reference.uid else None

    def _wake(self, daemon_set: DaemonSet | None) -> None:
        if daemon_set is not None:
            self.enqueue(Key(daemon_set.namespace, daemon_set.name))

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._pod_gone(pod)
        elif controller_of(pod) is None:
            self._wake_matching(pod)
        elif (owner := self._owner(pod)) is not None:
            self.pod_control.saw_created(owner)
            self._wake(owner)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.deletion_timestamp is None:
            self._changed(old, new)
        elif old.metadata.resource_version != new.metadata.resource_version:
            self._pod_gone(new)

    def _changed(self, old: ApiObject, new: ApiObject) -> None:
        """Wake whose a pod or revision was and whose it is; if nobody's, whose it might be."""
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        before, after = self._owner(old), self._owner(new)
        if before is not None and (after is None or after.uid != before.uid):
            self._wake(before)
        if controller_of(new) is not None:
            self._wake(after)
        elif before is not None or old.metadata.labels != new.metadata.labels:
            self._wake_matching(new)

    def _pod_gone(self, pod: Pod) -> None:
        owner = self._owner(pod)
        if owner is not None:
            self.pod_control.saw_deleted(owner, pod)
            self._wake(owner)

    def _revision_added(self, revision: ControllerRevision) -> None:
        """One that has an owner tells it nothing: the owner made it."""
        if revision.metadata.deletion_timestamp is not None:
            self._revision_gone(revision)
        elif controller_of(revision) is None:
            self._wake_matching(revision)

    def _revision_gone(self, revision: ControllerRevision) -> None:
        self._wake(self._owner(revision))

    def _wake_matching(self, obj: ApiObject) -> None:
        for daemon_set in self.lister(DaemonSet).list(obj.metadata.namespace):
            if self.selectors.of(daemon_set.uid, daemon_set.spec).matches(obj.metadata.labels):
                self._wake(daemon_set)

    def _node_seen(self, node: Node) -> None:
        """A node is new or has other labels or taints: wake those that have a pod too few or too many there.

        A node that goes wakes nobody: its pods are cleaned up by others, and that does.
        """
        there = {owner.uid for pod in self.lister(Pod).by_index(PODS_BY_NODE, node.name) if (owner := self._owner(pod))}
        for daemon_set in self.lister(DaemonSet).list():
            runs, may_stay = should_run(daemon_set, node)
            is_there = daemon_set.uid in there
            is_doubtful = not may_stay or daemon_set.status.number_misscheduled > 0
            if (is_there and is_doubtful) or (runs and not is_there):
                self._wake(daemon_set)

    def _node_changed(self, old: Node, new: Node) -> None:
        if old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints:
            self._node_seen(new)

    # What it does

    async def reconcile(self, key: Key) -> Result | None:
        """One pass: history, pods, status."""
        daemon_set = self.lister(DaemonSet).get(key)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            return None
        if daemon_set.spec.selector == LabelSelector():
            words = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.event(daemon_set, "Warning", "SelectingAll", words)
            return None
        store = RevisionStore(
            self.api, daemon_set, DAEMONSETS, hash_label=REVISION_LABEL, hash_rule=daemon_revision_hash
        )
        selector = self.selectors.of(daemon_set.uid, daemon_set.spec)
        history = await self._history(daemon_set, store, selector)
        if history is None:
            return None
        present, collisions = await store.sync(history.wanted)
        revision = hash_in(present)
        may_act = await self.pod_control.may_act(daemon_set, selector, lambda: self.controlled_by(daemon_set.uid, Pod))
        retry, error = await self._act(daemon_set, revision) if may_act else (None, None)
        awaited = await self._report(daemon_set, revision, collisions, observed=may_act)
        if error is not None:
            raise error
        if may_act:
            limit = 10 if daemon_set.spec.revision_history_limit is None else daemon_set.spec.revision_history_limit
            await store.delete(superfluous_history(history.old, self.controlled_by(daemon_set.uid, Pod), limit))
        return Result(min((wait for wait in (retry, awaited) if wait is not None), default=None))

    async def _history(self, daemon_set: DaemonSet, store: RevisionStore, selector: Selector) -> History | None:
        """The set's revisions, put right; None when pods were relabelled: when that is seen, the set is woken again."""
        known = await store.claim(self.claimable_by(daemon_set, ControllerRevision), selector)
        history = sort_out_history(daemon_set.spec.template, await store.label(known))
        kept = history.wanted.existing
        if kept is None or not history.duplicates:
            return history
        mislabelled = bearing_another_hash(kept, await self._claim(daemon_set))
        for pod in mislabelled:
            await self._relabel(pod, hash_in(kept))
        if mislabelled:
            return None
        await store.delete(history.duplicates)
        return history

    async def _relabel(self, pod: Pod, revision: str) -> None:
        patch = {"metadata": {"uid": pod.uid, "labels": {REVISION_LABEL: revision}}}
        try:
            await self.api.patch(PODS, pod.name, pod.namespace, patch)
        except NotFound:
            return

    async def _claim(self, daemon_set: DaemonSet) -> Sequence[Pod]:
        selector = self.selectors.of(daemon_set.uid, daemon_set.spec)
        manager = ControllerRefManager(self.client, daemon_set, DAEMONSETS, PODS, selector)
        return await manager.claim(self.claimable_by(daemon_set, Pod))

    async def _act(self, daemon_set: DaemonSet, revision: str) -> tuple[float | None, PodError | None]:
        """Make and delete pods; when to look at failed ones again, and the first error."""
        pods = by_node(await self._claim(daemon_set))
        nodes, now = self.lister(Node).list(), self.now()
        plan = plan_daemon_set(daemon_set, nodes, pods, revision, self._waits(daemon_set, pods), now)
        for pod, node in plan.failed:
            self._lengthen_backoff(daemon_set, node)
            words = f"Found failed daemon pod {pod.namespace}/{pod.name} on node {node}, will try to kill it"
            self.recorder.event(daemon_set, "Warning", "FailedDaemonPod", words)
        for pod, node in plan.succeeded:
            words = f"Found succeeded daemon pod {pod.namespace}/{pod.name} on node {node}, will try to delete it"
            self.recorder.event(daemon_set, "Normal", "SucceededDaemonPod", words)
        return plan.retry_seconds, await self._carry_out(daemon_set, plan, revision)

    def _waits(self, daemon_set: DaemonSet, nodes: Iterable[str]) -> dict[str, float]:
        """By node, how long a failed pod there still has to wait."""
        generation, now = daemon_set.status.observed_generation, self.clock.monotonic()
        known = {node: self._backoffs.get((daemon_set.uid, generation, node)) for node in nodes}
        return {node: found[0] + found[1] - now for node, found in known.items() if found is not None}

    def _lengthen_backoff(self, daemon_set: DaemonSet, node: str) -> None:
        key = (daemon_set.uid, daemon_set.status.observed_generation, node)
        length, _ = self._backoffs.get(key, (0.0, 0.0))
        self._backoffs[key] = (next_backoff(length), self.clock.monotonic())

    async def _carry_out(self, daemon_set: DaemonSet, plan: Plan, revision: str) -> PodError | None:
        if not plan.create and not plan.delete:
            return None
        self.pod_control.expect(daemon_set, creations=len(plan.create), deletions=plan.delete)
        _, error = await self.pod_control.create_all(
            daemon_set, len(plan.create), lambda number: daemon_pod(daemon_set, plan.create[number], revision)
        )
        errors = await self.pod_control.delete_all(daemon_set, plan.delete)
        return error or (errors[0] if errors else None)

    async def _report(self, daemon_set: DaemonSet, revision: str, collisions: int, *, observed: bool) -> float | None:
        """Write the status; in how many seconds to look again whether ready pods have become available.

        All of `minReadySeconds` from now, not from when the pod became ready, as `updateDaemonSetStatus` has it.
        """
        status = daemon_set_status(
            daemon_set,
            self.lister(Node).list(),
            by_node(self.controlled_by(daemon_set.uid, Pod)),
            revision,
            collisions,
            self.now(),
            observed=observed,
        )
        await self.write_status(DAEMONSETS, daemon_set, daemon_set.status, status)
        seconds = daemon_set.spec.min_ready_seconds
        return float(seconds) if seconds > 0 and status.number_ready != status.number_available else None
