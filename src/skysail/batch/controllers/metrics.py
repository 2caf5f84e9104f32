"""What Prometheus asks beside the engine's own figures (`skysail.batch.metrics`): waits, times, gangs' pods."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from skysail.api.ports import Clock
from skysail.batch.app import BatchScheduler
from skysail.batch.engine import Cycle
from skysail.batch.model.job import HELD, TaskState
from skysail.batch.pausing import Steps
from skysail.batch.session import Action, Configuration, Session
from skysail.scheduler.metrics import Histogram

WAIT_BOUNDS: Final = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
CYCLE_BOUNDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PREFIX: Final = "skysail_batch"


class TimedAction:
    """An action whose time is taken.

    Args:
        action: The real one.
        metrics: Told how long it took.
        clock: Measures.
    """

    def __init__(self, action: Action, metrics: "BatchMetrics", clock: Clock) -> None:
        self._action, self._metrics, self._clock = action, metrics, clock

    @property
    def name(self) -> str:
        """As configuration writes it."""
        return self._action.name

    def initialize(self) -> None:
        """Before the first cycle with it."""
        self._action.initialize()

    def execute(self, session: Session) -> Steps:
        """Do it; the time others take at its pauses is not counted."""
        taken, begun = 0.0, self._clock.monotonic()
        try:
            for pause in self._action.execute(session) or ():
                taken += self._clock.monotonic() - begun
                yield pause
                begun = self._clock.monotonic()
        finally:
            self._metrics.observe_action(self.name, taken + self._clock.monotonic() - begun)

    def uninitialize(self) -> None:
        """After the last cycle with it."""
        self._action.uninitialize()


class BatchMetrics(Collector):
    """The engine's metrics; register it with a Prometheus registry.

    Attributes:
        scheduler: The engine that is told of; nothing is shown before it is there.
    """

    def __init__(self) -> None:
        self.scheduler: BatchScheduler | None = None
        self._waits: dict[str, Histogram] = {}
        self._actions: dict[str, Histogram] = {}

    def timed(
        self, configuration: Configuration | Callable[[], Configuration], clock: Clock
    ) -> Callable[[], Configuration]:
        """The same configuration, with the time of each action taken."""
        source: Configuration | None = None
        made: Configuration | None = None

        def give() -> Configuration:
            nonlocal source, made
            current = configuration() if callable(configuration) else configuration
            if made is None or current is not source:
                source = current
                made = replace(current, actions=tuple(TimedAction(each, self, clock) for each in current.actions))
            return made

        return give

    def observe_action(self, name: str, seconds: float) -> None:
        """An action took so long."""
        self._actions.setdefault(name, Histogram(CYCLE_BOUNDS)).observe(seconds)

    def observe(self, cycle: Cycle) -> None:
        """A cycle was decided: jobs whose minimum it met have waited until now; what more of them is bound has not."""
        if self.scheduler is not None:
            for gone in self._waits.keys() - self.scheduler.world.tree.keys():
                del self._waits[gone]
        jobs = {batch.job.key: batch.job for batch in cycle.effects.binds}
        for job in jobs.values():
            if job.admitted == cycle.at:
                waited = self._waits.setdefault(job.queue, Histogram(WAIT_BOUNDS))
                waited.observe(max(0.0, cycle.at - job.created))

    def describe(self) -> Iterator[Metric]:
        """Nothing is known before the first question."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        if self.scheduler is None:
            return
        yield from self._jobs(self.scheduler)
        yield _histogram("job_wait_seconds", "From a job's creation to its bindings.", "queue", self._waits)
        yield _histogram("action_duration_seconds", "Time of each action in a cycle.", "action", self._actions)

    def _jobs(self, scheduler: BatchScheduler) -> Iterator[Metric]:
        world = scheduler.world
        pods = GaugeMetricFamily(f"{PREFIX}_job_pods", "Pods of a gang.", labels=["job", "state"])
        for job in world.jobs.values():
            if not job.is_lone:
                pods.add_metric([job.name, "held"], len(job.in_state(*HELD)))
                pods.add_metric([job.name, "claimed"], len(job.in_state(TaskState.CLAIMED)))
                pods.add_metric([job.name, "waiting"], len(job.pending()))
        yield pods


def _histogram(name: str, text: str, label: str, values: dict[str, Histogram]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
    for key, histogram in sorted(values.items()):
        family.add_metric([key], histogram.cumulative(), histogram.total)
    return family
