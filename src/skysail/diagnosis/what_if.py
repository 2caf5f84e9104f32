"""What would happen if these manifests were applied? The production engine on a copy; nothing is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.api.scheduling import PriorityClass
from skysail.batch.config import default_configuration
from skysail.batch.controllers.grouping import minimum, wanted_spec
from skysail.batch.controllers.owners import TopOwner
from skysail.batch.copying import copy_world
from skysail.batch.cycle import run_once
from skysail.batch.foreign.pods import read_any_membership
from skysail.batch.foreign.registry import GROUP_KINDS, QUEUE_KINDS, RawKind
from skysail.batch.kinds import GROUP, JobQueue, PodGroup, Queue, Quota
from skysail.batch.kinds import reading as own
from skysail.batch.model.outcome import Outcome, OutcomeCode
from skysail.batch.model.specs import PodGroupSpec
from skysail.batch.session import Configuration
from skysail.batch.what_if import Simulation
from skysail.batch.what_if import simulate as simulate_pods
from skysail.batch.world import World
from skysail.diagnosis.advice import helps
from skysail.diagnosis.snapshot import Snapshot, picture

_STRUCTS: Final = {"Queue": Queue, "JobQueue": JobQueue, "PodGroup": PodGroup, "Quota": Quota}


@dataclass(frozen=True)
class JobSimulation:
    """What would become of one job of the manifests.

    Attributes:
        name: `Kind/namespace/name`.
        answer: What the engine did with it on the copy.
        helps: What would help one that would wait.
    """

    name: str
    answer: Simulation
    helps: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Wanted:
    """The jobs of some manifests: their pods, with the gang that holds them together."""

    name: str
    pods: Sequence[Pod]
    group: PodGroupSpec | None = None


@dataclass
class _Reading:
    snapshot: Snapshot
    jobs: list[_Wanted] = field(default_factory=list)
    loose: list[tuple[str, Pod]] = field(default_factory=list)
    """Pods that are no job by themselves, each with the name of the object it comes from."""


def simulate(
    snapshot: Snapshot,
    manifests: Iterable[Raw],
    configuration: Configuration | None = None,
    *,
    find_largest: bool = True,
) -> list[JobSimulation]:
    """Say for every job of the manifests where it would run, whom it would evict, or why it would wait.

    Queues, lines, gangs, Quotas and priority classes of the manifests are there for all of its jobs. Each job is tried
    by itself; several objects whose pods name one gang are one job. Kubernetes' own kinds that make no pods (Namespace,
    Service, ConfigMap, ...) are passed over.

    Args:
        snapshot: What is.
        manifests: Objects of any supported kind: pods, gangs, workloads, queues; ours and others'.
        configuration: The engine's; the default one when None.
        find_largest: Whether to look for the largest gang that fits where one does not.

    Raises:
        ConfigError: An object cannot be read, is of a kind that makes no pods we know of, or nothing makes any.
    """
    reading = _Reading(snapshot)
    for manifest in sorted(manifests, key=_kind_order):
        _read(reading, manifest)
    _gather_loose(reading)
    if not reading.jobs:
        raise ConfigError("nothing in these manifests makes pods")
    world = picture(reading.snapshot).world
    chosen = configuration or default_configuration()
    found = []
    for job in reading.jobs:
        answer = _try(world, chosen, job, find_largest=find_largest)
        found.append(JobSimulation(job.name, answer, () if answer.fits else _advise(world, chosen, job)))
    return found


def _advise(world: World, configuration: Configuration, wanted: _Wanted) -> tuple[str, ...]:
    """What would help a job that would wait."""
    copy = copy_world(world)
    if wanted.group is not None:
        copy.set_group(wanted.group)
    for pod in wanted.pods:
        copy.set_pod(pod)
    session = run_once(copy, configuration)
    jobs = {task.job.key: task.job for pod in wanted.pods if (task := copy.tasks.get(pod.uid)) is not None}
    return next((helps(session, job) for job in jobs.values() if job.outcome is not None), ())


def _try(world: World, configuration: Configuration, job: _Wanted, *, find_largest: bool) -> Simulation:
    others = {pod.spec.scheduler_name for pod in job.pods} - {world.scheduler_name}
    if others:
        words = f"its pods are scheduled by {', '.join(sorted(others))}, not by {world.scheduler_name}"
        return Simulation(False, outcome=Outcome(OutcomeCode.NOT_OURS, words))
    if not job.pods:
        return Simulation(True)
    return simulate_pods(world, configuration, job.pods, job.group, find_largest=find_largest)


def _kind_order(manifest: Raw) -> int:
    """Priority classes first: pods are read with them."""
    return manifest.get("kind") != "PriorityClass"


def _read(reading: _Reading, manifest: Raw) -> None:
    kind, api_version = str(manifest.get("kind", "")), str(manifest.get("apiVersion", ""))
    group = api_version.rpartition("/")[0]
    snapshot = reading.snapshot
    if group == GROUP and kind in _STRUCTS:
        reading.snapshot = _with_ours(snapshot, kind, manifest)
        return
    foreign = _foreign_kind(kind, api_version)
    if foreign is not None and foreign in _flat(GROUP_KINDS):
        reading.snapshot = replace(
            snapshot, foreign_groups=(*snapshot.foreign_groups, (foreign, _in_namespace(manifest)))
        )
    elif foreign is not None:
        known = snapshot.foreign_queues
        more = (*known.get(foreign.resource, ()), manifest)
        reading.snapshot = replace(snapshot, foreign_queues={**known, foreign.resource: more})
    elif kind == "Workload" and group == "scheduling.k8s.io":
        return  # only templates of gangs; the gangs themselves are objects of their own
    elif kind == "PriorityClass":
        known_classes = (*snapshot.priority_classes, msgspec.convert(manifest, PriorityClass))
        reading.snapshot = replace(snapshot, priority_classes=known_classes)
    elif kind == "Pod":
        pod = _pod(manifest, str(len(reading.loose)), snapshot)
        reading.loose.append((f"Pod/{pod.key}", pod))
    elif (wanted := _workload(kind, api_version, manifest, snapshot)) is None:
        return
    elif any(read_any_membership(pod).group for pod in wanted.pods):
        reading.loose += [(wanted.name, pod) for pod in wanted.pods]
    else:
        reading.jobs.append(wanted)


def _with_ours(snapshot: Snapshot, kind: str, manifest: Raw) -> Snapshot:
    try:
        obj = msgspec.convert(_in_namespace(manifest), _STRUCTS[kind])
    except msgspec.ValidationError as error:
        raise ConfigError(str(error), path=f"{kind} {(manifest.get('metadata') or {}).get('name')}") from error
    if isinstance(obj, Queue):
        return replace(snapshot, queues=(*(each for each in snapshot.queues if each.name != obj.name), obj))
    if isinstance(obj, JobQueue):
        return replace(snapshot, job_queues=(*(each for each in snapshot.job_queues if each.key != obj.key), obj))
    if isinstance(obj, PodGroup):
        return replace(snapshot, groups=(*(each for each in snapshot.groups if each.key != obj.key), obj))
    return replace(snapshot, quotas=(*snapshot.quotas, obj))


def _in_namespace(manifest: Raw) -> Raw:
    metadata = manifest.get("metadata") or {}
    return manifest | {"metadata": {"namespace": "default", "uid": f"simulated-{metadata.get('name')}"} | metadata}


def _flat(table: Iterable[tuple[RawKind, ...]]) -> list[RawKind]:
    return [kind for versions in table for kind in versions]


def _foreign_kind(kind: str, api_version: str) -> RawKind | None:
    both = (*_flat(QUEUE_KINDS), *_flat(GROUP_KINDS))
    return next((each for each in both if each.name == kind and each.api_version == api_version), None)


def _gather_loose(reading: _Reading) -> None:
    """Pods of the manifests by the gang they name; each of the others is a job of its own."""
    by_group: dict[str, list[tuple[str, Pod]]] = {}
    membership = picture(replace(reading.snapshot, pods=(), nodes=())).world.membership
    for maker, pod in reading.loose:
        by_group.setdefault(membership(pod).group or maker, []).append((maker, pod))
    for key, members in by_group.items():
        group = next((each for each in reading.snapshot.groups if each.key == key), None)
        spec = own.read_group(group, reading.snapshot.priority_of)[0] if group is not None else None
        makers = {maker for maker, _ in members}
        is_one = len(makers) == 1 and (key in makers or not members[0][0].startswith("Pod/"))
        name = members[0][0] if is_one else f"PodGroup/{key}"
        reading.jobs.append(_Wanted(name, [pod for _, pod in members], spec))


def _pod(manifest: Raw, number: str, snapshot: Snapshot) -> Pod:
    metadata = dict(manifest.get("metadata") or {})
    metadata.setdefault("namespace", "default")
    name = str(metadata.get("name") or f"{metadata.get('generateName', 'pod-')}{number}")
    moment = datetime.fromtimestamp(int(snapshot.now), UTC)
    metadata |= {"name": name, "uid": f"simulated-{metadata['namespace']}-{name}", "creationTimestamp": moment}
    spec = _with_requests(_with_texts(manifest.get("spec") or {}))
    priority = snapshot.priority_of(str(spec.get("priorityClassName") or ""))
    if priority is not None:
        spec = {"priority": priority} | spec
    raw = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    try:
        return msgspec.convert(raw, Pod)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error), path=f"Pod {name}") from error


_AMOUNTS: Final = ("requests", "limits", "overhead")


def _with_texts(value: Any) -> Any:
    """The same, with quantities that people write as numbers (`cpu: 1`) as the texts that objects hold."""
    if isinstance(value, Mapping):
        return {
            key: {name: str(amount) for name, amount in each.items()}
            if key in _AMOUNTS and isinstance(each, Mapping)
            else _with_texts(each)
            for key, each in value.items()
        }
    return [_with_texts(each) for each in value] if isinstance(value, list) else value


def _with_requests(spec: Raw) -> Raw:
    """The same, as a server stores it: what a container is limited to and does not ask for it asks for.

    Source: pkg/apis/core/v1/defaults.go SetDefaults_Pod, v1.36.
    """

    def filled(holder: Raw) -> Raw:
        resources = holder.get("resources") or {}
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {**holder, "resources": {**resources, "requests": requests}} if requests else holder

    both = ("containers", "initContainers")
    return {**filled(spec), **{name: [filled(each) for each in spec[name]] for name in both if spec.get(name)}}


def _is_kubernetes_own(api_version: str) -> bool:
    """Whether a kind is built in: of those all that make pods are known."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def _workload(kind: str, api_version: str, manifest: Raw, snapshot: Snapshot) -> _Wanted | None:
    """The pods an object's controller would make, and the gang they would be; None of a kind that makes none."""
    metadata = manifest.get("metadata") or {}
    namespace, name = str(metadata.get("namespace") or "default"), str(metadata.get("name") or "simulated")
    templates = list(_templates(manifest.get("spec") or {}))
    if not templates and _is_kubernetes_own(api_version):
        return None
    if not templates:
        raise ConfigError(f"no pod template in a {kind} of {api_version}: it makes no pods we know of", path=name)
    owner = TopOwner(api_version, kind, name, f"{kind.lower()}-{name}")
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"simulated-{name}", "controller": True}
    pods = []
    for role, template, count in templates:
        for number in range(count):
            words = template.get("metadata") or {}
            labels = dict(words.get("labels") or {})
            if role:
                labels.setdefault("training.kubeflow.org/replica-type", role)
            spec = {"schedulerName": snapshot.scheduler_name} | (template.get("spec") or {})
            made = {
                "name": f"{name}-{role + '-' if role else ''}{number}",
                "namespace": namespace,
                "labels": labels,
                "annotations": words.get("annotations") or {},
                "ownerReferences": [reference],
            }
            pods.append(_pod({"metadata": made, "spec": spec}, str(number), snapshot))
    if not pods:
        return _Wanted(f"{kind}/{namespace}/{name}", ())
    spec = wanted_spec(pods[0], owner, manifest) | {"minMember": minimum(pods[0], owner, manifest)}
    group = msgspec.convert(
        {"metadata": {"name": owner.group, "namespace": namespace, "uid": f"simulated-{name}"}, "spec": spec}, PodGroup
    )
    read = own.read_group(group, snapshot.priority_of)[0]
    return _Wanted(f"{kind}/{namespace}/{name}", pods, replace(read, created=snapshot.now))


