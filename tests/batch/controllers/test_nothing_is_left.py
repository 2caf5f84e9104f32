"""Gangs that come and go in a hurry leave nothing behind: not in the books, not in queues of work, no writes."""

import asyncio
import contextlib
import gc
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Sized

from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import JOBS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.api.kinds import PODS as POD_KIND
from skysail.batch.config import default_configuration
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.kinds import JOB_QUEUES, POD_GROUPS, QUEUES, QUOTAS, batch_definitions
from skysail.batch.sleepers import Sleepers
from skysail.controller.customresources.installing import install
from skysail.simulator.clock import run_virtual
from skysail.testing.cluster import Cluster
from tests.batch.controllers.test_process import job

GROUPS = 200
QUEUED = {
    "owner": {"deserved": {"cpu": 64}},
    "slots": {},
    "limited": {"limits": [{"user": "*", "maxJobs": 2, "resource": {"cpu": 1}}]},
}
BOUNDED = (
    "ResourceVector._amounts", "World._vectors", "World._user_paths", "QueueSpec.figures", "Sharing._siblings",
    "OutcomeRecord.details", "_Lru._entries", "_Similar.messages",
)  # fmt: skip
"""What is remembered up to a fixed number, to be quick or to tell the same only once."""
OTHERS = ("skysail.api.", "skysail.apiserver.", "skysail.simulator.", "skysail.testing.")
"""What is no part of the process, or only read by it."""
KINDS = (
    "empty", "runs", "waits", "bundled", "slotted", "reclaims", "implied", "lone", "mounted", "unmounted", "misnamed",
    "queued", "limited",
)  # fmt: skip


def sizes(root):
    """How many entries the containers hold that belong to what a process is made of, by where they hang."""
    found, seen, waiting = Counter(), set(), [(root, type(root).__name__)]
    skipped = (type, types.ModuleType, types.FunctionType, types.FrameType, asyncio.AbstractEventLoop, str, bytes)
    while waiting:
        each, path = waiting.pop()
        if id(each) in seen or isinstance(each, skipped):
            continue
        seen.add(id(each))
        if isinstance(each, (dict, list, set, deque, OrderedDict)) and isinstance(each, Sized):
            found[path] += len(each)
        if isinstance(each, dict):
            waiting += [(value, path) for value in each.values()]
        elif isinstance(each, (list, set, tuple, frozenset, deque)):
            waiting += [(value, path) for value in each]
        elif isinstance(each, types.MethodType):
            waiting.append((each.__self__, path))
        elif type(each).__module__.startswith("skysail.") and not type(each).__module__.startswith(OTHERS):
            names = [*getattr(each, "__dict__", ()), *_slots(type(each))]
            waiting += [(getattr(each, name), f"{type(each).__name__}.{name}") for name in names if hasattr(each, name)]
    return found


def _slots(cls):
    for each in cls.__mro__:
        names = each.__dict__.get("__slots__", ())
        yield from (names,) if isinstance(names, str) else names


def _meta(name, **more):
    return {"metadata": {"name": name, "namespace": "default"}, **more}


def pod(name, group="", queue="", cpu="100m", claim=""):
    said = {"scheduling.skysail.io/pod-group": group, "scheduling.skysail.io/queue": queue}
    body = _meta(name)
    body["metadata"]["labels"] = {key: value for key, value in said.items() if value}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    body["spec"] = {"schedulerName": "sky-scheduler", "containers": [container]}
    if claim:
        body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return body


def group(name, **spec):
    return _meta(name, spec={"minMember": 1, **spec})


