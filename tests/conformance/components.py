"""Skysail's own components, run against the server under test as they would run against a cluster."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from skysail.controller.controller import Controller
from skysail.controller.manager import Manager
from skysail.scheduler.app import Scheduler
from skysail.scheduler.config.resolve import load_configuration
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.profiles import extension_points, plugin_factories
from tests.conformance.conftest import CLOCK, connect


@asynccontextmanager
async def running_scheduler(
    config: Path, configuration: str | None = None, *, plugins: Sequence[str] = ()
) -> AsyncIterator[Scheduler]:
    """A scheduler with a client of its own."""
    factories = plugin_factories(plugins)
    resolved = load_configuration(configuration, feature_gates({}), extension_points(factories))
    async with connect(config, "skysail-scheduler") as client:
        scheduler = Scheduler(client, resolved, clock=CLOCK, rng=random.Random(1), factories=factories)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(scheduler.run())
            try:
                yield scheduler
            finally:
                running.cancel()


@asynccontextmanager
async def running_controllers(config: Path, controllers: Sequence[Controller]) -> AsyncIterator[Manager]:
    """Controllers with a client of their own, at work."""
    async with connect(config, "skysail-controllers") as client:
        manager = Manager(client, clock=CLOCK, rng=random.Random(2))
        for controller in controllers:
            manager.add(controller)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(manager.run())
            try:
                await manager.wait_ready()
                yield manager
            finally:
                running.cancel()
