"""The scenario's file: what there is, what happens when, and when it ends. Everything unknown is refused by its path.

seed: 7                                     # --seed says otherwise
config: {actions: [...]}                    # the engine's configuration; the default one when absent
nodes: 4                                    # node-0, node-1, ..., or Node objects among `objects`
objects: [{apiVersion: ..., kind: ...}, ...]
objectFiles: [manifests.yaml]               # beside the scenario's own file
schedulerName: sky-scheduler
steps:                                      # any number of acts at a moment, done in the order they are written in
  - {at: 5, apply: {...}}                   # one thing or a list, as with every act; Nodes become hollow nodes
  - {at: 5, applyFiles: [more.yaml]}
  - {at: 6, delete: {kind: Pod, name: a}}   # or Pod/a, or a manifest
  - {at: 7, patch: {kind: Queue, name: q, patch: {spec: {...}}}}
  - {at: 8, delayWatch: {kind: Pod, seconds: 3}}
  - {at: 9, failBind: {match: "train-*", times: 2}}
  - {at: 10, failNode: node-1}
  - {at: 11, recoverNode: node-1}
  - {at: 12, addNode: {name: node-9, capacity: {cpu: "8"}}}
  - {at: 13, setDevice: {node: node-1, resource: nvidia.com/gpu, count: 6}}
  - {at: 14, crash: scheduler}
run: {cycles: 30}                           # or {until: 60}, seconds; when absent, 20 seconds after the last step
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import yaml

from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.batch.config import default_configuration, load_configuration
from skysail.batch.session import Configuration
from skysail.scheduler.config.durations import parse_duration
from skysail.scheduler.config.strict_yaml import load_yaml
from skysail.testing.batch_replay.acts import Act, AddNode, Apply, FailNode, Part, RecoverNode, SetDevice
from skysail.testing.batch_replay.kinds import DEFINITION, KnownKinds, kinds_defined
from skysail.testing.batch_replay.reading import ACTS, Place, node_of, read_acts, unfolded

GRACE_SECONDS: Final = 20.0
"""How long a run goes on after its last step when nothing else is said."""
MOST_NODES: Final = 100_000
FIRST: Final = {"CustomResourceDefinition": 0, "Namespace": 1, "PriorityClass": 2, "StorageClass": 2, "Node": 3}
"""What is made before everything else at the start, whatever the order in the file: others cannot do without."""


class Run(Part, frozen=True, kw_only=True):
    """When it ends: after so many cycles, or so many seconds.

    Attributes:
        cycles: Cycles, idle ones (one a second) included.
        until: Seconds.
    """

    cycles: Annotated[int, msgspec.Meta(ge=1)] | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What happens at a moment.

    Attributes:
        at: Seconds after the engine was started.
        acts: What, in order, each with the place where it stands.
    """

    at: float
    acts: tuple[tuple[Act, Place], ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole file.

    Attributes:
        objects: What is made at the start beside the nodes, in that order; each with its place.
        nodes: Hollow nodes there are at the start.
        steps: What happens, in the order of time.
        run: When it ends.
        configuration: The engine's.
        kinds: All that it may speak of.
        scheduler_name: Whose pods the engine schedules.
        seed: Of names, uids and ties.
        name: For people.
    """

    objects: tuple[tuple[Act, Place], ...]
    nodes: tuple[AddNode, ...]
    steps: tuple[Step, ...]
    run: Run
    configuration: Configuration
    kinds: KnownKinds
    scheduler_name: str = "sky-scheduler"
    seed: int = 0
    name: str = ""


class _File(Part, frozen=True, kw_only=True):
    """The file's own fields; objects and steps are read one by one."""

    objects: tuple[Any, ...] = ()
    object_files: tuple[str, ...] = ()
    scheduler_name: str = "sky-scheduler"
    steps: tuple[Any, ...] = ()
    run: Run | None = None
    nodes: Annotated[int, msgspec.Meta(ge=0, le=MOST_NODES)] = 0
    config: Raw | str | None = None
    seed: int = 0
    name: str = ""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario's file.

    Raises:
        ConfigError: It cannot be read, or does not say what a scenario says; with the path of the field.
    """
    file, place = _read_file(path)
    objects = [
        (each, place.below("objects").below(number))
        for number, obj in enumerate(file.objects)
        for each in unfolded(obj, place.below("objects").below(number))
    ]
    objects += _objects_of(file.object_files, path.parent, place.below("objectFiles"))
    objects.sort(key=lambda each: FIRST.get(each[0]["kind"], 9))
    nodes = [AddNode(name=f"node-{number}") for number in range(file.nodes)]
    nodes += [node_of(obj, where) for obj, where in objects if obj["kind"] == "Node"]
    steps = [_step(each, place.below("steps").below(n), path.parent) for n, each in enumerate(file.steps)]
    steps.sort(key=lambda step: step.at)
    _check_nodes(nodes, steps)
    run = file.run or Run(until=GRACE_SECONDS + max((step.at for step in steps), default=0.0))
    if (run.cycles is None) == (run.until is None):
        raise place.below("run").fault("one of cycles and until is wanted")
    if run.until is not None:
        _seconds(run.until, place.below("run").below("until"))
    return Scenario(
        tuple((Apply(object=obj), where) for obj, where in objects if obj["kind"] != "Node"),
        tuple(nodes),
        tuple(steps),
        run,
        _configuration(file.config, place.below("config")),
        place.kinds,
        file.scheduler_name,
        file.seed,
        file.name,
    )


def _read_file(path: Path) -> tuple[_File, Place]:
    file = str(path)
    try:
        document = load_yaml(path.read_bytes(), file)
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", file=file) from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError("is no scenario: a mapping is wanted", file=file)
    known = [field.encode_name for field in msgspec.structs.fields(_File)]
    for field in document:
        if field not in known:
            raise ConfigError(f"unknown; known are {', '.join(known)}", file=file, path=str(field))
    try:
        found = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at ")
        raise ConfigError(words.replace("`", ""), file=file, path=where.strip("`").removeprefix("$.")) from error
    return found, Place(file, "", KnownKinds(kinds_defined(_definitions(document, found, path.parent))))


def _definitions(document: Raw, file: _File, folder: Path) -> list[Raw]:
    """The kinds a scenario defines itself, wherever it does: they must be known before its objects are read."""
    found = list(file.objects)
    for step in file.steps:
        if isinstance(step, dict):
            applied = step.get("apply")
            found += applied if isinstance(applied, list) else [applied]
    for names in (file.object_files, *(step.get("applyFiles") for step in file.steps if isinstance(step, dict))):
        for name in names if isinstance(names, list | tuple) else ():
            found += _documents(folder / str(name))
    return [each for each in found if isinstance(each, dict) and each.get("kind") == DEFINITION]


def _documents(file: Path) -> list[object]:
    try:
        return [each for each in yaml.safe_load_all(file.read_text()) if each is not None]
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", file=str(file)) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"is no YAML: {' '.join(str(error).split())}", file=str(file)) from error


def _objects_of(names: Iterable[str], folder: Path, place: Place) -> list[tuple[Raw, Place]]:
    found: list[tuple[Raw, Place]] = []
    for name in names:
        for number, document in enumerate(_documents(folder / name), 1):
            where = Place(str(folder / name), f"document {number}", place.kinds)
            found += [(each, where) for each in unfolded(document, where)]
    return found


def _configuration(config: Raw | str | None, place: Place) -> Configuration:
    if config is None:
        return default_configuration()
    text = config if isinstance(config, str) else yaml.safe_dump(config)
    return load_configuration(text, f"{place.file}: {place.path}")


def _step(value: object, place: Place, folder: Path) -> Step:
    words = ("at", "applyFiles", *ACTS)
    if not isinstance(value, dict):
        raise place.fault(f"a mapping is wanted, of at and one or more of {', '.join(words[1:])}")
    for word in value:
        if word not in words:
            raise place.below(str(word)).fault(f"unknown; known are {', '.join(words)}")
    acts: list[tuple[Act, Place]] = []
    for word, each in value.items():
        where = place.below(word)
        if word == "applyFiles":
            names = each if isinstance(each, list) else [each]
            acts += [(Apply(object=obj), at) for obj, at in _objects_of(map(str, names), folder, where)]
        elif word != "at":
            acts += [(act, where) for act in read_acts(word, each, where)]
    if not acts and not any(word in value for word in words[1:]):
        raise place.fault(f"nothing happens: one or more of {', '.join(words[1:])} is wanted")
    return Step(_seconds(value.get("at", 0), place.below("at")), tuple(acts))


def _seconds(value: object, place: Place) -> float:
    """Seconds, as a number or as a duration."""
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise place.fault(f"seconds are wanted, not {value!r}") from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise place.fault(f"seconds from 0 on are wanted, not {value!r}")
    return float(value)


def _check_nodes(nodes: list[AddNode], steps: list[Step]) -> None:
    """A node that something happens to must have been added before."""
    known = {node.name for node in nodes}
    for step in steps:
        for act, place in step.acts:
            if isinstance(act, AddNode):
                known.add(act.name)
            elif isinstance(act, Apply) and act.object["kind"] == "Node":
                known.add(act.object["metadata"]["name"])
            name = act.node if isinstance(act, SetDevice) else ""
            name = act.name if isinstance(act, FailNode | RecoverNode) else name
            if name and name not in known:
                raise place.fault(f"there is no node {name!r} at that time; there are {', '.join(sorted(known))}")
