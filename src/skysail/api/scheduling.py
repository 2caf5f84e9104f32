"""Priority classes."""

from skysail.api.meta import ApiObject


class PriorityClass(ApiObject, frozen=True, gc=False):
    """A named priority."""

    description: str = ""
    global_default: bool = False
    preemption_policy: str | None = None
    value: int = 0
