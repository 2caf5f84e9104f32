"""One contender in a process of its own: fills its cache with all pods, decodes one watch event, meets 410 for a while.

    python -m bench._informer_contenders NAME URL

prints {"cpu_seconds", "held_mib", "peak_mib", "event_microseconds", "lists"} as JSON; a figure the contender has no
means for is null.
"""

import asyncio
import gc
import json
import resource
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from random import Random
from typing import Any

from bench._hollow_pods import pod

EVENT = json.dumps({"type": "MODIFIED", "object": pod(7) | {"kind": "Pod", "apiVersion": "v1"}}).encode()
OUTAGE_SECONDS = 5.0


class Measured:
    """CPU and memory of a block; `settle` collects garbage first."""

    def __enter__(self) -> "Measured":
        gc.collect()
        self.memory, self.peak_before = resident_mib(), peak_mib()
        self.cpu = time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.cpu = time.process_time() - self.cpu
        self.peak = max(0.0, peak_mib() - max(self.memory, 0.0))
        gc.collect()
        self.memory = resident_mib() - self.memory


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def microseconds(decode: Callable[[], object], rounds: int = 2000) -> float:
    """CPU of one call, the best of five."""
    decode()
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(rounds // 5):
            decode()
        best = min(best, (time.process_time() - start) / (rounds // 5))
    return best * 1e6


def lists_of(url: str) -> int:
    with urllib.request.urlopen(f"{url}/count") as response:
        return int(response.read())


async def skysail(url: str, watch_list: bool) -> dict[str, Any]:
    from skysail.api.core import Pod
    from skysail.api.kinds import PODS
    from skysail.client.api_client import ApiClient
    from skysail.client.codec import decode_event
    from skysail.client.config import ServerConfig
    from skysail.client.http import HttpTransport
    from skysail.informer import ClientSource, ReflectorSettings, Scope, SharedInformer
    from skysail.simulator.clock import WallClock

    clock, settings = WallClock(), ReflectorSettings(use_watch_list=watch_list)

    def informer_at(transport: HttpTransport) -> SharedInformer[Pod]:
        client = ApiClient(transport, user_agent="bench", clock=clock, rng=Random(1))
        return SharedInformer(ClientSource(client, Scope(PODS)), clock=clock, rng=Random(1), settings=settings)

    transport = HttpTransport(ServerConfig(server=url), clock=clock)
    informer = informer_at(transport)
    with Measured() as measured:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await informer.wait_synced()
            task.cancel()
    await transport.close()
    event = microseconds(lambda: decode_event(Pod, EVENT, "watch"))
    lists_of(url)
    transport = HttpTransport(ServerConfig(server=f"{url}/expired"), clock=clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer_at(transport).run())
        await asyncio.sleep(OUTAGE_SECONDS)
        task.cancel()
    await transport.close()
    return result(measured, event, lists_of(url), len(informer.indexer))


def official(url: str) -> dict[str, Any]:
    import logging

    from kubernetes import client, watch
    from kubernetes.informer import SharedInformer

    logging.disable(logging.CRITICAL)

    def informer_at(host: str) -> SharedInformer:
        api = client.CoreV1Api(client.ApiClient(client.Configuration(host=host)))
        return SharedInformer(list_func=api.list_pod_for_all_namespaces)

    informer, filled = informer_at(url), threading.Event()
    with Measured() as measured:
        informer._fire = lambda kind, obj: filled.set() if len(informer.cache.list_keys()) else None
        informer.start()
        filled.wait(300)
    count = len(informer.cache.list_keys())
    decoder = watch.Watch(return_type="V1Pod")
    text = EVENT.decode()
    event = microseconds(lambda: decoder.unmarshal_event(text, "V1Pod"), rounds=200)
    lists_of(url)
    informer_at(f"{url}/expired").start()
    time.sleep(OUTAGE_SECONDS)
    return result(measured, event, lists_of(url), count)


async def asyncio_client(url: str) -> dict[str, Any]:
    from kubernetes_asyncio import client, watch

    async with client.ApiClient(client.Configuration(host=url)) as connection:
        with Measured() as measured:
            pods = await client.CoreV1Api(connection).list_pod_for_all_namespaces()
        decoder = watch.Watch(return_type="V1Pod")
        text = EVENT.decode()
        event = microseconds(lambda: decoder.unmarshal_event(text, "V1Pod"), rounds=200)
        return result(measured, event, None, len(pods.items))


def result(measured: Measured, event: float, lists: int | None, objects: int) -> dict[str, Any]:
    return {
        "cpu_seconds": measured.cpu, "held_mib": measured.memory, "peak_mib": measured.peak,
        "event_microseconds": event, "lists": lists, "objects": objects,
    }  # fmt: skip


CONTENDERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "skysail, WatchList": lambda url: asyncio.run(skysail(url, watch_list=True)),
    "skysail, pages": lambda url: asyncio.run(skysail(url, watch_list=False)),
    "kubernetes": official,
    "kubernetes_asyncio": lambda url: asyncio.run(asyncio_client(url)),
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(CONTENDERS[sys.argv[1]](sys.argv[2])) + "\n")
    sys.stdout.flush()
    import os

    os._exit(0)  # the official informer's thread waits for its watch, which never ends
