"""A pod on its way through a scheduling cycle, with all that its binding cycle needs."""

from dataclasses import dataclass

from skysail.api.core import Pod
from skysail.controller.recorder import EventRecorder
from skysail.scheduler.attempts import Attempt
from skysail.scheduler.binding import BindingRunner
from skysail.scheduler.deciding import Decider
from skysail.scheduler.failure import Failure
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.framework.runner import Framework


@dataclass(frozen=True)
class CycleProfile:
    """What a cycle must know of one profile."""

    framework: Framework
    decider: Decider
    binding: BindingRunner
    recorder: EventRecorder

    @property
    def name(self) -> str:
        """Its scheduler name."""
        return self.framework.scheduler_name


@dataclass(slots=True)
class Flight:
    """A pod that took its node: assumed, not bound yet."""

    profile: CycleProfile
    info: QueuedPodInfo
    state: CycleState
    pod: Pod
    node_name: str
    start: float
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Decided:
    """What the algorithm came to.

    Attributes:
        state: The attempt's memory; None when there was no attempt.
        node_name: The node.
        failure: Why there is none.
    """

    state: CycleState | None = None
    node_name: str = ""
    failure: Failure | None = None
