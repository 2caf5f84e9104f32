"""The scenario's file: what there is, what happens when, and when it ends. Everything unknown is refused by its path.

seed: 7                                     # --seed says otherwise
config: {actions: [...]}                    # the engine's configuration; the default one when absent
nodes: 4                                    # or Node objects among `objects`
objects: [{apiVersion: ..., kind: ...}, ...]
objectFiles: [manifests.yaml]               # beside the scenario's own file
schedulerName: sky-scheduler
steps:
  - {at: 5, apply: {...}}                   # one object or a list; Nodes become hollow nodes
  - {at: 5, applyFiles: [more.yaml]}
  - {at: 6, delete: {kind: Pod, name: a}}
  - {at: 7, patch: {kind: Queue, name: q, patch: {spec: {...}}}}
  - {at: 8, delayWatch: {kind: Pod, seconds: 3}}
  - {at: 9, failBind: {match: "train-*", times: 2}}
  - {at: 10, failNode: node-1}
  - {at: 11, recoverNode: node-1}
  - {at: 12, addNode: {name: node-9, capacity: {cpu: "8"}}}
  - {at: 13, setDevice: {node: node-1, resource: nvidia.com/gpu, count: 6}}
  - {at: 14, crash: scheduler}
run: {cycles: 30}                           # or {until: 60}, seconds
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import replace

from skysail.api.errors import ConfigError
from skysail.api.kinds import KINDS, Kind
from skysail.api.raw import Raw
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.kinds import batch_definitions
from skysail.scheduler.config.decode import load_yaml
from skysail.simulator.hollow import HollowNode

ACTS: Final = (
    "apply", "applyFiles", "delete", "patch", "delayWatch", "failBind", "failNode", "recoverNode", "addNode",
    "setDevice", "crash",
)  # fmt: skip
DEFAULT_CAPACITY: Final[Mapping[str, str]] = {"cpu": "8", "memory": "32Gi", "pods": "110"}


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file."""


class Named(_Part, frozen=True, kw_only=True):
    """An object by name.

    Attributes:
        kind: Its kind.
        name: Its name.
        namespace: Where; ignored for kinds without.
        api_version: Where several APIs have the kind.
    """

    kind: str
    name: str
    namespace: str = "default"
    api_version: str = ""


class Patch(Named, frozen=True, kw_only=True):
    """A merge patch.

    Attributes:
        patch: The change.
        subresource: For example `status`.
    """

    patch: Raw
    subresource: str = ""


class DelayWatch(_Part, frozen=True, kw_only=True):
    """The engine hears of a kind later from now on.

    Attributes:
        kind: Which.
        seconds: How much later; 0 ends it.
    """

    kind: str
    seconds: float


class FailBind(_Part, frozen=True, kw_only=True):
    """The next bindings of these pods are refused.

    Attributes:
        match: The pods' names, `*` stands for anything.
        times: How many.
    """

    match: str = "*"
    times: int = 1


class AddNode(_Part, frozen=True, kw_only=True):
    """A hollow node more.

    Attributes:
        name: Its name.
        capacity: Its capacity; what every node has when empty.
        labels: Its labels.
        taints: Its taints.
    """

    name: str
    capacity: dict[str, int | str] = {}
    labels: dict[str, str] = {}
    taints: list[Raw] = []

    def hollow(self) -> HollowNode:
        """As the simulator takes it."""
        capacity = {name: str(amount) for name, amount in self.capacity.items()}
        return HollowNode(self.name, capacity={**DEFAULT_CAPACITY, **capacity}, labels=self.labels, taints=self.taints)


class SetDevice(_Part, frozen=True, kw_only=True):
    """A node offers another number of devices from now on.

    Attributes:
        node: Its name.
        resource: The devices' resource.
        count: How many there are.
    """

    node: str
    resource: str = "nvidia.com/gpu"
    count: int = 0


class Run(_Part, frozen=True, kw_only=True):
    """When it ends: after so many cycles, or so many seconds.

    Attributes:
        cycles: Cycles, idle ones (one a second) included.
        until: Seconds.
    """

    cycles: int | None = None
    until: float | None = None


class Step(_Part, frozen=True, kw_only=True):
    """What happens at a moment: exactly one of the acts.

    Attributes:
        at: Seconds after the engine was started.
        apply: Objects to make or change.
        apply_files: Files of such objects, beside the scenario's own.
        delete: Objects to delete.
        patch: Changes to make.
        delay_watch: News that comes late.
        fail_bind: Bindings that are refused.
        fail_node: A node that falls silent.
        recover_node: A node that speaks again.
        add_node: A node more.
        set_device: Devices that come or go.
        crash: `scheduler`: killed and started anew.
    """

    at: float = 0.0
    apply: Raw | list[Raw] | None = None
    apply_files: list[str] | None = None
    delete: Named | list[Named] | None = None
    patch: Patch | list[Patch] | None = None
    delay_watch: DelayWatch | None = None
    fail_bind: FailBind | None = None
    fail_node: str | None = None
    recover_node: str | None = None
    add_node: AddNode | list[AddNode] | None = None
    set_device: SetDevice | None = None
    crash: str | None = None


