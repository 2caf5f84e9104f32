"""Playing a controller transcript on the real control plane, in real time: the other side of our replays.

    python -m e2e.harness.recording tests/golden/controllers/rs-create-scale.json ...

records each again and prints where the recording differs from the file; with `--write DIR` it writes new files. With
`--at-once N` so many that keep to their namespaces are played beside each other; one with nodes is always alone.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from e2e.harness.control_plane import ControlPlane
from skysail.api.errors import ApiError
from skysail.api.kinds import Kind
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.simulator.clock import LoopClock, WallClock
from skysail.testing.transcripts.acting import RAW_KINDS, Actor
from skysail.testing.transcripts.comparing import compare
from skysail.testing.transcripts.naming import NAMESPACE, OTHER_NAMESPACE, Names
from skysail.testing.transcripts.player import GENERATED_KINDS, OVERHEAD_SECONDS, Player
from tests.conformance.conftest import connect

WORKLOAD_CONTROLLERS = (
    "deployment", "replicaset", "statefulset", "daemonset", "job", "ttl-after-finished", "garbage-collector",
    "namespace", "disruption",
)  # fmt: skip
NODE_CONTROLLERS = ("node-lifecycle", "taint-eviction")
NODE_OPTIONS = (
    "--node-monitor-period=1s", "--node-monitor-grace-period=6s", "--node-startup-grace-period=8s",
    "--node-eviction-rate=10", "--secondary-node-eviction-rate=1", "--unhealthy-zone-threshold=0.55",
    "--large-cluster-size-threshold=50",
)  # fmt: skip
_WATCHED = (
    "Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "PodDisruptionBudget", "ConfigMap", "Node",
    "PersistentVolumeClaim", "ControllerRevision", "ResourceQuota",
)  # fmt: skip
_OWNERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet")
_START_SECONDS = 6.0
_CATCH_UP_SECONDS = 0.15


class _OwnNames(Names):
    """Aliases in one of several transcripts that are played on one server: others' objects get none."""

    def learn(self, kind: str, obj: Raw) -> None:
        if obj["metadata"].get("namespace", "") in self.namespaces.values():
            super().learn(kind, obj)


class RealPlayer(Player):
    """A transcript being played on a server where the real controllers run.

    Args:
        transcript: As read.
        client: An admin's.
        number: Tells the namespaces of one server apart.
    """

    def __init__(self, transcript: Raw, client: ApiClient, number: int) -> None:
        clock = LoopClock(asyncio.get_running_loop(), WallClock().now())
        names = {NAMESPACE: f"transcript-{number}-ns", OTHER_NAMESPACE: f"transcript-{number}-ns-b"}
        super().__init__(transcript, clock, namespaces=names)
        self.names = _OwnNames(names)
        self.client = client
        self._known_events: set[str] = set()

    @asynccontextmanager
    async def world(self) -> AsyncIterator[Actor]:
        """Namespaces of its own on the given server."""
        async with asyncio.TaskGroup() as group:
            await self.create_namespaces()
            tasks = [group.create_task(self.learn_names(RAW_KINDS[kind])) for kind in GENERATED_KINDS]
            tasks += [group.create_task(self._note_writes(RAW_KINDS[kind])) for kind in _WATCHED]
            await asyncio.sleep(1.0)
            self._known_events = {event["metadata"]["uid"] for event in await super().events()}

            def beside(work: object) -> None:
                tasks.append(group.create_task(_awaiting(work)))

            yield self.actor(beside)
            for task in tasks:
                task.cancel()

    async def _note_writes(self, kind: Kind[Raw]) -> None:
        while True:
            async for event in self.client.watch(kind, send_initial_events=True):
                namespace = event.object.get("metadata", {}).get("namespace", "")
                if event.type != "BOOKMARK" and (not namespace or namespace in self.names.namespaces.values()):
                    self.note_write()

    async def pause(self) -> None:
        """Time for the controllers to hear of something."""
        await asyncio.sleep(0.02)

    async def settle(self, quiet: float) -> None:
        """Wait until nothing was written for so long; what the wait costs in real time needs no stand-in here."""
        await super().settle(quiet - OVERHEAD_SECONDS)
        await asyncio.sleep(_CATCH_UP_SECONDS)

    async def events(self) -> Iterable[Raw]:
        """Those of its own namespaces, and new ones of nodes."""
        return [
            event
            for event in await super().events()
            if event["metadata"]["namespace"] in self.names.namespaces.values()
            or (event["involvedObject"]["kind"] == "Node" and event["metadata"]["uid"] not in self._known_events)
        ]


async def _awaiting(work: object) -> None:
    await work  # type: ignore[misc]


async def record(control_plane: ControlPlane, transcript: Raw, number: int) -> list[Raw]:
    """Play a transcript on the real control plane; what was seen after each step."""
    async with connect(control_plane.kubeconfig) as client:
        player = RealPlayer(transcript, client, number)
        try:
            return [seen async for seen in player.play()]
        finally:
            await _clean_up(client, tuple(player.names.namespaces.values()))


