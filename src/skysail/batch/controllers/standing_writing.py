"""Writes what `standing` says: phases, counts and conditions of gangs, statuses of queues and lines, ours and others'.

The engine writes why a gang waits and what it was promised (`skysail.batch.writing`); those fields are never touched
here. A pass looks at everything once something changed, lets the event loop have its turns, and writes
differences only.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import Kind
from skysail.api.meta import Struct, parse_time
from skysail.api.raw import Raw
from skysail.batch.app import BatchScheduler
from skysail.batch.controllers.standing import (
    group_status,
    job_queue_status,
    jobs_by_queue,
    moment,
    phase_of,
    queue_status,
    quota_status,
)
from skysail.batch.foreign import elastic, kai, koordinator, kueue_status, volcano
from skysail.batch.foreign.registry import (
    CLUSTER_QUEUES,
    ELASTIC_QUOTAS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    VOLCANO_QUEUES,
    RawKind,
)
from skysail.batch.foreign.registry import group_status as foreign_group_status
from skysail.batch.kinds import JOB_QUEUES, QUEUES, QUOTAS, PodGroup
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.kinds.quota import QuotaStatus
from skysail.batch.ledger import Column
from skysail.batch.model.job import Job
from skysail.batch.shares import entitlements_of
from skysail.client.api_client import ApiClient
from skysail.client.codec import merge_difference, to_raw

_log = logging.getLogger(__name__)
ENGINES: Final = ("schedulingConditions", "claim")
"""What of a gang's status the engine writes itself."""
NO_STATUS: Final = PodGroupStatus()
ZONE_LABEL: Final = "zone"
TURN: Final = 100
"""After so many objects the event loop has its turn."""
REST: Final = 4.0
"""How much longer than it took a pass is rested after."""


