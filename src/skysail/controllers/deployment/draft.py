"""The picture a deployment's pass works on: what was read, and what it would be after the changes decided so far.

Deciding changes the picture; at the end the differences to what was read become one write per object.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from skysail.api.apps import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from skysail.api.errors import InvariantBroken
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.api.raw import Raw
from skysail.controllers.deployment.actions import Action, CreateReplicaSet, PatchReplicaSet, PatchStatus, Plan
from skysail.controllers.deployment.fences import new_replica_set_size, sum_of_wanted, wanted_replicas
from skysail.controllers.deployment.revisions import (
    REVISION,
    copied_annotations,
    find_new,
    find_old,
    max_revision,
    new_set_annotations,
)
from skysail.controllers.deployment.scaling import replicas_annotations
from skysail.controllers.deployment.status import (
    NEW_SET_CREATED,
    NEW_SET_FOUND,
    PROGRESSING,
    condition,
    condition_of,
    has_progress_deadline,
    with_condition,
)
from skysail.controllers.patches import merge_difference
from skysail.controllers.templates import HASH_LABEL, controller_reference, parse_template, template_hash

StatusRule = Callable[[Deployment, Sequence[ReplicaSet], ReplicaSet | None, datetime], DeploymentStatus]

_MAX_NAME = 253
_NEW = ""
"""The uid of a replica set that is yet to be made. Its name may be that of another: a collision, found on creation."""


class Draft:
    """One pass over one deployment.

    Attributes:
        deployment: With the status as decided so far.
        new: The set of the current template, if there is one.
        old: All others, oldest first.
        time: Now.
    """

    def __init__(self, deployment: Deployment, replica_sets: Sequence[ReplicaSet], now: datetime | None) -> None:
        self.deployment = deployment
        self.time = now or datetime.min.replace(tzinfo=UTC)
        self._read = deployment
        self._read_sets = {item.uid: item for item in replica_sets}
        self._touched: list[str] = []
        self._extra: list[Action] = []
        self._created = ""
        self._revision: str | None = None
        self.new = find_new(deployment, replica_sets)
        self.old = find_old(self.new, replica_sets)

    @property
    def replica_sets(self) -> list[ReplicaSet]:
        """All of them, with the sizes decided so far."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def current_new(self) -> ReplicaSet:
        """The new set, where the flow has made sure that there is one."""
        if self.new is None:
            raise InvariantBroken(f"deployment {self.deployment.key}: no new replica set after it was made")
        return self.new

    def add(self, action: Action) -> None:
        """Something that is no change of the picture."""
        self._extra.append(action)

    def set_status(self, status: DeploymentStatus) -> None:
        """The status, so far."""
        self.deployment = msgspec.structs.replace(self.deployment, status=status)

    def sync_revision(self, *, create: bool) -> None:
        """Give the new set its number and annotations, and the deployment the same number; make the set if asked."""
        if self.new is not None:
            self._adjust_new(self.new)
        elif create:
            self._create_new()

    def _adjust_new(self, new: ReplicaSet) -> None:
        changes = new_set_annotations(self.deployment, new, self.old)
        annotations = {**new.metadata.annotations, **changes}
        spec = msgspec.structs.replace(new.spec, min_ready_seconds=self.deployment.spec.min_ready_seconds)
        self._put(_with(new, spec, annotations))
        self._revision = annotations.get(REVISION, "")
        if has_progress_deadline(self.deployment) and condition_of(self.deployment.status, PROGRESSING) is None:
            self._progress(NEW_SET_FOUND, f'Found new replica set "{new.name}"')

    def _create_new(self) -> None:
        deployment = self.deployment
        suffix = template_hash(deployment.spec.template, deployment.status.collision_count)
        name = f"{deployment.name[: _MAX_NAME - 1 - len(suffix)]}-{suffix}"
        self._revision = str(max_revision(self.old) + 1)
        size = new_replica_set_size(deployment, sum_of_wanted(self.old), 0)
        annotations = copied_annotations(deployment) | replicas_annotations(deployment) | {REVISION: self._revision}
        self.new = ReplicaSet(
            metadata=ObjectMeta(name=name, namespace=deployment.namespace, annotations=annotations),
            spec=ReplicaSetSpec(
                replicas=size,
                template=deployment.spec.template,
                min_ready_seconds=deployment.spec.min_ready_seconds,
            ),
        )
        self._created = suffix
        self._touched.append(_NEW)
        if has_progress_deadline(deployment):
            self._progress(NEW_SET_CREATED, f'Created new replica set "{name}"')

    def _progress(self, reason: str, message: str) -> None:
        self.set_status(
            with_condition(self.deployment.status, condition(PROGRESSING, "True", reason, message, self.time))
        )

    def scale(self, replica_set: ReplicaSet, size: int, *, renew: bool = False) -> bool:
        """Decide a set's size; the sizes it remembers are renewed with it. Returns whether the size changed.

        Args:
            replica_set: Which.
            size: How many pods.
            renew: Renew the remembered sizes even when the size stays.
        """
        changed = wanted_replicas(replica_set) != size
        if changed or renew:
            spec = msgspec.structs.replace(replica_set.spec, replicas=size)
            annotations = {**replica_set.metadata.annotations, **replicas_annotations(self.deployment)}
            if replica_set.uid != _NEW and replica_set.uid in self._touched:
                self._touched.remove(replica_set.uid)
            self._put(_with(replica_set, spec, annotations))
        return changed

    def _put(self, replica_set: ReplicaSet) -> None:
        if replica_set.uid not in self._touched:
            self._touched.append(replica_set.uid)
        if self.new is not None and self.new.uid == replica_set.uid:
            self.new = replica_set
        else:
            self.old = [replica_set if item.uid == replica_set.uid else item for item in self.old]

    def finish(self, rule: StatusRule) -> Plan:
        """Work out the status, and put all changes into one plan."""
        self.set_status(rule(self.deployment, self.replica_sets, self.new, self.time))
        return Plan(tuple(self.actions()))

    def actions(self) -> list[Action]:
        """The writes: replica sets in the order they were scaled or touched, then the rest, then the status."""
        by_uid = {item.uid: item for item in self.replica_sets}
        actions: list[Action] = []
        for uid in self._touched:
            before = self._read_sets.get(uid)
            if before is None:
                actions.append(self._creation(by_uid[uid]))
            elif patch := _set_patch(before, by_uid[uid]):
                actions.append(PatchReplicaSet(before, patch, _scaling_words(before, by_uid[uid])))
        actions += self._extra
        if patch := self._status_patch():
            actions.append(PatchStatus(patch))
        return actions

    def _creation(self, new: ReplicaSet) -> CreateReplicaSet:
        deployment, label = self._read, {HASH_LABEL: self._created}
        template = parse_template(deployment.spec.template)
        labels = {**(template.get("metadata", {}).get("labels") or {}), **label}
        selector = deployment.spec.selector or LabelSelector()
        selector = msgspec.structs.replace(selector, match_labels={**selector.match_labels, **label})
        owner = controller_reference(deployment, "apps/v1", "Deployment")
        body: Raw = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": new.name,
                "namespace": deployment.namespace,
                "labels": labels,
                "annotations": dict(new.metadata.annotations),
                "ownerReferences": [msgspec.to_builtins(owner)],
            },
            "spec": {
                "replicas": new.spec.replicas,
                "minReadySeconds": new.spec.min_ready_seconds,
                "selector": msgspec.to_builtins(selector),
                "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
            },
        }
        return CreateReplicaSet(body, wanted_replicas(new))

    def _status_patch(self) -> Raw:
        patch: Raw = {}
        status = merge_difference(self._read.status, self.deployment.status)
        if status:
            patch["status"] = status
        if self._revision is not None and self._read.metadata.annotations.get(REVISION) != self._revision:
            patch["metadata"] = {"annotations": {REVISION: self._revision}}
        if patch:
            patch.setdefault("metadata", {})["resourceVersion"] = self._read.metadata.resource_version
        return patch


def _with(replica_set: ReplicaSet, spec: ReplicaSetSpec, annotations: dict[str, str]) -> ReplicaSet:
    metadata = msgspec.structs.replace(replica_set.metadata, annotations=annotations)
    return msgspec.structs.replace(replica_set, spec=spec, metadata=metadata)


def _set_patch(before: ReplicaSet, after: ReplicaSet) -> Raw:
    annotations = {
        key: value for key, value in after.metadata.annotations.items() if before.metadata.annotations.get(key) != value
    }
    spec: Raw = {}
    if wanted_replicas(before) != wanted_replicas(after):
        spec["replicas"] = wanted_replicas(after)
    if before.spec.min_ready_seconds != after.spec.min_ready_seconds:
        spec["minReadySeconds"] = after.spec.min_ready_seconds
    if not annotations and not spec:
        return {}
    metadata: Raw = {"resourceVersion": before.metadata.resource_version}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata} | ({"spec": spec} if spec else {})


def _scaling_words(before: ReplicaSet, after: ReplicaSet) -> str:
    was, will = wanted_replicas(before), wanted_replicas(after)
    if was == will:
        return ""
    return f"Scaled {'up' if will > was else 'down'} replica set {before.name} from {was} to {will}"
