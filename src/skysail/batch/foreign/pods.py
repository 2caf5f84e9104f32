"""The words of other systems on pods: which gang, which role, which queue.

Our own words and upstream's come first (`skysail.batch.membership`); then each system's, in the order of the tables
below; the first that names a gang or a queue counts. A gang that exists by annotation only (Koordinator's)
needs no object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from skysail.api.core import Pod
from skysail.batch.membership import SLA_WORDS, read_membership, seconds_of_text
from skysail.batch.model.specs import ALONE, Membership, ZoneWish

GROUP_WORDS: Final = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group-name",
    "godel.bytedance.com/pod-group-name",
    "kueue.x-k8s.io/pod-group-name",
)
"""Names of groups that exist as objects: ours, made of what the pods say, where nobody else makes them."""
QUEUE_WORDS: Final = (
    "scheduling.volcano.sh/queue-name",
    "kai.scheduler/queue",
    "quota.scheduling.koordinator.sh/name",
)
LINE_WORDS: Final = ("kueue.x-k8s.io/queue-name",)
ROLE_WORDS: Final = ("volcano.sh/task-spec", "kueue.x-k8s.io/role-hash", "kueue.x-k8s.io/podset")
SUB_GROUP_WORDS: Final = ("kai.scheduler/subgroup-name",)
PREEMPTIBLE_WORDS: Final[Mapping[str, Mapping[str, bool]]] = {
    "volcano.sh/preemptable": {"true": True, "false": False},
    "kai.scheduler/preemptibility": {"preemptible": True, "non-preemptible": False},
    "quota.scheduling.koordinator.sh/preemptible": {"true": True, "false": False},
    "godel.bytedance.com/can-be-preempted": {"true": True, "false": False},
}
GANG: Final = "gang.scheduling.koordinator.sh/"
PROTECTION_WORDS: Final = (
    "scheduling.skysail.io/protected-for",
    "volcano.sh/cooldown-time",
    "godel.bytedance.com/protection-duration-from-preemption",
)
"""How long after its start a pod is evicted for nobody: a duration, or seconds."""
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    f"{GANG}mode": "a gang that waits holds nothing here, so strict or not is the same",
    f"{GANG}total-number": "the minimum is what counts; what comes beyond it is elastic",
    f"{GANG}network-topology-index": "members of a gang are equal to the zones they are put in",
    "quota.scheduling.koordinator.sh/tree-id": "all trees share one cluster; the quota's name tells where it is",
    "kai.scheduler/topology": "levels are node labels, whichever Topology names them",
    "kueue.x-k8s.io/podset-unconstrained-topology": "without a wish any zone will do",
    "kueue.x-k8s.io/podset-group-name": "a gang that asks for one zone is put into one, all its roles",
}
"""Words that are taken, and why nothing follows from them."""
MATCH_POLICIES: Final = ("once-satisfied", "waiting-and-running", "only-waiting")


def said(pod: Pod, *words: str) -> str:
    """What the first of these labels or annotations says; empty when none is there."""
    for word in words:
        text = pod.metadata.labels.get(word) or pod.metadata.annotations.get(word, "")
        if text:
            return text
    return ""


class _UserInfo(msgspec.Struct, frozen=True):
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(slots=True)
class MembershipReader:
    """Reads a pod's group, role and queue, whoever's words they are.

    Attributes:
        namespaces: By namespace, the queue of pods that name none (from ElasticQuotas); may change.
        groups: By pod uid, the group that was made for its owner; may change.
    """

    namespaces: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)

    def __call__(self, pod: Pod) -> Membership:
        """What it says; nothing is `ALONE`."""
        own = read_membership(pod)
        gang = said(pod, f"{GANG}name")
        group, implicit = own.group, False
        if not group and gang:
            group, implicit = f"{pod.namespace}/{gang}", True
        if not group:
            name = said(pod, *GROUP_WORDS)
            group = f"{pod.namespace}/{name}" if name else self.groups.get(pod.uid, "")
        found = Membership(
            group=group,
            role=own.role or said(pod, *ROLE_WORDS),
            sub_group=own.sub_group or said(pod, *SUB_GROUP_WORDS),
            queue=own.queue or said(pod, *QUEUE_WORDS),
            job_queue=own.job_queue or said(pod, *LINE_WORDS),
            preemptible=own.preemptible if own.preemptible is not None else _preemptible(pod),
            user=own.user,
            user_groups=own.user_groups,
        )
        if not found.user:
            found = _with_user(pod, found)
        if protected := seconds_said(pod, *PROTECTION_WORDS):
            found = replace(found, protected_seconds=protected)
        if (sla := seconds_said(pod, *SLA_WORDS)) is not None:
            found = replace(found, sla_waiting_seconds=sla)
        if implicit:
            found = _gang(pod, found)
        if not found.queue and not found.job_queue and pod.namespace in self.namespaces:
            found = _with_queue(found, self.namespaces[pod.namespace])
        return ALONE if found == ALONE else found


def read_any_membership(pod: Pod) -> Membership:
    """What a pod says in anybody's words, without what only other objects know."""
    return MembershipReader()(pod)