class StandingWriting:
    """The task that writes statuses.

    Args:
        client: Patches.
        batch: The engine whose world is told of.
        period_seconds: How long changes are gathered.
        per_second: How many writes at most.
    """

    def __init__(
        self, client: ApiClient, batch: BatchScheduler, *, period_seconds: float = 1.0, per_second: float = 200.0
    ) -> None:
        self._client, self._batch = client, batch
        self._period, self._pause = period_seconds, 1.0 / per_second
        self._seen = -1
        self._written: dict[tuple[str, str], Raw] = {}
        """What was written last, by resource and uid: the informer may not show it yet."""
        self._seen_objects: set[tuple[str, str]] = set()
        self.writes = 0

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            changes = self._batch.world.changes
            if self._batch.is_synced and changes != self._seen:
                self._seen = changes
                begun = asyncio.get_running_loop().time()
                await self.write_all()
                await asyncio.sleep((asyncio.get_running_loop().time() - begun) * REST)

    async def write_all(self) -> None:
        """One pass; what was written of objects that it did not come by is forgotten."""
        self._seen_objects.clear()
        await self._write_groups()
        await self._write_queues()
        await self._write_quotas()
        await self._write_reservations()
        await self._write_workloads()
        self._written = {key: status for key, status in self._written.items() if key in self._seen_objects}

    async def _write_groups(self) -> None:
        world, groups = self._batch.world, self._batch.feeding.groups
        for number, (key, (kind, obj)) in enumerate(list(groups.items()), 1):
            job = world.jobs.get(key)
            if job is None:
                continue
            if isinstance(obj, PodGroup):
                status = _raw(group_status(job, obj.status, world.now))
                await self._put(kind, key, obj.uid, _without(_raw(obj.status), ENGINES), _without(status, ENGINES))
            else:
                await self._put_foreign(kind, obj, foreign_group_status(kind, group_status(job, NO_STATUS, world.now)))
            if number % TURN == 0:
                await asyncio.sleep(0)

    async def _write_queues(self) -> None:
        world = self._batch.world
        by_queue, entitlements = jobs_by_queue(world), entitlements_of(world)
        phases = {name: [phase async for phase in _phases(jobs)] for name, jobs in by_queue.items()}
        statuses: dict[str, QueueStatus] = {}
        ours = {queue.name: queue for queue in self._objects(QUEUES)}
        for name, queue in list(world.tree.items()):
            old = ours[name].status if name in ours else QueueStatus()
            problems = self._batch.feeding.problems_of(f"Queue {name}")
            statuses[name] = queue_status(world, queue, phases.get(name, ()), entitlements, old, problems)
        for name, each in ours.items():
            if name in statuses:
                await self._put(QUEUES, name, each.uid, _raw(each.status), _raw(statuses[name]))
        await self._write_foreign_queues(statuses)
        await self._write_lines(by_queue)

    async def _write_foreign_queues(self, statuses: Mapping[str, QueueStatus]) -> None:
        tree, ledger = self._batch.world.tree, self._batch.world.ledger
        for kinds, write in ((VOLCANO_QUEUES, volcano.queue_status), (KAI_QUEUES, kai.queue_status)):
            for kind, raw in self._foreign(kinds):
                if (name := raw["metadata"]["name"]) in statuses:
                    await self._put_foreign(kind, raw, write(statuses[name]))
        for kind, raw in self._foreign(CLUSTER_QUEUES):
            if (name := raw["metadata"]["name"]) in statuses:
                held = dict(ledger.vector(name, Column.HELD))
                old, now = conditions_of(raw), moment(self._batch.world.now)
                wanted = kueue_status.cluster_queue_status(statuses[name], held, tree[name].spec, old, now)
                await self._put_foreign(kind, raw, wanted)
        for kind, raw in self._foreign(ELASTIC_QUOTAS):
            name = _key(raw) if _key(raw) in statuses else raw["metadata"]["name"]
            if name in statuses:
                await self._put_foreign(kind, raw, elastic.quota_status(statuses[name], tree[name].spec))

    async def _write_lines(self, by_queue: Mapping[str, list[Job]]) -> None:
        world = self._batch.world
        by_line: dict[str, list[Job]] = {}
        for jobs in by_queue.values():
            for job in jobs:
                if job.line:
                    by_line.setdefault(job.line, []).append(job)
        for line in self._objects(JOB_QUEUES):
            if line.key in world.job_queues:
                status = job_queue_status(world, line.key, by_line.get(line.key, ()))
                await self._put(JOB_QUEUES, line.key, line.uid, _raw(line.status), _raw(status))
        for kind, raw in self._foreign(LOCAL_QUEUES):
            jobs = by_line.get(_key(raw), [])
            waiting = sum(world.is_waiting(job) for job in jobs)
            running = sum(job.is_running() for job in jobs)
            problem = self._line_problem(_key(raw))
            wanted = kueue_status.local_queue_status(waiting, running, problem, conditions_of(raw), moment(world.now))
            await self._put_foreign(kind, raw, wanted)

    def _line_problem(self, key: str) -> str:
        """Why a line lets nothing out; empty when it does."""
        world = self._batch.world
        line = world.job_queues.get(key)
        if line is None or line.stopped:
            return "is stopped"
        queue = world.tree.get(line.queue)
        if queue is None:
            return f"there is no ClusterQueue {line.queue}"
        return "" if all(each.spec.state == "Open" for each in queue.path) else f"{line.queue} is stopped"

    async def _write_workloads(self) -> None:
        """Kueue's Workloads hear of the gang that their owner's pods, or the pods of their name, are."""
        feeding, world = self._batch.feeding, self._batch.world
        if feeding.workloads is None:
            return
        kind, informer = feeding.workloads
        for raw in informer.lister.list():
            job = next((found for key in workload_jobs(raw) if (found := world.jobs.get(key)) is not None), None)
            if job is not None:
                status = group_status(job, NO_STATUS, world.now)
                wanted = kueue_status.workload_status(
                    status, raw.get("spec") or {}, job.queue, conditions_of(raw), moment(world.now)
                )
                await self._put_foreign(kind, raw, wanted)

    async def _write_reservations(self) -> None:
        feeding, world = self._batch.feeding, self._batch.world
        if not feeding.reservations:
            return
        names = {uid: task.key for uid, task in world.tasks.items()}
        for key, (kind, raw) in list(feeding.reservations.items()):
            slots = feeding.slots_of(key)
            if slots:
                status = quota_status(slots, names, {}, QuotaStatus(bound_time=_bound_time(raw)), world.now)
                size = {name: kueue_status.quantity(name, amount) for name, amount in slots[0].size.items()}
                await self._put_foreign(kind, raw, koordinator.reservation_status(status, size))

    async def _write_quotas(self) -> None:
        feeding, world = self._batch.feeding, self._batch.world
        if not feeding.quotas:
            return
        names = {uid: task.key for uid, task in world.tasks.items()}
        zones = {node.name: node.metadata.labels.get(ZONE_LABEL, "") for node in world.nodes()}
        for key, quota in list(feeding.quotas.items()):
            status = quota_status(feeding.slots_of(key), names, zones, quota.status, world.now)
            await self._put(QUOTAS, key, quota.uid, _raw(quota.status), _raw(status))

    def _objects(self, kind: Kind[Any]) -> tuple[Any, ...]:
        informer = self._batch.feeding.queue_informers.get(kind.resource)
        return tuple(informer.lister.list()) if informer is not None else ()

    def _foreign(self, kinds: tuple[RawKind, ...]) -> Iterator[tuple[RawKind, Raw]]:
        """All objects of a foreign kind, with the version that is watched."""
        for resource in dict.fromkeys(kind.resource for kind in kinds):
            watched = self._batch.feeding.queue_kinds.get(resource)
            if watched is not None:
                yield from ((watched, raw) for raw in self._objects(watched))

    async def _put_foreign(self, kind: Kind[Any], raw: Raw, wanted: Raw) -> None:
        """Of another system's status only the fields we have a word for are written."""
        old = raw.get("status") or {}
        uid = str(raw["metadata"].get("uid", ""))
        await self._put(kind, _key(raw), uid, {name: old[name] for name in wanted if name in old}, wanted)

    async def _put(self, kind: Kind[Any], key: str, uid: str, old: Raw, wanted: Raw) -> None:
        """Write the difference, unless it was the last one written (the informer may not show it yet)."""
        difference, about = merge_difference(old, wanted), (kind.resource, uid)
        self._seen_objects.add(about)
        if not difference or self._written.get(about) == wanted:
            return
        namespace, _, name = key.rpartition("/")
        try:
            await self._client.patch(kind, name, namespace, {"status": difference}, subresource="status")
        except ApiError as error:
            _log.info("status not written", extra={"object": key, "error": str(error)})
            return
        except Unreachable as error:
            _log.info("status not written yet", extra={"object": key, "error": str(error)})
            self._seen = -1
            return
        self.writes += 1
        self._written[about] = wanted
        await asyncio.sleep(self._pause)


