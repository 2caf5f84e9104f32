"""Koordinator's Reservation (`scheduling.koordinator.sh/v1alpha1`): a slot that is bound before its pods come.

Becomes a Quota of one slot in no namespace: as large as the template's pod, where that pod could run, in the queue that
the template names (`quota.scheduling.koordinator.sh/name`), else the default one.

Differs: pods of other queues do not use it; `allocatePolicy: Default` is Aligned; an owner named as an object is a
controller of pods, or a gang; `preAllocation` is given up, and said.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from skysail.api.meta import ApiObject, LabelSelector, ObjectMeta, Struct, format_time
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import Amount, about, decode
from skysail.batch.kinds.quota import QuotaStatus
from skysail.batch.kinds.reading import Notes, Problem, created, seconds_of
from skysail.batch.model import specs

GROUP: Final = "scheduling.koordinator.sh"
QUOTA_NAME: Final = "quota.scheduling.koordinator.sh/name"
HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_QUEUE: Final = "default"
DEFAULT_TTL: Final = "24h"


class Requests(Struct, frozen=True, gc=False):
    """A container's resources."""

    requests: Mapping[str, Amount] = {}
    limits: Mapping[str, Amount] = {}


class ReservedContainer(Struct, frozen=True, gc=False):
    """A container of the template."""

    resources: Requests = Requests()


class ReservedPod(Struct, frozen=True, gc=False):
    """Of the template's pod what a slot can say."""

    containers: tuple[ReservedContainer, ...] = ()
    node_name: str = ""
    node_selector: Mapping[str, str] = {}
    affinity: Mapping[str, object] | None = None
    tolerations: tuple[Mapping[str, object], ...] = ()


class ReservedTemplate(Struct, frozen=True, gc=False):
    """`template`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReservedPod = ReservedPod()


class OwnerObject(Struct, frozen=True, gc=False):
    """An owner by reference."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class ReservationOwner(Struct, frozen=True, gc=False):
    """Who may use it."""

    object: OwnerObject | None = None
    controller: OwnerObject | None = None
    label_selector: LabelSelector | None = None


class ReservationSpec(Struct, frozen=True, gc=False):
    """A Reservation's spec."""

    template: ReservedTemplate = ReservedTemplate()
    owners: tuple[ReservationOwner, ...] = ()
    ttl: str | None = None
    expires: datetime | None = None
    allocate_once: bool | None = None
    allocate_policy: str = ""
    pre_allocation: bool = False
    unschedulable: bool = False


class ReservationStatus(Struct, frozen=True, gc=False):
    """Where it was put."""

    node_name: str = ""
    phase: str = ""
    current_owners: tuple[OwnerObject, ...] = ()


class Reservation(ApiObject, frozen=True, gc=False, kw_only=True):
    """A Reservation."""

    spec: ReservationSpec = ReservationSpec()
    status: ReservationStatus = ReservationStatus()


def read_reservation(raw: Raw) -> tuple[specs.QuotaSpec | None, list[Problem]]:
    """One Reservation as a Quota; None when it cannot be read, or is over."""
    found = decode(raw, Reservation)
    if isinstance(found, Problem):
        return None, [found]
    notes, spec, template = Notes(about(raw)), found.spec, found.spec.template
    if spec.unschedulable or found.status.phase in ("Succeeded", "Failed"):
        return None, []
    if spec.pre_allocation:
        notes.say("preAllocation: room that others still hold is not reserved")
    if template.spec.affinity or template.spec.tolerations:
        notes.say("template.spec: affinity and tolerations are not followed; use nodeSelector")
    selector = dict(template.spec.node_selector)
    if template.spec.node_name:
        selector[HOSTNAME] = template.spec.node_name
    selectors = [each.label_selector for each in spec.owners if each.label_selector is not None]
    if len(selectors) > 1:
        notes.say("owners: one labelSelector counts, the first")
    once = spec.allocate_once is not False
    quota = specs.QuotaSpec(
        namespace="",
        name=found.name,
        uid=found.uid,
        queue=template.metadata.labels.get(QUOTA_NAME, DEFAULT_QUEUE),
        resources=_requests(template.spec, notes),
        node_selector=selector,
        owners=frozenset(_owners(spec.owners)) if not selectors else frozenset(),
        owner_selector=notes.selector(selectors[0], "owners[].labelSelector") if selectors else None,
        allocate_policy="Restricted" if spec.allocate_policy == "Restricted" else "Aligned",
        allocate_once=once,
        expires=_expires(found, notes),
        node={0: found.status.node_name} if found.status.node_name else {},
        holders={0: tuple(f"{each.namespace}/{each.name}" for each in found.status.current_owners)},
        used=frozenset({0}) if found.status.current_owners else frozenset(),
        created=created(found),
    )
    return quota, notes.problems


def _requests(pod: ReservedPod, notes: Notes) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in pod.containers:
        amounts = {**container.resources.limits, **container.resources.requests}
        for name, amount in notes.amounts({k: str(v) for k, v in amounts.items()}, "template.spec").items():
            total[name] = total.get(name, 0) + amount
    return total


def _owners(owners: Sequence[ReservationOwner]) -> list[str]:
    """The keys of gangs that own it: those of controllers' pods, or gangs by name."""
    found = []
    for owner in owners:
        reference = owner.controller or owner.object
        if reference is not None:
            namespace = reference.namespace or "default"
            implied = owner.controller is not None or reference.kind not in ("PodGroup", "Pod")
            found.append(f"{namespace}/{reference.kind.lower() + '-' if implied else ''}{reference.name}")
            if reference.kind == "Pod":
                found.append(f"pod:{namespace}/{reference.name}")
    return found


def _expires(reservation: Reservation, notes: Notes) -> float | None:
    """When it ends; `ttl: 0` is never, without a word after a day."""
    if reservation.spec.expires is not None:
        return seconds_of(reservation.spec.expires)
    ttl = notes.seconds(reservation.spec.ttl if reservation.spec.ttl is not None else DEFAULT_TTL, "ttl")
    return created(reservation) + ttl if ttl else None


_PHASES: Final[Mapping[str, str]] = {"Bound": "Available", "Releasing": "Succeeded"}


def reservation_status(status: QuotaStatus, allocatable: Mapping[str, str]) -> Raw:
    """A Reservation's status in Koordinator's words.

    Args:
        status: As of the Quota it became.
        allocatable: The size of its slot.
    """
    phase = _PHASES.get(status.phase, "Pending")
    holders = [each for slot in status.slots for each in slot.holders]
    moment = format_time(status.bound_time) if status.bound_time is not None else None
    conditions = []
    if phase == "Available":
        scheduled = {"type": "Scheduled", "status": "True", "reason": "Scheduled", "lastTransitionTime": moment}
        ready = {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": moment}
        conditions = [scheduled, ready]
    return {
        "phase": phase,
        "nodeName": status.node_name,
        "conditions": conditions,
        "allocatable": dict(allocatable) if phase == "Available" else {},
        "currentOwners": [
            {"namespace": namespace, "name": name} for namespace, _, name in (each.partition("/") for each in holders)
        ],
    }