def _templates(spec: Raw) -> Iterable[tuple[str, Raw, int]]:
    """(role, pod template, how many) of a workload's spec."""
    if isinstance(spec.get("template"), Mapping):
        count = spec.get("parallelism", spec.get("replicas", 1))
        completions = spec.get("completions")
        number = int(count) if count is not None else 1
        yield "", spec["template"], min(number, int(completions)) if completions is not None else number
    for field_name, roles in spec.items():
        if field_name.endswith("ReplicaSpecs") and isinstance(roles, Mapping):
            for role, each in roles.items():
                yield str(role).lower(), (each or {}).get("template") or {}, int((each or {}).get("replicas", 1))
    for job in spec.get("replicatedJobs") or ():
        below = (job.get("template") or {}).get("spec") or {}
        for _, template, count in _templates(below):
            yield str(job.get("name", "")).lower(), template, count * int(job.get("replicas", 1))
    for task in spec.get("tasks") or ():  # Volcano's Job
        yield str(task.get("name", "")).lower(), task.get("template") or {}, int(task.get("replicas", 1))
    yield from _ray(spec.get("rayClusterSpec") or spec)
    if isinstance(sets := spec.get("leaderWorkerTemplate"), Mapping):
        leader, workers = sets.get("leaderTemplate") or sets.get("workerTemplate") or {}, int(sets.get("size", 1)) - 1
        yield from (("leader", leader, 1), ("worker", sets.get("workerTemplate") or {}, workers))
    if isinstance(spec.get("jobTemplate"), Mapping):
        yield from _templates(spec["jobTemplate"].get("spec") or {})


def _ray(spec: Raw) -> Iterable[tuple[str, Raw, int]]:
    """A RayCluster's head and workers."""
    if isinstance(head := spec.get("headGroupSpec"), Mapping):
        yield "head", head.get("template") or {}, 1
        for each in spec.get("workerGroupSpecs") or ():
            yield str(each.get("groupName", "")).lower(), each.get("template") or {}, int(each.get("replicas", 1))
