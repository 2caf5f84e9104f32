"""The workers of one controller: get a key, reconcile it, decide when it runs again."""

import asyncio
import logging
from contextvars import ContextVar
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from skysail.api.errors import ApiError, Conflict, TooManyRequests
from skysail.controller.controller import Controller, Result, TerminalError
from skysail.informer.keys import Key
from skysail.informer.supervisor import Failure, attempt
from skysail.workqueue.async_queue import QueueShutDown

_log = logging.getLogger(__name__)

RECONCILE_ID: Final[ContextVar[str]] = ContextVar("skysail_reconcile_id", default="")
"""Names the reconcile that is running: `<controller>/<number>`; put it into log lines and Events."""


class ReconcileMetrics:
    """What is counted about reconciles, under controller-runtime's names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ("controller",)
        self.total = Counter(
            "controller_runtime_reconcile_total", "Total number of reconciliations per controller",
            ("controller", "result"), registry=registry,
        )  # fmt: skip
        self.errors = Counter(
            "controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller",
            label, registry=registry,
        )  # fmt: skip
        self.terminal = Counter(
            "controller_runtime_terminal_reconcile_errors_total", "Total number of terminal reconciliation errors",
            label, registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller",
            label, registry=registry,
        )  # fmt: skip
        self.active = Gauge(
            "controller_runtime_active_workers", "Number of currently used workers per controller",
            label, registry=registry,
        )  # fmt: skip
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller",
            label, registry=registry,
        )  # fmt: skip


class RunLoop:
    """Runs a controller's workers.

    Args:
        controller: Bound to its runtime.
        workers: How many keys at a time.
        metrics: Counters; none by default.

    Attributes:
        has_synced: Whether the caches are filled, so that it may work.
    """

    def __init__(self, controller: Controller, workers: int, metrics: ReconcileMetrics | None = None) -> None:
        self.controller = controller
        self.workers = workers
        self._name = controller.display_name()
        self._queue = controller.queue
        self._clock = controller.clock
        self._metrics = metrics
        self._count = 0
        self.has_synced = False
        if metrics is not None:
            metrics.workers.labels(self._name).set(workers)

    async def run(self) -> None:
        """Wait for the caches, then reconcile until the queue is shut down or the task cancelled."""
        await self.controller.wait_synced()
        self.has_synced = True
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(self.controller.run_beside())
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.workers):
                    workers.create_task(self._work())
            beside.cancel()

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except QueueShutDown:
                return
            try:
                await self.reconcile_once(key)
            finally:
                self._queue.done(key)

    async def reconcile_once(self, key: Key) -> None:
        """Reconcile one key that is in work, and decide when it runs again."""
        self._count += 1
        token = RECONCILE_ID.set(f"{self._name}/{self._count}")
        priority = self._queue.priority_of(key)
        started = self._clock.monotonic()
        if self._metrics is not None:
            self._metrics.active.labels(self._name).inc()
        try:
            outcome = await attempt(lambda: self.controller.reconcile(key))
        finally:
            RECONCILE_ID.reset(token)
            if self._metrics is not None:
                self._metrics.active.labels(self._name).dec()
                self._metrics.seconds.labels(self._name).observe(self._clock.monotonic() - started)
        if isinstance(outcome, Failure):
            self._failed(key, outcome.error, priority)
        else:
            self._succeeded(key, outcome, priority)

    def _succeeded(self, key: Key, result: Result | None, priority: int) -> None:
        self._queue.forget(key)
        if result is not None and result.requeue_after is not None:
            self._queue.add_after(key, result.requeue_after, priority)
            self._tally("requeue_after")
        else:
            self._tally("success")

    def _failed(self, key: Key, error: Exception, priority: int) -> None:
        fields = {"controller": self._name, "key": str(key), "reconcile": f"{self._name}/{self._count}"}
        if isinstance(error, TerminalError):
            self._queue.forget(key)
            if self._metrics is not None:
                self._metrics.terminal.labels(self._name).inc()
            _log.error("reconcile failed for good", extra=fields, exc_info=error)
        elif isinstance(error, ApiError) and error.is_namespace_terminating:
            self._queue.forget(key)
            _log.debug("reconcile may make nothing in a namespace on its way out", extra=fields)
        else:
            asked = float(error.retry_after_seconds) if isinstance(error, TooManyRequests) else 0.0
            self._queue.add_rate_limited(key, priority, at_least=asked)
            if isinstance(error, Conflict):
                _log.debug("reconcile met a newer version, will run again", extra=fields)
            else:
                _log.error("reconcile failed, will run again", extra=fields, exc_info=error)
        if self._metrics is not None:
            self._metrics.errors.labels(self._name).inc()
        self._tally("error")

    def _tally(self, result: str) -> None:
        if self._metrics is not None:
            self._metrics.total.labels(self._name, result).inc()
