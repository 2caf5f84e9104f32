"""The stateful set controller's shell.

Source: pkg/controller/statefulset/{stateful_set,stateful_pod_control}.go, v1.36.

Differs: upstream waits until its cache shows its own writes (a consistency store); ours does so for claims, and notes
which pods it expects to see or to lose, as the replica set controller does, with the same effect.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from skysail.api.apps import ControllerRevision, StatefulSet
from skysail.api.core import Pod
from skysail.api.errors import AlreadyExists, ApiError, Conflict, NotFound, Unreachable
from skysail.api.kinds import PODS, STATEFULSETS
from skysail.api.meta import ObjectMeta
from skysail.api.raw import Raw
from skysail.api.storage import PersistentVolumeClaim
from skysail.client.bodies import STRATEGIC
from skysail.controller.controller import Result
from skysail.controller.expectations import UIDTrackingExpectations
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controller.watches import For
from skysail.controllers.builtin import BuiltinController, Selectors
from skysail.controllers.history.revisions import revision_template, superfluous, wanted_revision
from skysail.controllers.history.store import RevisionStore
from skysail.controllers.pods import controller_of, seconds_until_next_available
from skysail.controllers.statefulset.claim_keeper import ClaimKeeper
from skysail.controllers.statefulset.identity import (
    claim_volumes,
    identity_labels,
    identity_matches,
    is_member,
    new_pod,
    ordinal_of,
    pod_name,
    revision_of,
    storage_matches,
)
from skysail.controllers.statefulset.plan import (
    Action,
    AdjustClaims,
    AdjustPod,
    Batch,
    CreatePod,
    DeletePod,
    MakeClaims,
    Revisions,
    Row,
    plan_stateful_set,
)
from skysail.controllers.statefulset.status import is_worth_writing, stateful_set_status
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

_LOOK_AGAIN_SECONDS = 0.1
"""For so long the cache may take to show a claim that was written."""


class StatefulSetController(BuiltinController):
    """Keeps the pods of stateful sets, one after the other."""

    name = "statefulset"
    workers = 5
    watches = (For(StatefulSet),)

    def setup(self) -> None:
        """Hook up pods: their events settle expectations before they wake the set."""
        self.expectations: UIDTrackingExpectations[str] = UIDTrackingExpectations(self.clock)
        self.selectors = Selectors()
        self.index_by_controller(Pod, ControllerRevision)
        self.claims = ClaimKeeper(self.api, self.recorder, self.lister(PersistentVolumeClaim))
        self.informer(StatefulSet).add_handler(Handlers(delete=self._set_gone), name=self.name)
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone), name=self.name
        )

    # What wakes it

    def _set_gone(self, stateful_set: StatefulSet) -> None:
        self.expectations.forget(stateful_set.uid)
        self.claims.own_writes.forget(stateful_set)

    def _owner(self, pod: Pod) -> StatefulSet | None:
        reference = controller_of(pod)
        if reference is None or reference.kind != STATEFULSETS.name:
            return None
        found = self.lister(StatefulSet).named(reference.name, pod.namespace)
        return found if found is not None and found.uid == reference.uid else None

    def _wake(self, stateful_set: StatefulSet | None) -> None:
        if stateful_set is not None:
            self.enqueue(Key(stateful_set.namespace, stateful_set.name))

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._pod_gone(pod)
        elif controller_of(pod) is None:
            self._wake_matching(pod)
        elif (owner := self._owner(pod)) is not None:
            self.expectations.creation_observed(owner.uid)
            self._wake(owner)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        before, after = self._owner(old), self._owner(new)
        if new.metadata.deletion_timestamp is not None and after is not None:
            self.expectations.deletion_of_observed(after.uid, new.uid)
        if before is not None and (after is None or after.uid != before.uid):
            self._wake(before)
        if controller_of(new) is not None:
            self._wake(after)
        elif before is not None or old.metadata.labels != new.metadata.labels:
            self._wake_matching(new)

    def _pod_gone(self, pod: Pod) -> None:
        owner = self._owner(pod)
        if owner is not None:
            self.expectations.deletion_of_observed(owner.uid, pod.uid)
            self._wake(owner)

    def _wake_matching(self, pod: Pod) -> None:
        for stateful_set in self.lister(StatefulSet).list(pod.namespace):
            if self.selectors.of(stateful_set.uid, stateful_set.spec).matches(pod.metadata.labels):
                self._wake(stateful_set)

    # What it does

    async def reconcile(self, key: Key) -> Result | None:
        """One pass: revisions, pods, status, history."""
        stateful_set = self.lister(StatefulSet).get(key)
        if stateful_set is None or not self.expectations.satisfied(stateful_set.uid):
            return None
        if not self.claims.own_writes.are_visible(
            stateful_set, self.informer(PersistentVolumeClaim).indexer.resource_version
        ):
            return Result(_LOOK_AGAIN_SECONDS)
        pods = await self._claim(stateful_set)
        store = RevisionStore(self.api, stateful_set, STATEFULSETS)
        selector = self.selectors.of(stateful_set.uid, stateful_set.spec)
        # Unlike a daemon set it releases none: a revision that matches no longer stays its own, unheeded.
        there = self.claimable_by(stateful_set, ControllerRevision)
        known = await store.claim((item for item in there if selector.matches(item.metadata.labels)), selector)
        update, collisions = await store.sync(wanted_revision(stateful_set.spec.template, known))
        current = next((item for item in known if item.name == stateful_set.status.current_revision), update)
        templates = (revision_template(current), revision_template(update))
        revisions = Revisions(current.name, update.name)
        now = self.now()
        batches = plan_stateful_set(stateful_set, pods, revisions, self.claims, now)
        deleted, error = await self._carry_out(stateful_set, batches, templates, revisions)
        status = stateful_set_status(stateful_set, pods, revisions, collisions, deleted, now)
        if is_worth_writing(stateful_set.status, status):
            await self.write_status(STATEFULSETS, stateful_set, stateful_set.status, status)
        in_use = {current.name, update.name, *map(revision_of, pods)}
        limit = stateful_set.spec.revision_history_limit
        await store.delete(superfluous(known, in_use, 10 if limit is None else limit))
        if error is not None:
            raise error
        return self._next_check(stateful_set, pods)

    def _next_check(self, stateful_set: StatefulSet, pods: Sequence[Pod]) -> Result | None:
        seconds = stateful_set.spec.min_ready_seconds
        return Result(seconds_until_next_available(pods, seconds, self.now())) if seconds > 0 else None

    async def _claim(self, stateful_set: StatefulSet) -> Sequence[Pod]:
        selector = self.selectors.of(stateful_set.uid, stateful_set.spec)
        manager = ControllerRefManager(self.client, stateful_set, STATEFULSETS, PODS, selector)
        pods = self.claimable_by(stateful_set, Pod)
        return await manager.claim(pods, lambda pod: is_member(stateful_set, pod))

    async def _carry_out(
        self,
        stateful_set: StatefulSet,
        batches: Sequence[Batch],
        templates: tuple[msgspec.Raw, msgspec.Raw],
        revisions: Revisions,
    ) -> tuple[int, ApiError | Unreachable | None]:
        """Do it until a batch fails. How many outdated pods were deleted, and the first error."""
        rows = list(chain.from_iterable(batches))
        actions = list(chain.from_iterable(rows))
        creations = sum(isinstance(action, CreatePod) for action in actions)
        deletions = [action.pod.uid for action in actions if isinstance(action, DeletePod)]
        if creations or deletions:
            self.expectations.expect_deletions_of(stateful_set.uid, deletions)
            self.expectations.raise_expected(stateful_set.uid, creations=creations)
        outdated, first_error, begun = 0, None, 0
        for batch in batches:
            for row in batch:
                done, error = await self._carry_out_row(stateful_set, row, templates, revisions)
                outdated += sum(isinstance(action, DeletePod) and action.outdated for action in row[:done])
                self._give_up(stateful_set, row[done:])
                first_error = first_error or error
            begun += len(batch)
            if first_error is not None:
                self._give_up(stateful_set, chain.from_iterable(rows[begun:]))
                break
        return outdated, first_error

    async def _carry_out_row(
        self,
        stateful_set: StatefulSet,
        row: Row,
        templates: tuple[msgspec.Raw, msgspec.Raw],
        revisions: Revisions,
    ) -> tuple[int, ApiError | Unreachable | None]:
        """How many of the row's actions were done, and why the next was not."""
        for number, action in enumerate(row):
            try:
                await self._perform(stateful_set, action, templates, revisions)
            except (ApiError, Unreachable) as error:
                return number, error
        return len(row), None

    def _give_up(self, stateful_set: StatefulSet, actions: Iterable[Action]) -> None:
        """What was not done will not be seen either."""
        for action in actions:
            if isinstance(action, CreatePod):
                self.expectations.creation_observed(stateful_set.uid)
            elif isinstance(action, DeletePod):
                self.expectations.deletion_of_observed(stateful_set.uid, action.pod.uid)

    async def _perform(
        self,
        stateful_set: StatefulSet,
        action: Action,
        templates: tuple[msgspec.Raw, msgspec.Raw],
        revisions: Revisions,
    ) -> None:
        match action:
            case CreatePod(ordinal, updated):
                revision = revisions.update if updated else revisions.current
                body = new_pod(stateful_set, templates[updated], revision, ordinal)
                await self._create(stateful_set, ordinal, body)
            case DeletePod(pod):
                await self._delete(stateful_set, pod)
            case MakeClaims(pod):
                await self.claims.make(stateful_set, ordinal_of(pod), pod.name)
                await self._adjust_claims(stateful_set, pod)
            case AdjustPod(pod):
                await self._adjust_pod(stateful_set, pod)
            case AdjustClaims(pod):
                await self.claims.adjust(stateful_set, pod)

    # Pods

    def _tell(self, stateful_set: StatefulSet, verb: str, name: str, error: ApiError | None = None) -> None:
        if error is None:
            words = f"{verb} Pod {name} in StatefulSet {stateful_set.name} successful"
            self.recorder.event(stateful_set, "Normal", f"Successful{verb}", words)
        elif not error.is_namespace_terminating:
            words = f"{verb} Pod {name} in StatefulSet {stateful_set.name} failed error: {error.status.message}"
            self.recorder.event(stateful_set, "Warning", f"Failed{verb}", words)

    async def _create(self, stateful_set: StatefulSet, ordinal: int, body: Raw) -> None:
        """Make claims, then the pod; the claims get their owners even when the pod is refused."""
        name = pod_name(stateful_set, ordinal)
        try:
            await self.claims.make(stateful_set, ordinal, name)
        except ApiError as error:
            self._tell(stateful_set, "Create", name, error)
            raise
        refusal: ApiError | None = None
        try:
            pod = await self.api.create(PODS, body, stateful_set.namespace)
        except AlreadyExists as error:
            raise Conflict(f"pod {name} is there already: {error.status.message}") from error
        except ApiError as error:
            refusal, pod = error, Pod(metadata=ObjectMeta(name=name, namespace=stateful_set.namespace))
        await self._adjust_claims(stateful_set, pod)
        self._tell(stateful_set, "Create", name, refusal)
        if refusal is not None:
            raise refusal

    async def _delete(self, stateful_set: StatefulSet, pod: Pod) -> None:
        try:
            await self.api.delete(PODS, pod.name, pod.namespace, uid=pod.uid)
        except (NotFound, Conflict):
            self.expectations.deletion_of_observed(stateful_set.uid, pod.uid)
        except ApiError as error:
            self._tell(stateful_set, "Delete", pod.name, error)
            raise
        self._tell(stateful_set, "Delete", pod.name)

    async def _adjust_claims(self, stateful_set: StatefulSet, pod: Pod) -> None:
        try:
            await self.claims.adjust(stateful_set, pod)
        except ApiError as error:
            self._tell(stateful_set, "Update", pod.name, error)
            raise

    async def _adjust_pod(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Put labels and volumes right; the server lets no volumes change, so a pod without them is in the way.

        Raises:
            ApiError: It was refused; the set goes no further.
        """
        patch: Raw = {}
        if not identity_matches(stateful_set, pod):
            patch["metadata"] = {"uid": pod.uid, "labels": identity_labels(pod)}
        if not storage_matches(stateful_set, pod):
            patch["spec"] = {"volumes": claim_volumes(stateful_set, ordinal_of(pod))}
        try:
            if "spec" in patch:
                await self.claims.make(stateful_set, ordinal_of(pod), pod.name)
            await self.claims.adjust(stateful_set, pod)
            if patch:
                await self.api.patch(PODS, pod.name, pod.namespace, patch, patch_type=STRATEGIC)
        except ApiError as error:
            self._tell(stateful_set, "Update", pod.name, error)
            raise
        self._tell(stateful_set, "Update", pod.name)
