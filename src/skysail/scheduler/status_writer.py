"""Writes the PodScheduled condition and nominations, off the critical path.

A failed attempt only leaves a note here; a few tasks write the notes. Of several notes about one pod only the last is
written; what it leaves open, the condition or the nomination, it has from those before. What the server says of a pod
is not known while a note about it is being written: the next one is written in any case. When more wait than the bound
allows, the oldest is given up: bindings never wait for conditions, and the pod's next attempt writes it again.

Source: pkg/scheduler/schedule_one.go (updatePod), pkg/scheduler/util/utils.go (PatchPodStatus),
    pkg/scheduler/framework/api_calls/pod_status_patch.go, pkg/scheduler/backend/api_dispatcher/call_queue.go, v1.36.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from skysail.api.core import Pod, PodCondition
from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import PODS, Kind
from skysail.api.meta import format_time
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.bodies import STRATEGIC, PatchType
from skysail.scheduler.metrics import SchedulerMetrics

_log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"
CALL_TYPE: Final = "pod_status_patch"
_WRITERS: Final = 4
_MAX_WAITING: Final = 10_000
_TRIES: Final = 4
_FIRST_WAIT_SECONDS: Final = 0.01


class PatchingClient(Protocol):
    """The part of the client that is used here."""

    async def patch(
        self,
        kind: Kind[Pod],
        name: str,
        namespace: str,
        patch: Raw,
        *,
        patch_type: PatchType = STRATEGIC,
        subresource: str = "",
    ) -> Pod:
        """Change parts of an object."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt leaves in the pod's status.

    Attributes:
        reason: `Unschedulable` or `SchedulerError`; empty writes no condition.
        message: The whole message, not cut short.
        nominated_node: The node it is promised, "" to take a promise back, None to leave it as it is.
    """

    reason: str = ""
    message: str = ""
    nominated_node: str | None = None

    def over(self, earlier: "Verdict") -> "Verdict":
        """This verdict; what it leaves open is as an earlier one had it."""
        said = self if self.reason else earlier
        node = earlier.nominated_node if self.nominated_node is None else self.nominated_node
        return Verdict(said.reason, said.message, node)


def status_patch(pod: Pod, verdict: Verdict, now: datetime, *, in_any_case: bool = False) -> Raw | None:
    """The strategic merge patch that writes a verdict; None when the pod says it already.

    Only the one condition is named, so that what others write meanwhile stays.

    Args:
        pod: As it is known.
        verdict: What to write.
        now: Stamps a condition.
        in_any_case: Write it also where the pod says it already: it may not say so any more.
    """
    status: Raw = {}
    condition = _changed_condition(pod, verdict, now, in_any_case)
    if condition is not None:
        types = [each.type for each in pod.status.conditions if each.type != POD_SCHEDULED]
        status["$setElementOrder/conditions"] = [{"type": name} for name in (*types, POD_SCHEDULED)]
        status["conditions"] = [condition]
    node = verdict.nominated_node
    if node is not None and (in_any_case or node != pod.status.nominated_node_name):
        status["nominatedNodeName"] = node or None
    if not status:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _changed_condition(pod: Pod, verdict: Verdict, now: datetime, in_any_case: bool) -> Raw | None:
    if not verdict.reason:
        return None
    old = next((each for each in pod.status.conditions if each.type == POD_SCHEDULED), None)
    generation = pod.metadata.generation
    if old is not None and not in_any_case and _says(old, verdict, generation):
        return None
    since = old.last_transition_time if old is not None and old.status == "False" else now
    condition: Raw = {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": verdict.reason,
        "message": verdict.message,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(since or now),
    }
    if generation:
        condition["observedGeneration"] = generation
    return condition


def _says(old: PodCondition, verdict: Verdict, generation: int) -> bool:
    return (old.status, old.reason, old.message, old.observed_generation) == (
        "False",
        verdict.reason,
        verdict.message,
        generation,
    )


@dataclass(frozen=True, slots=True)
class _Note:
    """What is to be written.

    Attributes:
        pod: As it was known.
        verdict: What to write.
        in_any_case: Whether another note was being written when this one came.
    """

    pod: Pod
    verdict: Verdict
    in_any_case: bool


class StatusWriter:
    """The notes and the tasks that write them.

    Args:
        client: Patches pods.
        clock: Stamps conditions.
        metrics: Counts what was given up.
        max_waiting: From how many waiting notes on the oldest is given up.
    """

    def __init__(
        self, client: PatchingClient, clock: Clock, metrics: SchedulerMetrics, max_waiting: int = _MAX_WAITING
    ) -> None:
        self._client, self._clock, self._metrics, self._max = client, clock, metrics, max_waiting
        self._notes: OrderedDict[str, _Note] = OrderedDict()
        self._wake = asyncio.Event()
        self._writing: dict[str, Verdict] = {}
        self._ending: dict[str, asyncio.Event] = {}
        metrics.pending_calls[CALL_TYPE] = self.__len__

    def __len__(self) -> int:
        """How many notes wait or are being written."""
        return len(self._notes) + len(self._writing)

    def submit(self, pod: Pod, verdict: Verdict) -> None:
        """Leave a note. Never waits; costs nothing when the pod's status says it already."""
        uid = pod.metadata.uid
        under_way, noted = self._writing.get(uid), self._notes.pop(uid, None)
        before = noted.verdict if noted is not None else under_way
        if before is not None:
            verdict = verdict.over(before)
        unsure = under_way is not None or (noted is not None and noted.in_any_case)
        if verdict == under_way or (not unsure and status_patch(pod, verdict, self._clock.now()) is None):
            return
        self._notes[uid] = _Note(pod, verdict, unsure)
        if len(self._notes) > self._max:
            self._notes.popitem(last=False)
            self._metrics.count("dropped_writes_total", "condition")
        self._wake.set()

    async def end(self, uid: str) -> None:
        """Say no more about a pod that is about to be bound: a late refusal would stay in a bound pod's status.

        What waits is dropped; what is being written is waited for, and not tried again.
        """
        self._notes.pop(uid, None)
        if uid in self._writing:
            await self._ending.setdefault(uid, asyncio.Event()).wait()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        """Write note after note; the notes of one pod one after the other, so that the latest word stays."""
        while True:
            while (uid := self._next()) is None:
                self._wake.clear()
                await self._wake.wait()
            note = self._notes.pop(uid)
            self._writing[uid] = note.verdict
            try:
                await self._write(note)
            finally:
                del self._writing[uid]
                self._wake.set()
                if (ending := self._ending.pop(uid, None)) is not None:
                    ending.set()

    def _next(self) -> str | None:
        return next((uid for uid in self._notes if uid not in self._writing), None)

    async def _write(self, note: _Note) -> None:
        pod = note.pod
        patch = status_patch(pod, note.verdict, self._clock.now(), in_any_case=note.in_any_case)
        for attempt in range(_TRIES if patch is not None else 0):
            start, ok = self._clock.monotonic(), False
            try:
                await self._client.patch(
                    PODS, pod.name, pod.namespace, patch or {}, patch_type=STRATEGIC, subresource="status"
                )
                ok = True
            except ApiError as error:
                _log.info("pod status not written", extra={"pod": pod.key, "error": str(error)})
                return
            except Unreachable as error:
                _log.debug("pod status not written yet", extra={"pod": pod.key, "error": str(error)})
                uid = pod.metadata.uid
                if uid in self._notes or uid in self._ending:  # there is something newer to say, or nothing any more
                    return
                await asyncio.sleep(_FIRST_WAIT_SECONDS * 5**attempt)
            else:
                return
            finally:
                self._metrics.called(CALL_TYPE, ok, self._clock.monotonic() - start)
