"""A pod together with what the scheduling queue remembers about it."""

from dataclasses import dataclass, field

from skysail.api.core import Pod
from skysail.scheduler.framework.events import ClusterEvent

DEFAULT_SCHEDULER_NAME = "default-scheduler"

PodKey = tuple[str, str]
"""Namespace and name: how the queue finds a pod."""


def pod_key(pod: Pod) -> PodKey:
    """The pod's key in the queue."""
    return pod.metadata.namespace, pod.metadata.name


def scheduler_name(pod: Pod) -> str:
    """Whose pod it is; an empty name (an object that was never defaulted) means `default-scheduler`."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """What `QueueSort` compares and the queue moves about; owned by the queue, or by the cycle while in flight.

    All times are seconds on the clock that drives the queue.

    Attributes:
        pod: The latest known object.
        timestamp: When it entered the queue, or came back from its last attempt.
        attempts: How often it was popped.
        unschedulable_count: Attempts that ended in a refusal; drives the backoff.
        consecutive_errors_count: Attempts in a row that ended in an error; drives the backoff instead while above 0.
        initial_attempt_timestamp: When it first got into the active queue; never changed after, the start of the SLI.
        unschedulable_plugins: Who refused it in the last attempt, or gates it now.
        pending_plugins: Who answered `Pending`: an event they like sends the pod back at once, past its backoff.
        gating_plugin: The PreEnqueue plugin that holds it back; empty when none does.
        gating_message: Why, in the plugin's words.
        gating_plugin_events: What the gating plugin registered for: no other event needs to be looked at.
        backoff_expiration: When its backoff ends, once computed.
        was_flushed_from_unschedulable: It was let go by the time-out, not by an event: a hint may be missing.
        sequence: Order of entry among the sleeping, so that wake-ups happen in a repeatable order.
    """

    pod: Pod
    timestamp: float
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gating_message: str = ""
    gating_plugin_events: tuple[ClusterEvent, ...] = ()
    backoff_expiration: float | None = None
    was_flushed_from_unschedulable: bool = False
    sequence: int = 0

    @property
    def key(self) -> PodKey:
        """Namespace and name."""
        return self.pod.metadata.namespace, self.pod.metadata.name

    @property
    def gated(self) -> bool:
        """Whether a PreEnqueue plugin holds it back."""
        return self.gating_plugin != ""

    @property
    def rejectors(self) -> set[str]:
        """Every plugin that stands in its way, whichever way it said so."""
        return self.unschedulable_plugins | self.pending_plugins

    def clear_rejectors(self) -> None:
        """Forget who refused it: a new attempt starts."""
        self.unschedulable_plugins = set()
        self.pending_plugins = set()
        self.gating_plugin = self.gating_message = ""
        self.gating_plugin_events = ()
