"""A reflector beside a test, on a collection that can do everything a server can."""

import asyncio
import random
from collections import deque

from prometheus_client import CollectorRegistry

from skysail.informer import InformerMetrics, Reflector
from skysail.simulator.clock import run_virtual
from tests.informer.collection import Collection


class Store:
    """Notes what the reflector says."""

    def __init__(self):
        self.said: deque[str] = deque()

    def add(self, obj):
        self.said.append(f"add {obj.name}")

    def update(self, obj):
        self.said.append(f"update {obj.name}")

    def delete(self, obj):
        self.said.append(f"delete {obj.name}")

    def replace(self, objects):
        self.said.append(" ".join(["replace", *(obj.name for obj in objects)]))

    def bookmark(self, version):
        self.said.append(f"bookmark {version}")


def reflecting(scenario, *, settings=None, prepare=None, before=None):
    """Run `scenario(collection, store, reflector, clock)` beside a running reflector."""

    async def main(clock):
        collection, store = Collection(), Store()
        if before is not None:
            before(collection)
        errors: list[Exception] = []
        registry = CollectorRegistry()
        reflector = Reflector(
            collection, store, clock=clock, rng=random.Random(1), settings=settings, on_error=errors.append,
            metrics=InformerMetrics(registry).for_scope("pods"),
        )  # fmt: skip
        reflector.errors = errors
        reflector.value = lambda name: registry.get_sample_value(name, {"resource": "pods"})
        async with asyncio.TaskGroup() as group:
            task = group.create_task(reflector.run())
            await scenario(collection, store, reflector, clock)
            task.cancel()

    run_virtual(main)
