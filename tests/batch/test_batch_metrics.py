"""What Prometheus is told of queues, jobs, waits, evictions and actions."""

from types import SimpleNamespace

from prometheus_client import CollectorRegistry

from skysail.batch.controllers.metrics import BatchMetrics
from skysail.batch.engine import Engine
from skysail.batch.metrics import BatchCollector
from tests.batch.lab import GPU, START, Lab, figures


class Ticking:
    """A clock that moves a second each time it is asked."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        self.seconds += 1.0
        return self.seconds


def samples(registry):
    return {
        (sample.name.removeprefix("skysail_batch_"), *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_shares_amounts_waits_evictions_and_times_of_actions_are_told():
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(1, gpus=8)
    lab.queue("a", figures=figures(deserved=6))
    lab.queue("b", figures=figures(deserved=2))
    metrics = BatchMetrics()
    metrics.scheduler = SimpleNamespace(world=lab.world)
    engine = Engine(lab.world, metrics.timed(lab.configuration, Ticking()))
    registry = CollectorRegistry()
    registry.register(BatchCollector(engine))
    registry.register(metrics)

    def cycle(second):
        found = engine.run_once(START + second)
        if found is not None:
            metrics.observe(found)
            lab.play(found.effects)

    lab.gang("low", 8, 2, "b", gpus=1)
    cycle(10)
    lab.gang("owner", 4, queue="a", gpus=1)
    cycle(20)
    told = samples(registry)
    assert told["queue_entitlement", "a", "*", GPU] == 4
    assert told["queue_entitlement", "b", "*", GPU] == 4
    assert told["queue_amount", "b", "*", GPU, "held"] == 4
    assert told["queue_amount", "b", "*", GPU, "releasing"] == 4
    assert told["queue_amount", "a", "*", GPU, "claimed"] == 4
    assert told["queue_waiting", "a", "*", GPU] == 0
    assert told["queue_share", "a"] == 1.0
    assert told["jobs_waiting", "a", "WaitingVictims"] == 1
    assert told["job_pods", "default/owner", "claimed"] == 4
    assert told["evictions_total", "reclaim"] == 4
    assert told["claims",] == 1
    lab.finish_leaving()
    cycle(30)
    told = samples(registry)
    assert told["job_wait_seconds_count", "b"] == 1
    assert told["job_wait_seconds_count", "a"] == 1
    assert told["job_wait_seconds_bucket", "a", "60.0"] == 1
    assert told["job_wait_seconds_bucket", "a", "5.0"] == 0
    assert told["action_duration_seconds_count", "reclaim"] == 3
    assert told["action_duration_seconds_sum", "allocateJob"] > 0
    assert told["job_pods", "default/owner", "held"] == 4


def test_a_job_waits_once_whatever_more_of_it_is_bound_later():
    lab = Lab()
    lab.nodes(1, gpus=4)
    metrics = BatchMetrics()
    metrics.scheduler = SimpleNamespace(world=lab.world)
    engine = Engine(lab.world, lab.configuration)
    registry = CollectorRegistry()
    registry.register(metrics)
    lab.gang("elastic", 8, 2, gpus=1)
    for second in range(3):
        found = engine.run_once(START + 10 * second)
        if found is not None:
            metrics.observe(found)
            lab.play(found.effects)
        lab.nodes(1, prefix=f"more{second}", gpus=1)
    assert lab.count("elastic") > 4
    assert samples(registry)["job_wait_seconds_count", "default"] == 1