def _preemptible(pod: Pod) -> bool | None:
    for word, values in PREEMPTIBLE_WORDS.items():
        text = said(pod, word)
        if text in values:
            return values[text]
    return None


def _gang(pod: Pod, found: Membership) -> Membership:
    """Koordinator's gang, all of it by annotation."""
    policy = said(pod, f"{GANG}match-policy")
    return replace(
        found,
        implicit=True,
        min_member=_number(said(pod, f"{GANG}min-available"), 1),
        bundle=_bundle(said(pod, f"{GANG}groups"), found.group),
        match_policy=next((each for each in MATCH_POLICIES if each == policy), "once-satisfied"),
        zone=_gathered(said(pod, f"{GANG}network-topology-spec")),
        schedule_timeout_seconds=seconds_said(pod, f"{GANG}waiting-time") or 0.0,
    )


class _Gather(msgspec.Struct, frozen=True):
    layer: str = ""
    strategy: str = ""


class _GatherStrategy(msgspec.Struct, frozen=True):
    gather: tuple[_Gather, ...] = msgspec.field(default=(), name="gatherStrategy")


def _gathered(text: str) -> ZoneWish:
    """Koordinator's wish for topology; of several layers one that must hold counts first. Unreadable text is none."""
    try:
        wishes = msgspec.json.decode(text, type=_GatherStrategy).gather if text else ()
    except msgspec.DecodeError:
        return ZoneWish()
    for strategy in ("MustGather", "PreferGather"):
        for wish in wishes:
            if wish.strategy == strategy:
                must = strategy == "MustGather"
                return ZoneWish(required=must, preferred=not must, level=wish.layer)
    return ZoneWish()


def seconds_said(pod: Pod, *words: str) -> float | None:
    """What the first of these words says, a duration (`10m`) or seconds; None when none says any."""
    return seconds_of_text(said(pod, *words))


def _bundle(text: str, group: str) -> frozenset[str]:
    """The keys of a bundle's gangs: a JSON list of `namespace/name`. Unreadable text is no bundle."""
    if not text:
        return frozenset({group})
    try:
        return frozenset({group, *msgspec.json.decode(text, type=list[str])})
    except msgspec.DecodeError:
        return frozenset({group})


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() else default


def _with_queue(found: Membership, queue: str) -> Membership:
    return replace(found, queue=queue)


def _with_user(pod: Pod, found: Membership) -> Membership:
    """YuniKorn's words for who submitted a pod: an annotation with the user and groups as JSON, or a label."""
    text = pod.metadata.annotations.get("yunikorn.apache.org/user.info", "")
    if text:
        try:
            info = msgspec.json.decode(text, type=_UserInfo)
        except msgspec.MsgspecError:
            info = _UserInfo()
        return replace(found, user=info.user, user_groups=info.groups)
    name = pod.metadata.labels.get("yunikorn.apache.org/username", "")
    return replace(found, user=name) if name else found
