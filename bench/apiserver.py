"""The API server over HTTP, in a process of its own: creates, watch deliveries, a large list, a start from disk."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import msgspec

_SKYSAIL = Path(sys.executable).with_name("skysail")
_LANES = 16


def main() -> None:
    with _server() as url:
        asyncio.run(_creates(url))
    with _server() as url:
        asyncio.run(_deliveries(url))
    with _server() as url:
        asyncio.run(_list(url))
    with tempfile.TemporaryDirectory() as folder:
        with _server("--data-dir", folder) as url:
            asyncio.run(_fill(url, "/api/v1/namespaces/default/configmaps", _configmap, 50_000))
        started = time.perf_counter()
        with _server("--data-dir", folder):
            print(f"start with 50,000 stored objects: {time.perf_counter() - started:.2f} s (target 2 s)")


@contextmanager
def _server(*options: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder, "tokens.csv")
        tokens.write_text('bench,admin,1,"system:masters"\n')
        command = [
            str(_SKYSAIL), "apiserver", "--port", "0", "--insecure-http", "--token-auth-file", str(tokens), *options,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("ready"):
                    yield line.rsplit(" ", 1)[1].strip()
                    break
        finally:
            process.terminate()
            process.wait(20)


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": "Bearer bench"}, connector=aiohttp.TCPConnector(limit=0), read_bufsize=1 << 20
    )


def _pod(number: int) -> bytes:
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": f"a{number % 50}"}},
        "spec": {"containers": [container]},
    }
    return msgspec.json.encode(body)


def _configmap(number: int) -> bytes:
    return msgspec.json.encode({"metadata": {"name": f"c-{number}"}, "data": {"key": "x" * 500}})


async def _fill(url: str, path: str, make: Callable[[int], bytes], count: int) -> float:
    numbers = iter(range(count))

    async def lane(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            async with session.post(url + path, data=make(number), headers={"Content-Type": "application/json"}) as got:
                await got.read()
                got.raise_for_status()

    async with _session() as session:
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(_LANES):
                group.create_task(lane(session))
        return time.perf_counter() - started


async def _creates(url: str) -> None:
    count = 5_000
    seconds = await _fill(url, "/api/v1/namespaces/default/pods", _pod, count)
    print(f"creates of pods over HTTP: {count / seconds:,.0f}/s (target 2,000/s), client and server on two cores")


async def _deliveries(url: str) -> None:
    count, watchers = 3_000, 10

    async def watch(session: aiohttp.ClientSession) -> None:
        query = {"watch": "true", "resourceVersion": version}
        async with session.get(f"{url}/api/v1/namespaces/default/configmaps", params=query) as got:
            seen = 0
            async for chunk, _ in got.content.iter_chunks():
                seen += chunk.count(b"\n")
                if seen >= count:
                    return

    async with _session() as session:
        async with session.get(f"{url}/api/v1/namespaces/default/configmaps") as got:
            version = (await got.json())["metadata"]["resourceVersion"]
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(watchers):
                group.create_task(watch(session))
            group.create_task(_fill(url, "/api/v1/namespaces/default/configmaps", _configmap, count))
        seconds = time.perf_counter() - started
    print(
        f"watch deliveries to {watchers} watchers: {count * watchers / seconds:,.0f}/s (target 10,000/s), "
        f"with {count / seconds:,.0f} creates/s beside them"
    )


async def _list(url: str) -> None:
    await _fill(url, "/api/v1/namespaces/default/pods", _pod, 5_000)
    async with _session() as session:
        started = time.perf_counter()
        async with session.get(f"{url}/api/v1/pods") as got:
            body = await got.read()
        seconds = time.perf_counter() - started
    print(f"list of 5,000 pods ({len(body) / 1e6:.1f} MB): {seconds:.3f} s (target 0.3 s)")
