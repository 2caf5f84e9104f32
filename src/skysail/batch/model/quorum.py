"""When a gang has enough: a predicate over its tree of sub-groups, evaluated on the spec as it is now.

A surplus of one role never stands for another. A role or sub-group that tasks name but the spec does not know counts
towards the total only, and is reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from skysail.batch.model.job import Counts, Job
from skysail.batch.model.specs import PodGroupSpec, SubGroupSpec


@dataclass(frozen=True, slots=True)
class Lack:
    """What is missing.

    Attributes:
        part: `role NAME`, `sub-group NAME`, or empty for the whole.
        have: How many there are.
        need: How many are needed.
    """

    part: str
    have: int
    need: int


def lacks(spec: PodGroupSpec, counts: Counts) -> list[Lack]:
    """What keeps these counts from being enough; empty when they are."""
    found = []
    if counts.total < spec.min_member:
        found.append(Lack("", counts.total, spec.min_member))
    found += [
        Lack(f"role {role}", counts.roles[role], need)
        for role, need in sorted(spec.min_task_member.items())
        if counts.roles[role] < need
    ]
    for group in children_of(spec, ""):
        found += sub_group_lacks(spec, group, counts)
    return found


def is_met(spec: PodGroupSpec, counts: Counts) -> bool:
    """Whether these counts are enough."""
    return not lacks(spec, counts)


def sub_group_lacks(spec: PodGroupSpec, group: SubGroupSpec, counts: Counts) -> list[Lack]:
    """What one sub-group lacks, its children included."""
    children = list(children_of(spec, group.name))
    have = counts.sub_groups[group.name]
    if not children:
        need = group.min_member
        return [Lack(f"sub-group {group.name}", have, need)] if have < need else []
    missing = [sub_group_lacks(spec, child, counts) for child in children]
    met = sum(not each for each in missing)
    needed = len(children) if group.min_sub_groups is None else group.min_sub_groups
    if met >= needed:
        return []
    return [lack for each in missing for lack in each]


def children_of(spec: PodGroupSpec, name: str) -> Iterator[SubGroupSpec]:
    """The sub-groups directly below one, or below the group itself."""
    names = {group.name for group in spec.sub_groups}
    for group in spec.sub_groups:
        parent = group.parent if group.parent in names and group.parent != group.name else ""
        if parent == name:
            yield group


def leaves(spec: PodGroupSpec) -> Iterator[SubGroupSpec]:
    """Sub-groups that have tasks of their own."""
    parents = {group.parent for group in spec.sub_groups}
    return (group for group in spec.sub_groups if group.name not in parents)


def unknown_parts(job: Job) -> list[str]:
    """Roles and sub-groups that tasks name and the spec does not know; they count towards the total only."""
    spec = job.spec
    if spec is None:
        return []
    groups = {group.name for group in spec.sub_groups}
    found = {f"sub-group {task.sub_group}" for task in job.tasks.values() if task.sub_group not in groups | {""}}
    if spec.min_task_member:
        found |= {f"role {task.role}" for task in job.tasks.values() if task.role not in spec.min_task_member}
    return sorted(found)
