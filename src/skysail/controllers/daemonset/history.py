"""A daemon set's history: which revision is of the present template, and what has to be put right before it is used.

1. A revision without a hash gets its name for one (`RevisionStore.label`).
2. Of several revisions of the present template the one with the highest number stays. First all pods get its hash,
   and when the cache shows that they have it, the others go. So nothing replaces a pod that was only relabelled.
3. The present revision has a higher number than all others.

Pods of older templates are relabelled with the rest, and count as up to date from then on, as they do upstream.

Source: pkg/controller/daemon/update.go `constructHistory`, `dedupCurHistories`, `cleanupHistory`, v1.36.

Differs: upstream takes revisions for equal when their bytes are, ours when they mean the same; and upstream goes on at
once with the pods as its cache still shows them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from skysail.api.apps import ControllerRevision
from skysail.api.core import Pod
from skysail.controllers.history.revisions import REVISION_LABEL, WantedRevision, next_number, revision_template
from skysail.controllers.templates import whole_template


@dataclass(frozen=True, slots=True)
class History:
    """Revisions sorted out.

    Attributes:
        wanted: The revision of the present template.
        duplicates: Further revisions of it.
        old: Those of other templates, in order.
    """

    wanted: WantedRevision
    duplicates: tuple[ControllerRevision, ...] = ()
    old: tuple[ControllerRevision, ...] = ()


def sort_out_history(template: msgspec.Raw, revisions: Sequence[ControllerRevision]) -> History:
    """Which revision is which.

    Args:
        template: The set's present one.
        revisions: The set's, in order, each with a hash.
    """
    wanted = whole_template(template)
    equal: list[ControllerRevision] = []
    old: list[ControllerRevision] = []
    for item in revisions:
        (equal if whole_template(revision_template(item)) == wanted else old).append(item)
    number = next_number(old)
    if not equal:
        return History(WantedRevision(None, number), old=tuple(old))
    *duplicates, kept = equal
    return History(WantedRevision(kept, max(number, kept.revision)), tuple(duplicates), tuple(old))


def bearing_another_hash(kept: ControllerRevision, pods: Iterable[Pod]) -> list[Pod]:
    """The pods that must get this revision's hash before its duplicates may go."""
    return [pod for pod in pods if hash_in(pod) != hash_in(kept)]


def hash_in(labelled: Pod | ControllerRevision) -> str:
    """The hash a pod or a revision bears; empty when it has none."""
    return labelled.metadata.labels.get(REVISION_LABEL, "")


def superfluous_history(old: Sequence[ControllerRevision], pods: Iterable[Pod], limit: int) -> list[ControllerRevision]:
    """The oldest revisions beyond the limit; those of which there are still pods are kept.

    Args:
        old: All but the present one, in order.
        pods: The set's.
        limit: How many old revisions to keep.
    """
    in_use = {found for pod in pods if (found := hash_in(pod))}
    idle = [item for item in old if hash_in(item) not in in_use]
    return idle[: max(0, len(old) - limit)]
