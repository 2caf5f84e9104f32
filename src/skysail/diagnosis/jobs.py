"""Why does a job wait? One cycle of the production engine on a copy of what is, and what it found out about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from skysail.batch.config import default_configuration
from skysail.batch.controllers.owners import top_owner
from skysail.batch.cycle import run_once
from skysail.batch.ledger import Column
from skysail.batch.model.job import Job, TaskState, lone_key
from skysail.batch.model.quorum import lacks, unknown_parts
from skysail.batch.model.resources import ANY
from skysail.batch.session import Configuration, Session
from skysail.batch.world import World
from skysail.diagnosis.advice import helps, misspelt_words
from skysail.diagnosis.snapshot import Snapshot, picture


@dataclass(frozen=True)
class QueueStanding:
    """One queue of the job's path, leaf first.

    Attributes:
        name: The queue.
        held: What it holds, by resource.
        claimed: What was promised to it.
        entitlement: What it may hold.
        limit: The most it may hold; a resource without a limit is not named.
    """

    name: str
    held: Mapping[str, int] = field(default_factory=dict)
    claimed: Mapping[str, int] = field(default_factory=dict)
    entitlement: Mapping[str, int] = field(default_factory=dict)
    limit: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobDiagnosis:
    """The answer.

    Attributes:
        name: `namespace/name` of the job.
        code: What stands in the way; empty when nothing does.
        message: In words.
        numbers: Key figures.
        since: Seconds since 1970.
        next_events: What may change it.
        nodes: How many nodes gave which reason.
        members: How many pods are in which state.
        min_member: How many are needed.
        missing: Parts of the gang that lack members.
        placement: Where the next cycle would put its pods.
        victims: Whom that would evict.
        queues: Its queue and those above.
        ahead: Waiting jobs before it in its queue.
        problems: What is wrong with objects, in words.
        helps: What would help, in words, most certain first.
    """

    name: str
    code: str = ""
    message: str = ""
    numbers: Mapping[str, int | str] = field(default_factory=dict)
    since: float = 0.0
    next_events: tuple[str, ...] = ()
    nodes: Mapping[str, int] = field(default_factory=dict)
    members: Mapping[str, int] = field(default_factory=dict)
    min_member: int = 0
    missing: tuple[str, ...] = ()
    placement: Mapping[str, str] = field(default_factory=dict)
    victims: tuple[str, ...] = ()
    queues: tuple[QueueStanding, ...] = ()
    ahead: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


def why_job(snapshot: Snapshot, job: str, configuration: Configuration | None = None) -> JobDiagnosis | None:
    """Why a job waits, or that it does not.

    Args:
        snapshot: What is looked at.
        job: `namespace/name` of a gang, of an object whose pods are one (`Kind/namespace/name` tells two apart), or of
            a pod.
        configuration: The engine's; the default one when None.

    Returns:
        The answer; None when there is no such job.
    """
    pictured = picture(snapshot)
    world = pictured.world
    found = find_job(world, job)
    if found is None:
        return None
    ahead = _ahead(world, found)
    before = {name: _standing(world, name) for name in (queue.name for queue in world.path_of(found.queue))}
    session = run_once(world, configuration or default_configuration())
    problems = tuple(f"{each.about}: {each.message}" for each in pictured.problems)
    return _diagnosis(session, found, before, ahead, problems)


def find_job(world: World, name: str) -> Job | None:
    """A job by its own name, or that of its owner or pod."""
    kind, _, rest = name.partition("/")
    if "/" in rest:
        wanted = rest
        owned = [job for job in world.jobs.values() if job.spec is not None and job.spec.owner.lower() == name.lower()]
    else:
        kind, wanted = "", name
        owned = []
    namespace, _, short = wanted.partition("/")
    if kind.lower() in ("", "podgroup") and wanted in world.jobs:
        return world.jobs[wanted]
    if kind.lower() in ("", "pod"):
        for job in world.jobs.values():
            if job.key == f"pod:{wanted}" or any(lone_key(task.pod) == f"pod:{wanted}" for task in job.tasks.values()):
                return job
    implied = f"{namespace}/{kind.lower()}-{short}" if kind else ""
    if implied in world.jobs:
        return world.jobs[implied]
    owned = owned or [
        job
        for _, job in sorted(world.jobs.items())
        if not kind
        and (
            (job.spec is not None and job.spec.owner.partition("/")[2] == wanted)
            or (job.key.startswith(f"{namespace}/") and job.key.partition("-")[2] == short)
        )
    ]
    return owned[0] if owned else _by_pods_owner(world, kind, namespace, short)


def _by_pods_owner(world: World, kind: str, namespace: str, name: str) -> Job | None:
    """The job of pods that such an object owns, whatever gang they name."""
    for _, job in sorted(world.jobs.items()):
        for task in job.tasks.values():
            owner = top_owner(task.pod) if task.pod.namespace == namespace else None
            if owner is not None and owner.name == name and kind.lower() in ("", owner.kind.lower()):
                return job
    return None


def _ahead(world: World, job: Job) -> tuple[str, ...]:
    before = [
        other
        for other in world.jobs.values()
        if other is not job
        and other.queue == job.queue
        and world.is_waiting(other)
        and (-other.priority, other.created, other.uid) < (-job.priority, job.created, job.uid)
    ]
    return tuple(each.name for each in sorted(before, key=lambda each: (-each.priority, each.created, each.uid)))


def _standing(world: World, name: str) -> QueueStanding:
    held, claimed = world.ledger.vector(name, Column.HELD), world.ledger.vector(name, Column.CLAIMED)
    figures = world.tree[name].spec.figures
    limit: dict[str, int] = {}
    for (_, resource), each in figures.items():
        if each.capability is not None:
            limit[resource] = limit.get(resource, 0) + each.capability
    return QueueStanding(
        name,
        {resource: amount for (flavor, resource), amount in sorted(held.items()) if flavor == ANY},
        {resource: amount for (flavor, resource), amount in sorted(claimed.items()) if flavor == ANY},
        limit=dict(sorted(limit.items())),
    )


def _entitled(session: Session, standing: QueueStanding) -> QueueStanding:
    shares: dict[str, int] = {}
    for (_, resource), amount in session.entitlements.shares.get(standing.name, {}).items():
        shares[resource] = shares.get(resource, 0) + amount
    return QueueStanding(standing.name, standing.held, standing.claimed, dict(sorted(shares.items())), standing.limit)


def _diagnosis(
    session: Session,
    job: Job,
    before: Mapping[str, QueueStanding],
    ahead: tuple[str, ...],
    problems: tuple[str, ...],
) -> JobDiagnosis:
    states: dict[str, int] = {}
    for task in job.tasks.values():
        states[task.state.name.capitalize()] = states.get(task.state.name.capitalize(), 0) + 1
    placement = {
        task.pod.name: task.node
        for task in job.tasks.values()
        if task.state in (TaskState.BINDING, TaskState.CLAIMED) and task.node
    }
    victims = tuple(each.task.key for each in session.effects.evictions if each.claim.job == job.key)
    missing = (
        []
        if job.spec is None
        else [f"{each.part}: {each.have} of {each.need}" for each in lacks(job.spec, job.counts()) if each.part]
    )
    outcome = job.outcome
    nodes = outcome.detail.get("nodes", {}) if outcome is not None else {}
    return JobDiagnosis(
        name=job.name,
        code=outcome.code.value if outcome is not None else "",
        message=outcome.message if outcome is not None else _fine(session.world, job, placement),
        numbers=dict(outcome.numbers) if outcome is not None else {},
        since=outcome.since if outcome is not None else 0.0,
        next_events=outcome.next_events if outcome is not None else (),
        nodes={str(reason): int(count) for reason, count in nodes.items()} if isinstance(nodes, Mapping) else {},
        members=dict(sorted(states.items())),
        min_member=job.min_member,
        missing=(*missing, *(f"{part} is not known to its spec" for part in unknown_parts(job))),
        placement=placement,
        victims=victims,
        queues=tuple(_entitled(session, each) for each in before.values()),
        ahead=ahead,
        problems=problems,
        helps=helps(session, job) if outcome is not None else tuple(misspelt_words(job)),
    )


def _fine(world: World, job: Job, placement: Mapping[str, str]) -> str:
    if placement:
        return f"the next cycle places {len(placement)} of its pods"
    return "does not wait" if not world.is_waiting(job) else "was not decided on in this cycle"