async def _clean_up(client: ApiClient, namespaces: Iterable[str]) -> None:
    """Nothing that is left may be seen by the next transcript, nor keep the controllers busy."""
    for node in (await client.list(RAW_KINDS["Node"])).items:
        await _gone(client, "Node", node)
    for namespace in namespaces:
        for kind in _OWNERS:
            for owner in (await client.list(RAW_KINDS[kind], namespace)).items:
                await _gone(client, kind, owner)
        for pod in (await client.list(RAW_KINDS["Pod"], namespace)).items:
            with suppress(ApiError):
                patch = {"metadata": {"finalizers": None}}
                await client.patch(RAW_KINDS["Pod"], pod["metadata"]["name"], namespace, patch)
            await _gone(client, "Pod", pod, grace_period_seconds=0)


async def _gone(client: ApiClient, kind: str, obj: Raw, grace_period_seconds: int | None = None) -> None:
    meta = obj["metadata"]
    with suppress(ApiError):
        await client.delete(
            RAW_KINDS[kind], meta["name"], meta.get("namespace", ""), grace_period_seconds=grace_period_seconds
        )


def start_controllers(control_plane: ControlPlane, transcript: Raw) -> None:
    """Start the real controllers that a transcript needs, afresh: they remember nodes they have seen."""
    if "kube-controller-manager" in control_plane.processes:
        control_plane.kill("kube-controller-manager")
    names = (*WORKLOAD_CONTROLLERS, *(NODE_CONTROLLERS if _wants_node_controllers(transcript) else ()))
    control_plane.start_controller_manager(",".join(f"{name}-controller" for name in names), *NODE_OPTIONS)


async def record_all(
    control_plane: ControlPlane, transcripts: Sequence[Raw], at_once: int = 1
) -> AsyncIterator[tuple[Raw, list[Raw]]]:
    """Play transcripts: those that keep to their namespaces first, then each that has nodes alone.

    Those of the node life cycle come last and each have controllers of their own.

    Args:
        control_plane: Running.
        transcripts: As read.
        at_once: So many that keep to their namespaces are played beside each other, at least 1.
    """
    ordered = sorted(transcripts, key=lambda each: (_wants_node_controllers(each), _has_nodes(each)))
    apart = [each for each in ordered if not _has_nodes(each)]
    if apart:
        await _start_controllers(control_plane, apart[0])
        free = asyncio.Semaphore(at_once)
        async with asyncio.TaskGroup() as group:
            playing = [
                group.create_task(_record_beside(control_plane, each, place, free)) for place, each in enumerate(apart)
            ]
            for finished in asyncio.as_completed(playing):
                yield await finished
    for number, transcript in enumerate(ordered[len(apart) :], len(apart)):
        if number == 0 or _wants_node_controllers(transcript):
            await _start_controllers(control_plane, transcript)
        yield transcript, await record(control_plane, transcript, number)


async def _record_beside(
    control_plane: ControlPlane, transcript: Raw, number: int, free: asyncio.Semaphore
) -> tuple[Raw, list[Raw]]:
    async with free:
        return transcript, await record(control_plane, transcript, number)


async def _start_controllers(control_plane: ControlPlane, transcript: Raw) -> None:
    start_controllers(control_plane, transcript)
    await asyncio.sleep(_START_SECONDS)


def _has_nodes(transcript: Raw) -> bool:
    """Whether it makes nodes, which all others would see."""
    return _wants_node_controllers(transcript) or "'kind': 'Node'" in str(transcript["steps"])


def _wants_node_controllers(transcript: Raw) -> bool:
    return bool(set(NODE_CONTROLLERS) & set(transcript["controllers"]))


def as_transcript(transcript: Raw, seen: Sequence[Raw]) -> Raw:
    """The transcript with what was seen in place of what was recorded before."""
    steps = [
        {"step": each["step"], "action": step["action"], **each}
        for step, each in zip(transcript["steps"], seen, strict=True)
    ]
    return {**transcript, "recordings": 1, "names": {}, "steps": steps}


async def _main(files: Sequence[Path], target: Path | None, at_once: int) -> None:
    transcripts = [json.loads(file.read_text()) for file in files]
    with tempfile.TemporaryDirectory() as root:
        control_plane = ControlPlane(Path(root))
        try:
            control_plane.start()
            async for transcript, seen in record_all(control_plane, transcripts, at_once):
                name = transcript["scenario"]
                if target is not None:
                    (target / f"{name}.json").write_text(json.dumps(as_transcript(transcript, seen), indent=1) + "\n")
                differences = list(compare(transcript["steps"], seen)) if "state" in transcript["steps"][0] else []
                sys.stdout.write("\n  ".join([f"{name}: {len(differences)} differences", *differences]) + "\n")
        finally:
            control_plane.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--write", type=Path, default=None, metavar="DIR")
    parser.add_argument("--at-once", type=int, default=1, metavar="N")
    options = parser.parse_args()
    asyncio.run(_main(options.files, options.write, options.at_once))
