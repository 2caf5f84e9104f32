"""A stateful set's mind: which pods to make, replace or remove next.

With OrderedReady (the default) one thing happens at a time: pods are made upwards, each when the one before is ready,
and removed downwards; a pod that is not as it should be stops everything after it. With Parallel all of it happens at
once. Only when every wanted pod is there, and no other, is the template rolled out, from the highest ordinal down to
the partition, one pod at a time.

Source: pkg/controller/statefulset/stateful_set_control.go, v1.36 (feature MaxUnavailableStatefulSet off, its default).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from skysail.api.apps import StatefulSet
from skysail.api.core import Pod
from skysail.controllers.pods import is_available, is_ready
from skysail.controllers.statefulset.identity import (
    first_ordinal,
    identity_matches,
    ordinal_of,
    ordinals,
    revision_of,
    storage_matches,
)

PARALLEL = "Parallel"
ON_DELETE = "OnDelete"


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Make the pod of an ordinal, and its claims before it.

    Attributes:
        ordinal: Which.
        updated: Whether from the update revision; otherwise from the current one.
    """

    ordinal: int
    updated: bool


@dataclass(frozen=True, slots=True)
class MakeClaims:
    """A pending pod may wait for claims that are gone: make them again, owned as the policy asks."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Remove a pod.

    Attributes:
        pod: Which.
        outdated: Because of its template; it no longer counts as one of the current revision.
    """

    pod: Pod
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class AdjustPod:
    """Give a pod the labels of its identity, and its claims the owners that the policy asks for."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class AdjustClaims:
    """Give the claims of a pod that is on its way out the owners that the policy asks for."""

    pod: Pod


Action = CreatePod | MakeClaims | DeletePod | AdjustPod | AdjustClaims
Row = Sequence[Action]
"""What is done about one pod, in order; the first action that fails ends the row."""
Batch = Sequence[Row]
"""Rows that do not wait for each other; when one of them fails, no further batch is begun."""


class ClaimTests(Protocol):
    """What a plan asks about claims."""

    def match(self, stateful_set: StatefulSet, pod: Pod) -> bool:
        """Whether the pod's claims have the owners that the policy asks for."""

    def are_stale(self, stateful_set: StatefulSet, ordinal: int) -> bool:
        """Whether claims of an earlier pod of that ordinal are still on their way out."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """Names of the two revisions a set moves between."""

    current: str
    update: str


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is there.

    Attributes:
        replicas: The pod of each wanted ordinal, None where it is missing.
        condemned: Pods beyond, the highest ordinal first.
        first_unavailable: The first pod that is not available; None when all are, or when it is a missing one.
    """

    stateful_set: StatefulSet
    replicas: Sequence[Pod | None]
    condemned: Sequence[Pod]
    first_unavailable: Pod | None
    now: datetime

    @property
    def monotonic(self) -> bool:
        return self.stateful_set.spec.pod_management_policy != PARALLEL

    def is_available(self, pod: Pod) -> bool:
        return is_available(pod, self.stateful_set.spec.min_ready_seconds, self.now)


def plan_stateful_set(
    stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions, claims: ClaimTests, now: datetime
) -> list[Batch]:
    """What to do next, one batch after the other.

    Args:
        stateful_set: As read.
        pods: Its pods.
        revisions: Current and update.
        claims: Asked about the claims of pods.
        now: For availability.
    """
    if stateful_set.metadata.deletion_timestamp is not None:
        return []
    scene = _scene(stateful_set, pods, now)
    steps = (
        _process_replica(scene, ordinal, pod, claims)
        for ordinal, pod in zip(ordinals(stateful_set), scene.replicas, strict=True)
    )
    batches, stopped = _in_batches(scene, steps)
    if stopped:
        return batches
    batches += _in_batches(scene, ((_adjust_claims(scene, pod, claims), False) for pod in scene.condemned))[0]
    removals, stopped = _in_batches(scene, (_process_condemned(scene, pod) for pod in scene.condemned))
    batches += removals
    return batches if stopped else [*batches, [_roll_out(scene, revisions)]]


