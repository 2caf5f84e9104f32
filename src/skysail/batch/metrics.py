"""What Prometheus is told: queues, jobs that wait, cycles, evictions. Read when asked, so that cycles pay nothing.

Names begin with `skysail_batch_`; amounts are in the units of the resource (`cpu` in millicores).
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skysail.batch.engine import Engine
from skysail.batch.ledger import Column
from skysail.batch.model.resources import ANY
from skysail.batch.shares import entitlements_of, used_by

_QUEUE: Final = ("queue", "flavor", "resource")


class BatchCollector(Collector):
    """The metrics of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> list[Metric]:
        """Nothing is known before it is asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Everything, now."""
        yield from self._queues()
        yield from self._jobs()
        yield from self._counters()

    def _queues(self) -> Iterator[Metric]:
        world = self._engine.world
        held = GaugeMetricFamily("skysail_batch_queue_amount", "What a queue uses.", labels=(*_QUEUE, "column"))
        entitled = GaugeMetricFamily("skysail_batch_queue_entitlement", "What a queue may hold.", labels=_QUEUE)
        share = GaugeMetricFamily("skysail_batch_queue_share", "Use in parts of the entitlement.", labels=("queue",))
        entitlements = entitlements_of(world)
        for name in world.tree:
            for column in Column:
                for (flavor, resource), amount in world.ledger.vector(name, column).items():
                    held.add_metric((name, flavor, resource, column.name.lower()), amount)
            for (flavor, resource), amount in entitlements.shares[name].items():
                entitled.add_metric((name, flavor, resource), amount)
            share.add_metric((name,), float(entitlements.dominant_use(name, used_by(world, [name])[name])))
        wanted = GaugeMetricFamily("skysail_batch_queue_waiting", "What waiting pods ask for.", labels=_QUEUE)
        for name, amounts in world.wanted.items():
            for resource, amount in amounts.items():
                wanted.add_metric((name, ANY, resource), amount)
        yield from (held, entitled, share, wanted)

    def _jobs(self) -> Iterator[Metric]:
        world = self._engine.world
        waiting = GaugeMetricFamily("skysail_batch_jobs_waiting", "Jobs that wait.", labels=("queue", "code"))
        oldest = GaugeMetricFamily("skysail_batch_oldest_wait_seconds", "The longest wait.", labels=("queue",))
        counts: dict[tuple[str, str], int] = {}
        longest: dict[str, float] = {}
        for job in world.jobs.values():
            if job.outcome is not None:
                key = (job.queue, job.outcome.code.value)
                counts[key] = counts.get(key, 0) + 1
                longest[job.queue] = max(longest.get(job.queue, 0.0), world.now - job.first_seen)
        for key, count in sorted(counts.items()):
            waiting.add_metric(key, count)
        for queue, seconds in sorted(longest.items()):
            oldest.add_metric((queue,), seconds)
        claims = GaugeMetricFamily("skysail_batch_claims", "Promises whose victims have not left yet.")
        claims.add_metric((), len(world.claims))
        yield from (waiting, oldest, claims)

    def _counters(self) -> Iterator[Metric]:
        statistics = self._engine.statistics
        for name, help_text, value in (
            ("cycles", "Cycles run.", statistics.cycles),
            ("pauses", "Times a cycle let others have their turn.", statistics.pauses),
            ("binds", "Bindings decided.", statistics.binds),
            ("claims_made", "Promises made.", statistics.claims),
            ("attempts", "Tries of jobs.", statistics.tried),
            ("faults", "Turns of jobs that ended in a bug.", statistics.faults),
        ):
            counter = CounterMetricFamily(f"skysail_batch_{name}", help_text)
            counter.add_metric((), value)
            yield counter
        evictions = CounterMetricFamily("skysail_batch_evictions", "Pods evicted.", labels=("reason",))
        for reason, count in sorted(statistics.evictions_by_reason.items()):
            evictions.add_metric((reason,), count)
        yield evictions
