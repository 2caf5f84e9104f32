"""A world that is the same and independent: what-ifs run the production code on it and write nothing."""

from dataclasses import replace

from skysail.batch.model.job import Job, TaskState
from skysail.batch.slot_room import is_room
from skysail.batch.world import World


def copy_world(world: World) -> World:
    """The same nodes, queues, jobs, promises and sleepers; API objects, being frozen, are shared.

    Cost: Grows with pods and nodes; meant for a question, not for every cycle.
    """
    copy = World(scheduler_name=world.scheduler_name, membership=world.membership, seed=world.seed)
    copy.now, copy.handle = world.now, world.handle
    copy.set_flavors(world.flavors.specs())
    for node in world.nodes():
        copy.set_node(node)
    for queue in world.queue_specs.values():
        copy.set_queue(queue)
    for line in world.job_queues.values():
        copy.set_job_queue(line)
    for job in world.jobs.values():
        if job.spec is not None and not job.is_lone and not job.spec.bundle_members:
            copy.set_group(job.spec)
    for state in world.cache.pods():
        if state.info.key not in world.tasks and not is_room(state.info.key):
            copy.set_pod(state.info.pod)
    for task in world.tasks.values():
        copy.set_pod(task.pod)
    for quota in world.quotas.values():
        # Where its slots are, and who sits there, the world knows better.
        copy.set_quota(replace(quota, node={}, released={}))
    for key, job in world.jobs.items():
        _copy_job(copy, job, copy.jobs[key])
    _copy_rest(world, copy)
    return copy


def _copy_job(copy: World, job: Job, twin: Job) -> None:
    for uid, task in job.tasks.items():
        other = copy.tasks[uid]
        if task.state in (TaskState.BINDING, TaskState.CLAIMED) and other.state is TaskState.PENDING:
            copy.assume(other, task.node)
            copy.move(other, task.state, task.node)
        elif task.state is not other.state:
            copy.move(other, task.state, task.node)
        other.started = task.started
    twin.claim, twin.outcome = job.claim, job.outcome
    twin.first_seen, twin.passed_over, twin.attempts = job.first_seen, job.passed_over, job.attempts
    twin.was_ready, twin.admitted = job.was_ready, job.admitted


def _copy_rest(world: World, copy: World) -> None:
    for slot in world.slots.values():
        twin = copy.slots[slot.key]
        twin.spec = slot.spec
        if slot.node:
            copy.bind_slot(twin, slot.node, charge_anyway=True)
        for uid in slot.holders:
            copy.seat(copy.tasks[uid], twin)
        twin.phase, twin.reason = slot.phase, slot.reason
        twin.was_used, twin.idle_since, twin.bound_at = slot.was_used, slot.idle_since, slot.bound_at
    copy.quotas, copy.claims = dict(world.quotas), dict(world.claims)
    copy.claims_made = world.claims_made
    copy.heads = {name: dict(heads) for name, heads in world.heads.items()}
    copy.evicting, copy.shares, copy.borrowers = set(world.evicting), world.shares, world.borrowers
    copy.distrust = dict(world.distrust)
    for key in world.jobs:
        if key in world.sleepers.awake:
            continue
        events = world.sleepers.events_of(key)
        if events:
            copy.sleepers.sleep(key, events, world.sleepers.moment_of(key))
        else:
            copy.sleepers.drop(key)
    copy.sleepers.awake = dict(world.sleepers.awake)
