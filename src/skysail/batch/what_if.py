"""What would happen if these pods were submitted? The production code, on a copy, writing nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from skysail.api.core import Pod
from skysail.batch.copying import copy_world
from skysail.batch.cycle import run_once
from skysail.batch.model.job import TaskState
from skysail.batch.model.outcome import Outcome
from skysail.batch.model.specs import PodGroupSpec
from skysail.batch.session import Configuration
from skysail.batch.world import World


@dataclass(frozen=True, slots=True)
class Simulation:
    """The answer.

    Attributes:
        fits: Whether the job's minimum would be placed, at once or after evictions.
        placement: Node by pod name, promised ones included.
        victims: `namespace/name` of pods that would be evicted.
        outcome: Why it would wait, when it would.
        largest: For a refused gang of equal pods: the largest one that would be taken; None when that was not asked.
    """

    fits: bool
    placement: Mapping[str, str] = field(default_factory=dict)
    victims: tuple[str, ...] = ()
    outcome: Outcome | None = None
    largest: int | None = None


def simulate(
    world: World,
    configuration: Configuration,
    pods: Sequence[Pod],
    group: PodGroupSpec | None = None,
    *,
    find_largest: bool = True,
) -> Simulation:
    """Submit pods, with their group, to a copy of the world and run one cycle.

    Args:
        world: As it is now; not changed.
        configuration: What runs.
        pods: With uids of their own.
        group: Their group; None for pods that stand alone or name one that exists.
        find_largest: Whether to look for the largest gang that fits when this one does not; a cycle for each step of a
            binary search.
    """
    answer = _try(world, configuration, pods, group)
    if answer.fits or group is None or not find_largest or len(pods) < 2:
        return answer
    low, high = 0, len(pods) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _try(world, configuration, pods[:middle], _smaller(group, middle)).fits:
            low = middle
        else:
            high = middle - 1
    return Simulation(answer.fits, answer.placement, answer.victims, answer.outcome, low)


def _try(world: World, configuration: Configuration, pods: Sequence[Pod], group: PodGroupSpec | None) -> Simulation:
    copy = copy_world(world)
    if group is not None:
        copy.set_group(group)
    for pod in pods:
        copy.set_pod(pod)
    session = run_once(copy, configuration)
    tasks = [copy.tasks[pod.uid] for pod in pods if pod.uid in copy.tasks]
    jobs = list({task.job.key: task.job for task in tasks}.values())
    placed = {task.pod.name: task.node for task in tasks if task.state in (TaskState.BINDING, TaskState.CLAIMED)}
    keys = {job.key for job in jobs}
    victims = tuple(each.task.key for each in session.effects.evictions if each.claim.job in keys)
    fits = bool(jobs) and all(session.is_enough(job) or job.claim is not None for job in jobs)
    outcome = next((job.outcome for job in jobs if job.outcome is not None), None)
    return Simulation(fits, placed, victims, outcome)


def _smaller(group: PodGroupSpec, size: int) -> PodGroupSpec:
    return replace(group, min_member=min(group.min_member, size))