class Scenario(_Part, frozen=True, kw_only=True):
    """A whole file.

    Attributes:
        nodes: How many equal hollow nodes there are beside Node objects.
        objects: What there is at the start.
        object_files: Files of such objects, beside the scenario's own.
        scheduler_name: Whose pods the engine schedules.
        steps: What happens.
        run: When it ends.
        config: The engine's configuration.
        seed: Of names, uids and ties.
        name: For people.
    """

    objects: list[Raw] = []
    object_files: list[str] = []
    scheduler_name: str = "sky-scheduler"
    steps: list[Step] = []
    run: Run = Run(cycles=20)
    nodes: int = 0
    config: Raw | None = None
    seed: int = 0
    name: str = ""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario's file.

    Raises:
        ConfigError: It cannot be read, or does not say what a scenario says; with the path of the field.
    """
    file = str(path)
    try:
        document = load_yaml(path.read_bytes(), file)
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", file=file) from error
    try:
        scenario = msgspec.convert(document, Scenario)
    except msgspec.ValidationError as error:
        raise ConfigError(f"is no scenario: {error}", file=file) from error
    scenario = _with_files(scenario, path.parent)
    for number, obj in enumerate(scenario.objects):
        _check_object(obj, file, f"objects[{number}]")
    for number, step in enumerate(scenario.steps):
        _check_step(step, file, f"steps[{number}]")
    if (scenario.run.cycles is None) == (scenario.run.until is None):
        raise ConfigError("one of cycles and until is wanted", file=file, path="run")
    return scenario


def _with_files(scenario: Scenario, folder: Path) -> Scenario:
    """With the objects of the files it names in the places of their names."""
    objects = [*scenario.objects, *_read_files(scenario.object_files, folder)]
    steps = [
        replace(step, apply=_read_files(step.apply_files, folder), apply_files=None) if step.apply_files else step
        for step in scenario.steps
    ]
    return replace(scenario, objects=objects, steps=steps)


def _read_files(names: list[str], folder: Path) -> list[Raw]:
    found: list[Raw] = []
    for name in names:
        file = folder / name
        try:
            documents = list(yaml.safe_load_all(file.read_text()))
        except OSError as error:
            raise ConfigError(error.strerror or "cannot be read", file=str(file)) from error
        except yaml.YAMLError as error:
            raise ConfigError(f"is no YAML: {error}", file=str(file)) from error
        found += [document for document in documents if document is not None]
    for number, obj in enumerate(found):
        if not isinstance(obj, dict):
            raise ConfigError("is no object", file=str(folder), path=f"document {number + 1}")
    return found


def _check_step(step: Step, file: str, path: str) -> None:
    given = [act for act in ACTS if getattr(step, _attribute(act)) is not None]
    if len(given) != 1:
        raise ConfigError(f"exactly one of {', '.join(ACTS)} is wanted", file=file, path=path)
    if step.crash not in (None, "scheduler"):
        raise ConfigError(f"{step.crash!r}: only the scheduler can crash", file=file, path=f"{path}.crash")
    for obj in listed(step.apply):
        _check_object(obj, file, f"{path}.apply")
    for each in (*listed(step.delete), *listed(step.patch)):
        if find_kind(each.kind, each.api_version) is None:
            raise ConfigError(f"unknown kind {each.kind!r}", file=file, path=f"{path}.{given[0]}.kind")


def _check_object(obj: Raw, file: str, path: str) -> None:
    name = (obj.get("metadata") or {}).get("name")
    if not isinstance(name, str) or find_kind(str(obj.get("kind")), str(obj.get("apiVersion"))) is None:
        words = f"apiVersion, a known kind and metadata.name are wanted, not {obj.get('apiVersion')}, {obj.get('kind')}"
        raise ConfigError(words, file=file, path=path)


def _attribute(act: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in act)


def listed(value: Any) -> list[Any]:
    """What may be one or several, as a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _custom_kinds() -> list[Kind[Raw]]:
    found = []
    for definition in (*batch_definitions(), *foreign_definitions()):
        spec = definition["spec"]
        for version in spec["versions"]:
            names = spec["names"]
            namespaced = spec["scope"] == "Namespaced"
            found.append(Kind(spec["group"], version["name"], names["kind"], names["plural"], namespaced, dict))
    return found


_KINDS: Final[tuple[Kind[Any], ...]] = (*KINDS, *_custom_kinds())


def find_kind(name: str, api_version: str = "") -> Kind[Any] | None:
    """A kind by name; of several APIs that have it the built-in one, then ours, unless the version says which."""
    return next(
        (kind for kind in _KINDS if kind.name == name and (not api_version or kind.api_version == api_version)), None
    )
