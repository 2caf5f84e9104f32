"""What would help a job that waits: sentences an on-call engineer can act on. Pure.

Each follows from the outcome's code and from what the cluster, its queues and its nodes could ever hold; what was
misspelt is guessed from what exists.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from skysail.batch.controllers import grouping
from skysail.batch.foreign import pods as words
from skysail.batch.membership import JOB_QUEUE, POD_GROUP, PREEMPTIBLE, QUEUE, ROLE, SLA_WORDS, SUB_GROUP
from skysail.batch.model.job import Job, Task
from skysail.batch.model.outcome import OutcomeCode
from skysail.batch.model.resources import PODS, amount_text
from skysail.batch.reasons import most_ever
from skysail.batch.session import Session
from skysail.batch.world import World

_KNOWN: Final = frozenset(
    (
        POD_GROUP, ROLE, SUB_GROUP, QUEUE, JOB_QUEUE, PREEMPTIBLE, *SLA_WORDS, *words.PROTECTION_WORDS,
        *words.GROUP_WORDS, *words.QUEUE_WORDS, *words.LINE_WORDS, *words.ROLE_WORDS, *words.SUB_GROUP_WORDS,
        *words.PREEMPTIBLE_WORDS, *words.WITHOUT_EFFECT, *grouping.MIN_MEMBER_WORDS, grouping.BUNDLE,
        *grouping.REQUIRED_WORDS, *grouping.PREFERRED_WORDS, grouping.KUEUE_PRIORITY,
        *(f"{words.GANG}{each}" for each in ("name", "min-available", "groups", "match-policy", "waiting-time",
                                             "network-topology-spec")),
    )
)  # fmt: skip
"""The words that pods may use; a word much like one of them, and unknown, is likely to be meant as that."""


def helps(session: Session, job: Job) -> tuple[str, ...]:
    """What would help, most certain first; empty for a job that does not wait."""
    outcome = job.outcome
    if outcome is None:
        return ()
    found = list(misspelt_words(job))
    advise = _ADVICE.get(_code_of(job))
    if advise is not None:
        found += advise(session, job, outcome.numbers)
    return tuple(found)


def misspelt_words(job: Job) -> Iterable[str]:
    """Labels and annotations nobody knows that look like ones that would count."""
    seen = set()
    for task in job.tasks.values():
        metadata = task.pod.metadata
        for kind, keys in (("label", metadata.labels), ("annotation", metadata.annotations)):
            for key in keys:
                if key not in seen and key not in _KNOWN and "/" in key:
                    seen.add(key)
                    for close in get_close_matches(key, _KNOWN, 1, 0.9):
                        yield f"{kind} {key} is not known: {close} may be meant"


def _code_of(job: Job) -> str:
    """The code, or the one behind it where the outcome says that, too."""
    assert job.outcome is not None
    return str(job.outcome.numbers.get("code", job.outcome.code.value))


def _queue_missing(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    name = str(numbers.get("queue", job.queue))
    names = list(session.world.tree)
    close = get_close_matches(name, names, 1)
    return [f"there is a queue {close[0]}" if close else f"there are queues {', '.join(sorted(names)[:5])}"]


def _group_missing(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    namespace, _, name = job.key.rpartition("/")
    others = [other.spec for other in session.world.jobs.values() if other.spec is not None and not other.is_lone]
    close = get_close_matches(name, [spec.name for spec in others if spec.namespace == namespace], 1, 0.7)
    return (
        [f"there is a PodGroup {namespace}/{close[0]}"]
        if close
        else ["make the PodGroup, or take the word off the pods"]
    )


def _members_missing(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    missing = job.min_member - len(job.tasks)
    if missing <= 0:
        return []
    return [f"{missing} more pods must be made, or minMember be lowered to {len(job.tasks)}"]


def _exceeds(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    queue, resource = str(numbers.get("queue", "")), str(numbers.get("resource", ""))
    ask, limit = numbers.get("ask", 0), numbers.get("limit", 0)
    if not isinstance(ask, int) or not isinstance(limit, int) or not resource:
        return []
    found = [f"queue {queue} must be allowed {amount_text(resource, ask)} {resource} or more (capability)"]
    each = max((task.request.get(resource, 0) for task in job.tasks.values()), default=0)
    if each and limit // each:
        found.append(f"a minimum of {limit // each} would be within what it may hold")
    return found


def _quota(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    queue, resource = str(numbers.get("queue", "")), str(numbers.get("resource", ""))
    ask, limit, used = numbers.get("ask", 0), numbers.get("limit", 0), numbers.get("used", 0)
    if not isinstance(ask, int) or not isinstance(limit, int) or not isinstance(used, int):
        return []
    short = amount_text(resource, used + ask - limit)
    held = sorted(
        other.name
        for other in session.world.jobs.values()
        if other.is_running() and _is_in(session.world, other, queue)
    )
    holders = f" (held by {', '.join(held[:3])}{f' and {len(held) - 3} more' if len(held) > 3 else ''})" if held else ""
    return [
        f"{short} {resource} less in use in queue {queue}{holders}",
        f"or a capability of {amount_text(resource, used + ask)} {resource} for it",
    ]


def _is_in(world: World, job: Job, queue: str) -> bool:
    return any(each.name == queue for each in world.path_of(job.queue))


def _no_room(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    kinds: dict[object, list[Task]] = {}
    for task in job.tasks.values():
        kinds.setdefault((task.role, tuple(sorted(task.request.items()))), []).append(task)
    found = []
    for tasks in kinds.values():
        task, need = tasks[0], min(len(tasks), max(1, job.min_member))
        ever = most_ever(session, task)
        if ever == 0:
            found.append(f"no node could hold {task.key} even empty: it needs {_wants(task)}")
        elif ever < need:
            found.append(
                f"empty, all nodes would hold {ever} of {need} such pods: nodes for {need - ever} more are needed"
            )
    return found or ["nodes could hold it once others end, or with more nodes"]


def _wants(task: Task) -> str:
    asks = [f"{amount_text(name, amount)} {name}" for name, amount in task.request.items() if name != PODS]
    asks += [f"label {key}={text}" for key, text in sorted(task.pod.spec.node_selector.items())]
    return ", ".join(asks)


def _closed(session: Session, job: Job, numbers: Mapping[str, int | str]) -> list[str]:
    closed = [each.name for each in session.world.path_of(job.queue) if each.spec.state != "Open"]
    return [f"queue {name} must be opened" for name in closed]


_ADVICE: Final = {
    OutcomeCode.QUEUE_MISSING.value: _queue_missing,
    OutcomeCode.POD_GROUP_MISSING.value: _group_missing,
    OutcomeCode.MEMBERS_MISSING.value: _members_missing,
    OutcomeCode.EXCEEDS_MAX.value: _exceeds,
    OutcomeCode.QUOTA_EXCEEDED.value: _quota,
    OutcomeCode.NOT_ENOUGH.value: _no_room,
    OutcomeCode.NO_NODE.value: _no_room,
    OutcomeCode.QUEUE_CLOSED.value: _closed,
}