def _in_batches(scene: _Scene, steps: Iterable[tuple[list[Action], bool]]) -> tuple[list[Batch], bool]:
    """Row by row up to the first that says stop; with Parallel all of them, in batches of 1, 2, 4 and so on."""
    batches: list[Batch] = []
    rows: list[Row] = []
    for row, stop in steps:
        rows.append(row)
        if scene.monotonic or len(rows) == 2 ** len(batches):
            batches.append(rows)
            rows = []
        if scene.monotonic and stop:
            return batches, True
    return [*batches, rows], False


def _scene(stateful_set: StatefulSet, pods: Sequence[Pod], now: datetime) -> _Scene:
    wanted = ordinals(stateful_set)
    by_ordinal = {ordinal_of(pod): pod for pod in pods}
    replicas = [by_ordinal.get(ordinal) for ordinal in wanted]
    condemned = sorted(
        (pod for pod in pods if ordinal_of(pod) >= 0 and ordinal_of(pod) not in wanted), key=ordinal_of, reverse=True
    )
    scene = _Scene(stateful_set, replicas, condemned, None, now)
    for pod in (*replicas, *reversed(condemned)):
        if pod is None:
            return scene
        if not scene.is_available(pod) or pod.metadata.deletion_timestamp is not None:
            return _Scene(stateful_set, replicas, condemned, pod, now)
    return scene


def _process_replica(scene: _Scene, ordinal: int, pod: Pod | None, claims: ClaimTests) -> tuple[list[Action], bool]:
    """The steps for one wanted ordinal, and whether everything after it has to wait.

    Stale claims are no error: the pod is made when something else wakes the set after they have gone.
    """
    if pod is None and claims.are_stale(scene.stateful_set, ordinal):
        return [], True
    if pod is None:
        return [CreatePod(ordinal, updated=not _from_current(scene.stateful_set, ordinal))], True
    if pod.status.phase in ("Failed", "Succeeded"):
        return ([DeletePod(pod)] if pod.metadata.deletion_timestamp is None else []), True
    pending = pod.status.phase == "Pending"
    steps: list[Action] = [MakeClaims(pod)] if pending else []
    if scene.monotonic and not _is_settled(scene, pod):
        return steps, True
    stateful_set = scene.stateful_set
    in_order = identity_matches(stateful_set, pod) and storage_matches(stateful_set, pod)
    fits = in_order and (pending or claims.match(stateful_set, pod))
    return (steps if fits else [*steps, AdjustPod(pod)]), False


def _adjust_claims(scene: _Scene, pod: Pod, claims: ClaimTests) -> list[Action]:
    return [] if claims.match(scene.stateful_set, pod) else [AdjustClaims(pod)]


def _is_settled(scene: _Scene, pod: Pod) -> bool:
    running_and_ready = pod.status.phase == "Running" and is_ready(pod)
    return pod.metadata.deletion_timestamp is None and running_and_ready and scene.is_available(pod)


def _from_current(stateful_set: StatefulSet, ordinal: int) -> bool:
    """Whether a missing pod is made from the current revision: while a roll-out has not come down to it."""
    strategy, start = stateful_set.spec.update_strategy, first_ordinal(stateful_set)
    if strategy.rolling_update is not None:
        return ordinal < start + (strategy.rolling_update.partition or 0)
    return strategy.type == "RollingUpdate" and ordinal < start + stateful_set.status.current_replicas


def _process_condemned(scene: _Scene, pod: Pod) -> tuple[list[Action], bool]:
    """The removal of a pod beyond the wanted ones if it is its turn, and whether the next has to wait."""
    if pod.metadata.deletion_timestamp is not None:
        return [], True
    if scene.monotonic and not _is_settled(scene, pod) and pod is not scene.first_unavailable:
        return [], True
    return [DeletePod(pod)], True


def _roll_out(scene: _Scene, revisions: Revisions) -> list[Action]:
    """Replace the highest pod that is not of the update revision, if all above it are available."""
    strategy = scene.stateful_set.spec.update_strategy
    if strategy.type == ON_DELETE:
        return []
    partition = strategy.rolling_update.partition or 0 if strategy.rolling_update is not None else 0
    for pod in reversed(list(scene.replicas)[partition:]):
        if pod is None:
            return []
        terminating = pod.metadata.deletion_timestamp is not None
        if revision_of(pod) != revisions.update and not terminating:
            return [DeletePod(pod, outdated=True)]
        if terminating or not scene.is_available(pod):
            return []
    return []
