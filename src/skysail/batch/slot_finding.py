"""Seats tasks in the slots of Quotas: bound ones with room first, tightest fit; else pending ones, bound on the way."""

import numpy as np

from skysail.batch.devices import ledger_of, share_of
from skysail.batch.model.job import Job, Task
from skysail.batch.model.resources import PODS
from skysail.batch.model.slot import Slot
from skysail.batch.placing import Placer
from skysail.batch.rows import fitting
from skysail.batch.session import Session
from skysail.batch.slot_ending import is_expired
from skysail.batch.slot_use import is_for, owns


def usable_slots(session: Session, job: Job) -> list[Slot]:
    """Slots of Quotas that a job may use, by key; empty where its queue's users define none for it."""
    return [
        slot
        for _, slot in sorted(session.world.slots.items())
        if is_for(slot, job)
        and not is_expired(slot.spec, session.now)
        and (slot.spec.owner_selector is None or any(owns(slot, task) for task in job.tasks.values()))
    ]


class Seats:
    """Finds slots for the tasks of one job.

    Args:
        session: Whose.
        slots: Those it may use.
    """

    def __init__(self, session: Session, slots: list[Slot]) -> None:
        self._session, self._slots = session, slots

    def seat(self, placer: Placer, task: Task) -> bool:
        """Put one task into a slot; whether there was one."""
        for slot in self._ranked(task):
            mark = placer.statement.checkpoint()
            if not slot.node and not self._bind(placer, slot, task):
                continue
            if self._fits_there(task, slot) and placer.statement.allocate_task_to_quota(task, slot) is None:
                placer.placed.append((task, slot.node))
                return True
            placer.statement.rollback(mark)
        return False

    def _ranked(self, task: Task) -> list[Slot]:
        session = self._session
        fitting_slots = [
            slot
            for slot in self._unlike()
            if slot.has_room_for(task.request) and owns(slot, task) and session.quota_predicate(task, slot)
        ]
        return sorted(
            fitting_slots,
            key=lambda slot: (not slot.node, -session.quota_order_score(task, slot), slot.room_left(), slot.key),
        )

    def _unlike(self) -> list[Slot]:
        """Of empty slots of one Quota on one node only the first: what holds for it holds for the others."""
        first: dict[object, Slot] = {}
        for slot in self._slots:
            first.setdefault(slot.key if slot.holders else (slot.spec.key, slot.node), slot)
        return list(first.values())

    def _fits_there(self, task: Task, slot: Slot) -> bool:
        """Whether predicates allow the task on the slot's node, the room of slots that are in use apart."""
        nodes, world = self._session.nodes, self._session.world
        row = nodes.table.rows.get(slot.node)
        if row is None or world.is_distrusted(task.job, slot.node) or self._lacks_device(task, row):
            return False
        before = nodes.remove(slot.node, world.room_with(slot))
        try:
            return bool(fitting(self._session, task)[row])
        finally:
            if before is not None:
                nodes.restore(before)

    def _lacks_device(self, task: Task, row: int) -> bool:
        """Whether it asks for a part of a device and all are taken: a slot's devices are whole, and kept for others."""
        if not self._session.turns or task.uid not in self._session.world.sharers:
            return False
        share, info = share_of(task.pod), self._session.nodes.table.info(row)
        thousandths = share.on(info) if share is not None else None
        return thousandths is not None and not ledger_of(info).holds_share(thousandths)

    def _bind(self, placer: Placer, slot: Slot, task: Task) -> bool:
        node = node_for(self._session, slot, placer)
        if node is None:
            return False
        return placer.statement.allocate_quota(slot, node) is None


def node_for(session: Session, slot: Slot, placer: Placer | None = None) -> str | None:
    """The best node for a pending slot: by room and node selector, fullest first, then by name."""
    table = session.nodes.table
    mask = table.live[: table.size].copy()
    for resource, need in {**slot.size, PODS: 1}.items():
        mask &= table.amounts.free[table.amounts.line(resource)][: table.size] >= need
    if placer is not None and placer.rows is not None:
        mask &= placer.rows
    rank = session.nodes.name_rank()
    for row in sorted(np.flatnonzero(mask), key=lambda row: (_free(session, slot, int(row)), int(rank[row]))):
        labels = table.info(int(row)).node.metadata.labels
        wanted = dict(slot.spec.node_selector)
        if slot.spec.zone:
            wanted[session.configuration.zone_label] = slot.spec.zone
        if all(labels.get(key) == value for key, value in wanted.items()) and not table.unschedulable[row]:
            return table.names[int(row)]
    return None


def _free(session: Session, slot: Slot, row: int) -> int:
    amounts = session.nodes.table.amounts
    return sum(int(amounts.free[amounts.line(resource)][row]) for resource in slot.spec.resources)
