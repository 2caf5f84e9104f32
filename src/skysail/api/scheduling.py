"""Priority classes and pod groups."""

from skysail.api.meta import ApiObject, Condition, Struct


class PriorityClass(ApiObject, frozen=True, gc=False):
    """A named priority."""

    description: str = ""
    global_default: bool = False
    preemption_policy: str | None = None
    value: int = 0


class BasicSchedulingPolicy(Struct, frozen=True, gc=False):
    """The pods of the group are scheduled one by one."""


class GangSchedulingPolicy(Struct, frozen=True, gc=False):
    """The pods of the group are scheduled together, or not at all."""

    min_count: int = 0


class PodGroupSchedulingPolicy(Struct, frozen=True, gc=False):
    """How the group is scheduled: exactly one of the two."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class PodGroupSpec(Struct, frozen=True, gc=False):
    """What is wanted of the group."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()


class PodGroupStatus(Struct, frozen=True, gc=False):
    """What became of the group."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(ApiObject, frozen=True, gc=False):
    """Pods that belong together for scheduling (alpha)."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
