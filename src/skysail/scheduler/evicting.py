"""Puts the evictor into the scheduler around it: who is current, who is told, who waits for the evictions."""

from collections.abc import Callable, Iterable

from skysail.api.core import Pod
from skysail.api.ports import Clock
from skysail.client.api_client import ApiClient
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.preemption.default_preemption import DefaultPreemption
from skysail.scheduler.preemption.evictor import Evictor, Surroundings
from skysail.scheduler.profiles import Profile
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.recorders import Recorders
from skysail.scheduler.status_writer import StatusWriter, Verdict
from skysail.scheduler.waiting_pods import WaitingPods


def make_evictor(
    client: ApiClient,
    clock: Clock,
    profiles: Iterable[Profile],
    *,
    queue: SchedulingQueue,
    waiting: WaitingPods,
    recorders: Recorders,
    writer: StatusWriter,
    metrics: SchedulerMetrics,
    current: Callable[[Pod], Pod | None],
    activate: Callable[[Iterable[Pod]], None],
) -> Evictor:
    """An evictor, known to the DefaultPreemption of every profile."""

    def preempt_waiting(uid: str) -> bool:
        held = waiting.get(uid)
        return held is not None and held.preempt(DefaultPreemption.name, "preempted")

    def tell(profile: str, victim: Pod, message: str) -> None:
        recorders.of_profile(profile).event(victim, "Normal", "Preempted", message, action="Preempting")

    def clear_nomination(pod: Pod) -> None:
        queue.nominator.add(pod, "")
        writer.submit(pod, Verdict(nominated_node=""))

    around = Surroundings(
        current=current, activate=activate, preempt_waiting=preempt_waiting, tell=tell, done=metrics.evicted,
        nominated_to=queue.nominator.pods_for_node,
        clear_nomination=clear_nomination,
    )  # fmt: skip
    evictor = Evictor(client, clock, around)
    for profile in profiles:
        plugin = profile.framework.plugins.get(DefaultPreemption.name)
        if isinstance(plugin, DefaultPreemption):
            plugin.is_preempting, plugin.is_going = evictor.is_preempting, evictor.is_going
    return evictor
