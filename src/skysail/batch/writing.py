"""Statuses: why a job waits, on its pods and its group; where slots are. Promises stand in `claim_writing`.

Written only when code or key figures changed, within a budget (so many writes a second, the newest word of a job
replaces one not yet written).
"""

import asyncio
import logging
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, Final

from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import PODS, Kind
from skysail.api.meta import format_time
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.batch.demand import MORE_ROOM_HELPS
from skysail.batch.feeding import Feeding
from skysail.batch.kinds import POD_GROUPS, QUOTAS
from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.outcome import Outcome
from skysail.batch.model.slot import common_phase
from skysail.client.api_client import ApiClient
from skysail.client.bodies import STRATEGIC

_log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"


def pod_reason(outcome: Outcome) -> str:
    """The reason of a pod's PodScheduled condition; where more nodes help, upstream's, which autoscalers look for."""
    return "Unschedulable" if outcome.code in MORE_ROOM_HELPS else outcome.code.value


def pod_status(task: Task, outcome: Outcome, now: datetime) -> Raw | None:
    """The strategic merge patch that tells a pod why it waits; None when it says so already."""
    pod = task.pod
    message = f"{outcome.code.value}: {outcome.message}"
    old = next((each for each in pod.status.conditions if each.type == POD_SCHEDULED), None)
    if old is not None and (old.status, old.reason, old.message) == ("False", pod_reason(outcome), message):
        return None
    since = old.last_transition_time if old is not None and old.status == "False" else None
    condition = {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": pod_reason(outcome),
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(since or now),
    }
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}


def group_status(outcome: Outcome | None) -> Raw:
    """The merge patch that tells a group why it waits, or that it does not."""
    if outcome is None:
        return {"status": {"schedulingConditions": None}}
    record = {
        "code": outcome.code.value,
        "message": outcome.message,
        "details": dict(outcome.numbers),
        "since": format_time(datetime.fromtimestamp(outcome.since, UTC)),
        "nextEvents": list(outcome.next_events),
    }
    return {"status": {"schedulingConditions": [record]}}


class StatusWriting:
    """The notes, and the task that writes them.

    Args:
        client: Patches.
        feeding: Knows the object behind each group.
        clock: Stamps conditions.
        per_second: The budget.
    """

    def __init__(self, client: ApiClient, feeding: Feeding, clock: Clock, per_second: float = 200.0) -> None:
        self._client, self._feeding, self._clock = client, feeding, clock
        self._pause = 1.0 / per_second
        self._notes: OrderedDict[str, Job] = OrderedDict()
        self._wake = asyncio.Event()
        self.writes = 0

    def __len__(self) -> int:
        """How many jobs' words are still to be written."""
        return len(self._notes)

    def submit(self, job: Job) -> None:
        """A job's outcome changed."""
        self._notes[job.key] = job
        self._notes.move_to_end(job.key)
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while not self._notes:
                self._wake.clear()
                await self._wake.wait()
            _, job = self._notes.popitem(last=False)
            await self._write(job)

    async def _write(self, job: Job) -> None:
        outcome = job.outcome
        known = self._feeding.groups.get(job.key)
        if known is not None and known[0] is POD_GROUPS:
            await self.patch(POD_GROUPS, job.key, group_status(outcome))
        if outcome is None:
            return
        for task in list(job.tasks.values()):
            if task.state <= TaskState.CLAIMED:
                patch = pod_status(task, outcome, self._clock.now())
                if patch is not None:
                    await self.patch(PODS, task.key, patch, strategic=True)

    async def patch(self, kind: Kind[Any], key: str, patch: Raw, *, strategic: bool = False) -> bool:
        """Patch an object's status, within the budget; whether that is done."""
        namespace, _, name = key.partition("/")
        self.writes += 1
        try:
            if strategic:
                await self._client.patch(kind, name, namespace, patch, patch_type=STRATEGIC, subresource="status")
            else:
                await self._client.patch(kind, name, namespace, patch, subresource="status")
        except ApiError as error:
            _log.info("status not written", extra={"object": key, "error": str(error)})
            return False
        except Unreachable as error:
            _log.info("status not written yet", extra={"object": key, "error": str(error)})
            await asyncio.sleep(1.0)
            return False
        await asyncio.sleep(self._pause)
        return True

    async def write_slots(self, key: str) -> bool:
        """Write where all of a Quota's slots are, with one request; whether that is done.

        Who sits in them is told by `skysail.batch.controllers.standing_writing`, which has time; what it said stays.

        Args:
            key: `namespace/name` of the Quota.

        Cost: Grows with the slots, so it is called once for all that changed.
        """
        quota = self._feeding.quotas.get(key)
        slots = self._feeding.slots_of(key)
        if quota is None or not slots:
            return False
        holders = {each.index: list(each.holders) for each in quota.status.slots}
        rows: list[Raw] = [
            {
                "index": each.index,
                "phase": each.phase,
                "nodeName": each.node,
                "boundTime": format_time(each.bound_time) if each.bound_time is not None else None,
                "holders": holders.get(each.index, []),
                "used": each.is_spent,
                "reason": each.reason or "",
            }
            for each in slots
        ]
        node = slots[0].node if len(slots) == 1 else None
        return await self.patch(
            QUOTAS, key, {"status": {"phase": common_phase(slots), "slots": rows, "nodeName": node}}
        )
