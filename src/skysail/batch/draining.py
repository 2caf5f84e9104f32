"""Queues that are closing (`stopPolicy: HoldAndDrain`) are emptied: their running pods leave, for nobody.

The one eviction without a claim: it is the administrator who asks. A budget that refuses is asked again later; critical
pods stay.
"""

from skysail.batch.model.job import TaskState
from skysail.batch.plugins.conformance import is_critical
from skysail.batch.session import Session


def drain(session: Session) -> None:
    """Let all leave that are in a closing queue, or below one.

    Cost: Nothing while no queue is closing; then grows with jobs.
    """
    world = session.world
    closing = {name for name, queue in world.tree.items() if any(each.spec.state == "Closing" for each in queue.path)}
    for job in list(world.jobs.values()) if closing else ():
        if job.queue not in closing:
            continue
        nodes = [] if job.claim is None else list(job.claim.placement.values())
        world.end_claim(job)
        session.nodes.refresh(nodes)
        for task in job.in_state(TaskState.BOUND):
            if task.uid in world.evicting or world.is_protected(task) or is_critical(task):
                continue
            world.evicting.add(task.uid)
            world.move(task, TaskState.RELEASING, task.node)
            session.effects.drained.append(task)
            session.note("drain", task.uid)