async def _phases(jobs: list[Job]) -> AsyncIterator[str]:
    """Each job's phase, with turns for the event loop between."""
    for number, job in enumerate(jobs, 1):
        yield phase_of(job)
        if number % TURN == 0:
            await asyncio.sleep(0)


def _raw(status: Struct) -> Raw:
    found: Raw = to_raw(status)
    return found


def _key(raw: Raw) -> str:
    metadata = raw["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _without(raw: Raw, fields: tuple[str, ...]) -> Raw:
    return {name: value for name, value in raw.items() if name not in fields}


def conditions_of(raw: Raw) -> list[Raw]:
    """The conditions an object has."""
    return list((raw.get("status") or {}).get("conditions") or ())


def _bound_time(raw: Raw) -> datetime | None:
    """When a Reservation was bound, as its conditions say."""
    for each in conditions_of(raw):
        if each.get("type") == "Scheduled" and each.get("lastTransitionTime"):
            return parse_time(str(each["lastTransitionTime"]))
    return None


def workload_jobs(raw: Raw) -> list[str]:
    """Keys of the gangs a Workload may be about: its owner's, or the one of its name (Kueue's pod groups)."""
    metadata = raw["metadata"]
    namespace = metadata.get("namespace", "")
    owners = metadata.get("ownerReferences") or ()
    return [
        *(f"{namespace}/{owner['kind'].lower()}-{owner['name']}" for owner in owners),
        f"{namespace}/{metadata['name']}",
    ]
