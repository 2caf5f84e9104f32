"""Slots of Quotas: bound to a node and charged once, whoever sits in them. See `accounts` for the layers."""

from collections.abc import Iterable, Mapping

from skysail.batch.accounts import Accounts
from skysail.batch.model.job import Task, TaskState
from skysail.batch.model.outcome import Event
from skysail.batch.model.resources import PODS
from skysail.batch.model.slot import Slot, slot_key
from skysail.batch.model.specs import QuotaSpec, ReleaseReason
from skysail.batch.slot_room import is_room, places_taken, rest_of, rest_uid, room_of, slot_uid
from skysail.batch.slot_use import may_stay, sat_before
from skysail.scheduler.cache.pod_info import PodInfo


class SlotBook(Accounts):
    """The world's slots."""

    def set_quota(self, spec: QuotaSpec) -> None:
        """A Quota came or changed: slots are added, or the last ones taken away; one made again begins anew."""
        before = self.quotas.get(spec.key)
        if before == spec:
            return
        if before is not None and before.uid != spec.uid:
            self.remove_quota(spec.key)
        self.quotas[spec.key] = spec
        known = {slot.index: slot for slot in self.slots.values() if slot.spec.key == spec.key}
        for index in range(spec.count):
            if index in known:
                self._respecify(known.pop(index), spec)
                continue
            slot = Slot(spec, index, self.now)
            self.slots[slot.key] = slot
            slot.was_used = index in spec.used
            if index in spec.released:
                slot.phase, slot.reason = "Releasing", spec.released[index]
            elif spec.node.get(index):
                self.bind_slot(slot, spec.node[index], charge_anyway=True)
                slot.bound_at = spec.bound.get(index, 0)
        for slot in known.values():
            self._drop_slot(slot)
        for node in sorted({slot.node for slot in self.slots.values() if slot.spec.key == spec.key and slot.node}):
            self._find_seats_on(node)
        self.tell(Event.SLOT_CHANGED)

    def _respecify(self, slot: Slot, spec: QuotaSpec) -> None:
        """A slot's Quota changed; one that is bound is charged anew where it is, and may be called otherwise there.

        Those stay whom it is still meant for, as far as there is room for them.
        """
        node, bound_at, key = slot.node, slot.bound_at, slot_key(spec, slot.index)
        holders = [self.tasks[uid] for uid in slot.holders]
        if (slot.spec.resources, slot.spec.queue, slot.key) != (spec.resources, spec.queue, key):
            for task in holders:
                self._stand_up(task)
            self.unbind_slot(slot)
            del self.slots[slot.key]
            slot.spec = spec
            self.slots[key] = slot
            if node:
                self.bind_slot(slot, node, charge_anyway=True)
            slot.bound_at = bound_at
            for task in holders:
                if may_stay(slot, task) and slot.has_room_for(task.request):
                    self.seat(task, slot)
        slot.spec = spec
        self.reseat(holders)

    def remove_quota(self, key: str) -> None:
        """A Quota is gone; tasks in its slots run on, charged by themselves."""
        if self.quotas.pop(key, None) is None:
            return
        for slot in [slot for slot in self.slots.values() if slot.spec.key == key]:
            self._drop_slot(slot)
        self.tell(Event.SLOT_CHANGED)

    def _drop_slot(self, slot: Slot) -> None:
        self._empty_slot(slot)
        self.slots.pop(slot.key, None)

    def _empty_slot(self, slot: Slot) -> None:
        """A slot gives its place back; its holders are charged by themselves from now on."""
        node = slot.node
        for holder in list(slot.holders):
            self._stand_up(self.tasks[holder])
        self.unbind_slot(slot)
        if node:
            self._find_seats_on(node)

    def bind_slot(self, slot: Slot, node: str, *, charge_anyway: bool = False) -> bool:
        """A slot takes its place on a node and is charged to its queue; False when the queue may not."""
        vector = self.vector_of(slot.spec.resources, self.flavors.of(node))
        path = self.path_of(slot.spec.queue)
        if charge_anyway:
            self.ledger.force(path, vector)
        elif self.ledger.charge(path, vector) is not None:
            return False
        self.stand(slot, node)
        slot.idle_since = self.now if not slot.holders else None
        self.refill_slot(slot, node)
        self.changes += 1
        return True

    def unbind_slot(self, slot: Slot) -> None:
        """A slot gives its place back."""
        if not slot.node:
            return
        vector = self.vector_of(slot.spec.resources, self.flavors.of(slot.node))
        self.ledger.release(self.path_of(slot.spec.queue), vector)
        node = slot.node
        self.lift(slot)
        self.refill_slot(slot, node)
        self.tell(Event.POD_GONE)
        self.tell(Event.QUEUE_USE_FELL, slot.spec.queue)

    def end_slot(self, slot: Slot, reason: ReleaseReason | None) -> None:
        """A slot is given back, or waits for a node once more (None)."""
        self.unbind_slot(slot)
        slot.phase, slot.reason = "Releasing" if reason is not None else "Pending", reason
        slot.idle_since = self.now
        self.tell(Event.SLOT_CHANGED)

    def stand(self, slot: Slot, node: str) -> None:
        """A slot is on a node from now on; whoever says so charges it and lets its room stand there."""
        slot.phase, slot.node, slot.reason, slot.bound_at = "Bound", node, None, int(self.now)
        self.slots_on.setdefault(node, {})[slot.key] = slot

    def lift(self, slot: Slot) -> None:
        """It is on none."""
        here = self.slots_on[slot.node]
        del here[slot.key]
        if not here:
            del self.slots_on[slot.node]
        slot.phase, slot.node = "Pending", ""

    def room_with(self, slot: Slot) -> list[PodInfo]:
        """What stands on a slot's node and changes with its holders: its own room, and the rest of the node's slots."""
        rest = rest_of(slot.node, self.slots_on[slot.node].values())
        return [*([] if slot.holders else [room_of(slot)]), *([] if rest is None else [rest])]

    def refill_slot(self, slot: Slot, node: str) -> None:
        """Let unused room stand in the cache, so that nobody else is given it.

        Args:
            slot: Of which slot.
            node: Where it is or was; the rest of that node's slots stands there, too.
        """
        self.cache.forget(slot_uid(slot))
        if slot.node and not slot.holders:
            self.cache.assume(room_of(slot), slot.node)
        self.cache.forget(rest_uid(node))
        rest = rest_of(node, self.slots_on.get(node, {}).values())
        if rest is not None:
            self.cache.assume(rest, node)

    def wrong_room(self) -> list[str]:
        """Where the cache does not hold just the unused room of slots, in words."""
        wanted = {
            info.key: (slot.node, info.requests)
            for slot in self.slots.values()
            for info in (self.room_with(slot) if slot.node else ())
        }
        kept = {
            state.info.key: (state.node_name, state.info.requests)
            for state in self.cache.pods()
            if is_room(state.info.key)
        }
        return [
            f"room {uid}: {kept.get(uid)} kept, {wanted.get(uid)} wanted"
            for uid in sorted({*kept, *wanted})
            if kept.get(uid) != wanted.get(uid)
        ]

    def seat(self, task: Task, slot: Slot) -> None:
        """A task that runs on a slot's node is found to sit in the slot: it is not charged by itself."""
        self._uncharge(task)
        slot.put(task)
        slot.was_used = slot.was_used or task.state is not TaskState.BINDING
        task.slot = slot
        self.refill_slot(slot, slot.node)

    def reseat(self, tasks: Iterable[Task]) -> None:
        """Who may sit where is another matter now: these leave slots they may not stay in, and are found in others."""
        for task in tasks:
            if task.slot is not None and not may_stay(task.slot, task):
                node = task.node
                self._stand_up(task)
                self._find_seats_on(node)
            elif task.charged is not None:
                self.find_seat(task)

    def _find_seats_on(self, node: str) -> None:
        """Slots of a node have room they had not: tasks that run there may sit in it."""
        account = self.cache.node_info(node) if node in self.slots_on else None
        running = [task for uid in account.pods if (task := self.tasks.get(uid)) is not None] if account else []
        for task in sorted(running, key=lambda task: (task.key, task.uid)):
            self.find_seat(task)

    def find_seat(self, task: Task) -> None:
        """A task was found running: if it must have been put into a slot of its node, it sits there.

        In the tightest, as ever; in an empty one where its node has no place for a pod beside its slots.
        """
        if task.slot is not None:
            return
        fitting = [
            slot
            for slot in self.slots_on.get(task.node, {}).values()
            if sat_before(slot, task) and self._holds(slot, task)
        ]
        account = self.cache.node_info(task.node)
        if fitting and account is not None:
            is_full = places_taken(account) > account.allocatable.get(PODS, 0)
            self.seat(task, min(fitting, key=lambda slot: (is_full and bool(slot.holders), slot.room_left(), slot.key)))

    @staticmethod
    def _holds(slot: Slot, task: Task) -> bool:
        """Whether a slot may be where a task runs."""
        runs = task.state in (TaskState.BOUND, TaskState.RELEASING)
        return runs and may_stay(slot, task) and slot.has_room_for(task.request)

    def place_slots(self, specs: Mapping[str, QuotaSpec]) -> None:
        """Slots are where their statuses say, and tasks that run are found in them: for a process that leads now.

        Args:
            specs: The Quotas with what their statuses say, by key. A node that is not there holds no slot.
        """
        for slot in self.slots.values():
            said = specs.get(slot.spec.key)
            if said is None:
                continue
            reason = said.released.get(slot.index)
            node = said.node.get(slot.index, "") if reason is None else ""
            node = node if node in self._nodes else ""
            if slot.node != node:
                self._empty_slot(slot)
                if node:
                    self.bind_slot(slot, node, charge_anyway=True)
            slot.bound_at = said.bound.get(slot.index, 0)
            if not node:
                slot.phase, slot.reason = "Releasing" if reason is not None else "Pending", reason
        self._seat_as_said(specs)
        for task in self.tasks.values():
            self.find_seat(task)
        for slot in self.slots.values():
            if slot.spec.key in specs:
                slot.was_used = bool(slot.holders) or slot.index in specs[slot.spec.key].used

    def _seat_as_said(self, specs: Mapping[str, QuotaSpec]) -> None:
        """Whom statuses name sit where they say, before others; who is not named yet is found in what room is left."""
        said = {
            name: slot
            for slot in self.slots.values()
            if slot.node and slot.spec.key in specs
            for name in specs[slot.spec.key].holders.get(slot.index, ())
        }
        named = [task for task in self.tasks.values() if task.key in said and task.node == said[task.key].node]
        telling = {slot.key: slot for slot in said.values()}
        for task in [self.tasks[uid] for slot in telling.values() for uid in slot.holders]:
            self._stand_up(task)
        for task in named:
            slot = said[task.key]
            if task.slot is not None and task.slot is not slot:
                self._stand_up(task)
            if task.slot is None and self._holds(slot, task):
                self.seat(task, slot)

    def _leave_slot(self, task: Task) -> None:
        """A task is in its slot no longer; others may be found there, but not in one that is given back by that."""
        slot = task.slot
        if slot is None:
            return
        slot.take(task, self.now)
        task.slot = None
        self.refill_slot(slot, slot.node)
        self.tell(Event.SLOT_CHANGED)
        if not slot.spec.ends_with_use:
            self._find_seats_on(slot.node)

    def _stand_up(self, task: Task) -> None:
        """A task that runs on is in its slot no longer, and charged by itself."""
        slot = task.slot
        assert slot is not None
        slot.take(task, self.now)
        task.slot = None
        self.refill_slot(slot, slot.node)
        self._charge(task)
        self.tell(Event.SLOT_CHANGED)
