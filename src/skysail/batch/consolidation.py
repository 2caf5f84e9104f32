"""One large hole out of several small ones: a few running pods move so that a starving job can be placed.

Looks at one node after another, those that need the fewest moves first: with some of its pods gone the whole minimum
must be placed, and every pod that left must find a place beside it, all in one simulation. Then the job gets a claim,
as after any eviction; the pods that left come back as their controllers make them again.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.rows import capacity, fitting, ranked
from skysail.batch.session import Session
from skysail.batch.victims import Tier, Unit, running_jobs
from skysail.scheduler.cache.pod_info import PodInfo


def units_to_move(session: Session, job: Job, need: Task) -> Iterator[list[Unit]]:
    """Sets of pods whose leaving would make room for one more of the job's tasks on some node, cheapest first."""
    allowed = {task.uid for task in session.victims(_running(session, job))}
    sets: list[tuple[int, int, str, list[Unit]]] = []
    for row, info in enumerate(session.nodes.table.infos[: session.nodes.table.size]):
        if info is None or not info.exists:
            continue
        tasks = [session.world.tasks[uid] for uid in info.pods if uid in allowed]
        leaving = _fewest(session, row, tasks, need)
        if leaving is not None and 0 < len(leaving) <= session.max_moves:
            units = [Unit(task.job, (task,), Tier.OWN, whole=False) for task in leaving]
            sets.append((len(leaving), sum(task.priority for task in leaving), info.name, units))
    sets.sort(key=lambda each: each[:3])
    return (units for *_, units in sets)


def _running(session: Session, job: Job) -> list[Task]:
    return [
        task
        for other in running_jobs(session)
        if other is not job and other.priority <= job.priority
        for task in other.in_state(TaskState.BOUND)
    ]


def _fewest(session: Session, row: int, tasks: Sequence[Task], need: Task) -> list[Task] | None:
    """The fewest of these tasks without which the row holds one more; None when all of them are not enough."""
    amounts = session.nodes.table.amounts
    short = {
        resource: amount - int(amounts.free[amounts.line(resource)][row])
        for resource, amount in need.request.items()
        if amount > int(amounts.free[amounts.line(resource)][row])
    }
    leaving: list[Task] = []
    for task in sorted(tasks, key=lambda task: (-sum(task.request.get(name, 0) for name in short), task.uid)):
        if not short:
            break
        if any(task.request.get(name) for name in short):
            leaving.append(task)
            left = {name: amount - task.request.get(name, 0) for name, amount in short.items()}
            short = {name: amount for name, amount in left.items() if amount > 0}
    return None if short else leaving


def _made_again(task: Task) -> Task:
    """The task as its controller will make it again: on no node yet."""
    pod = task.pod
    unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    return Task(PodInfo(unbound), task.job, task.membership)


def all_find_places(session: Session, units: Sequence[Unit]) -> bool:
    """Whether pods that left find places in the session as it stands; nothing stays changed."""
    before = []
    try:
        for task in (_made_again(task) for unit in units for task in unit.tasks):
            counts = capacity(session, task, fitting(session, task))
            rows = ranked(session, task, np.minimum(counts, 1))
            if not len(rows):
                return False
            before.append(session.nodes.add(session.nodes.table.names[int(rows[0])], [task.info]))
        return True
    finally:
        for account in reversed(before):
            session.nodes.restore(account)