def objects(kind, name):
    """What makes up one gang of a kind, in the order it is made."""
    if kind == "empty":
        return [(POD_GROUPS, group(name))]
    if kind == "waits":
        return [(POD_GROUPS, group(name, scheduleTimeoutSeconds=3600)), (POD_KIND, pod(name, name, cpu="1000"))]
    if kind == "bundled":
        return [(POD_GROUPS, group(name, bundle=f"b-{name}")), (POD_KIND, pod(name, name))]
    if kind == "slotted":
        quota = _meta(name, spec={"queue": "slots", "resources": {"cpu": "200m"}})
        return [(QUOTAS, quota), (POD_KIND, pod(name, queue="slots"))]
    if kind == "reclaims":
        borrowers = [(POD_KIND, pod(f"{name}-{number}", cpu="20")) for number in range(3)]
        return [*borrowers, (POD_GROUPS, group(name, queue="owner")), (POD_KIND, pod(name, name, cpu="20"))]
    if kind == "implied":
        return [(JOBS, _meta(name, spec=job(name, 2)["spec"]))]
    if kind == "lone":
        return [(POD_KIND, pod(name))]
    if kind == "mounted":
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
        named = {"storageClassName": ""}
        return [
            (PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": volume | named}),
            (PERSISTENT_VOLUME_CLAIMS, _meta(name, spec=spec | named | {"volumeName": name})),
            (POD_KIND, pod(name, claim=name)),
        ]
    if kind == "unmounted":
        return [(POD_KIND, pod(name, claim=name))]
    if kind == "misnamed":
        return [(POD_GROUPS, group(name, queue=f"no-{name}")), (POD_KIND, pod(name, name))]
    if kind == "queued":
        queue = {"metadata": {"name": name}, "spec": {"deserved": {"cpu": 1}}}
        line = _meta(name, spec={"queue": name})
        return [
            (QUEUES, queue),
            (JOB_QUEUES, line),
            (POD_GROUPS, group(name, jobQueue=name)),
            (POD_KIND, pod(name, name)),
        ]
    if kind == "limited":
        body = pod(name, queue="limited")
        body["metadata"]["labels"]["scheduling.skysail.io/user"] = name
        return [(POD_KIND, body)]
    return [(POD_GROUPS, group(name)), (POD_KIND, pod(name, name))]


async def hurry(cluster, first, number):
    """Gangs of all kinds, some deleted before anybody looked, some while they run, and in another order than made."""
    alive = []
    for at in range(first, first + number):
        kind = KINDS[at % len(KINDS)]
        made = objects(kind, f"{kind}-{at}")
        for of, body in made:
            await cluster.client.create(of, body, body["metadata"].get("namespace", ""))
        alive.append(made)
        await cluster.advance(cluster.rng.choice((0.0, 0.0, 0.01, 0.2)))
        if len(alive) > 2 * len(KINDS):
            await remove(cluster, alive.pop(cluster.rng.randrange(len(alive))))
    await cluster.advance(3.0)
    for made in alive:
        await remove(cluster, made)


async def remove(cluster, made):
    for of, body in cluster.rng.sample(made, len(made)):
        metadata = body["metadata"]
        with contextlib.suppress(NotFound):  # it was evicted
            await cluster.client.delete(of, metadata["name"], metadata.get("namespace", ""), propagation="Background")


async def idle(cluster, process):
    """At rest: nothing under way, nothing waits to be written, nothing is written for ten minutes."""
    await cluster.settle(timeout=7200.0)
    assert process.scheduler.is_idle
    writes, cycles = cluster._switch.writes, process.scheduler.engine.statistics.cycles
    await cluster.advance(600.0)
    assert (cluster._switch.writes, process.scheduler.engine.statistics.cycles) == (writes, cycles)


def on_process(act):
    async def main(clock):
        async with Cluster(seed=3) as cluster:
            await install(cluster.client, batch_definitions())
            await cluster.add_nodes(2)
            await cluster.start_controllers()
            made = []

            async def run(client):
                made.append(BatchProcess(client, default_configuration(), clock=cluster.clock, rng=cluster.rng))
                await made[0].run()

            for name, spec in QUEUED.items():
                await cluster.client.create(QUEUES, {"metadata": {"name": name}, "spec": spec})
            await cluster.run("batch", run)
            await cluster.settle()
            await act(cluster, made[0])

    run_virtual(main)


def test_gangs_that_come_and_go_leave_nothing_behind():
    async def act(cluster, process):
        await hurry(cluster, 0, 5 * len(KINDS))
        await idle(cluster, process)
        gc.collect()
        before = sizes(process)
        await hurry(cluster, 1000, GROUPS)
        await idle(cluster, process)
        assert await cluster.list(Pod) == []
        gc.collect()
        after = sizes(process)
        grown = [
            f"{path}: {before[path]}, {count}"
            for path, count in after.items()
            if count - before[path] > 2 and path not in BOUNDED
        ]
        assert "\n".join(sorted(grown)) == ""
        assert process.scheduler.world.jobs == {}
        assert process.scheduler.world.problems() == []

    on_process(act)


def test_an_object_made_again_is_told_what_the_first_was_told():
    """Of the same name, before anybody looked in between."""

    async def act(cluster, process):
        for _ in range(2):
            await cluster.client.create(POD_GROUPS, group("again", minMember=2), "default")
            await cluster.settle()
            assert [each.status.phase for each in await cluster.list(POD_GROUPS)] == ["Pending"]
            await cluster.client.delete(POD_GROUPS, "again", "default")

    on_process(act)


def test_moments_that_no_longer_count_are_not_kept():
    sleepers = Sleepers()
    sleepers.sleep("one", ("event",), 10.0)
    for number in range(10_000):
        sleepers.sleep("other", ("event",), 20.0 + number)
        sleepers.wake("other")
    assert len(sleepers._moments) < 100
    sleepers.pass_time(10.0)
    assert list(sleepers.awake) == ["other", "one"]
