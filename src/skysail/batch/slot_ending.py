"""When a slot's time is over, and when it comes again.

A slot in which nobody sits is given back for one of three reasons, and stays so while that reason holds:

Used        who sat in it ended, and its Quota is for one use       while the Quota is for one use
Idle        nobody sat in it for as long as its policy allows       while the Quota has that policy
Expired     the Quota's time is over, were it bound or not          until the Quota's end is moved

All is said by the Quota and its status, so whoever leads next finds the same.
"""

from skysail.batch.model.slot import Slot
from skysail.batch.model.specs import QuotaSpec, ReleaseReason
from skysail.batch.session import Session


def is_expired(spec: QuotaSpec, now: float) -> bool:
    """Whether a Quota's time is over: nothing more is put into its slots."""
    return spec.expires is not None and now >= spec.expires


def why_over(slot: Slot, now: float) -> ReleaseReason | None:
    """Why a slot that has a node and no holder is to be given back; None when it is not."""
    spec = slot.spec
    if slot.was_used and spec.ends_with_use:
        return "Used"
    if spec.release == "Idle" and slot.idle_since is not None and now - slot.idle_since >= spec.release_after_seconds:
        return "Idle"
    return "Expired" if is_expired(spec, now) else None


def why_still_over(slot: Slot, now: float) -> ReleaseReason | None:
    """Why a slot without a node is, or stays, given back; None when it is to be bound."""
    if slot.was_used and slot.spec.ends_with_use:
        return "Used"
    if slot.reason == "Idle" and slot.spec.release == "Idle":
        return "Idle"
    return "Expired" if is_expired(slot.spec, now) else None


def is_due(slot: Slot, now: float) -> bool:
    """Whether something is to be done about a slot only because time passed."""
    if slot.node:
        return not slot.holders and why_over(slot, now) is not None
    return why_still_over(slot, now) != slot.reason


def settle_slots(session: Session) -> None:
    """Before anything is placed: slots without a node end, or come back.

    Those that have one are given back by `actions.release_quota`, after all had their chance to use them.
    """
    world = session.world
    for slot in [slot for slot in world.slots.values() if not slot.node and is_due(slot, session.now)]:
        world.end_slot(slot, why_still_over(slot, session.now))
        session.effects.released.append(slot)
        session.note("release" if slot.reason else "renew", slot.key)
