"""The batch engine's configuration file: which actions and plugins run, with what, and how answers are combined.

    actions: [allocateJob, allocateZone, allocateQuota, bind, reclaim, backfill, releaseQuota]
    plugins:
      - name: gang
      - {name: binpack, arguments: {weight: 5}}
    expressions:
      jobOrder: firstNotPass(priority, gang, drf)

Volcano's form is read, too (`actions` as one string, `tiers`, `configurations`); its names stand for ours as the tables
below say. Everything else is refused, with the path of the field. An action or plugin may be given by its name alone.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.batch.expressions import Expression, default_expression, parse
from skysail.batch.points import POINTS
from skysail.batch.registry import ACTIONS, DEFAULT_ACTIONS, DEFAULT_PLUGINS, PLUGINS, Row, make_action, make_plugin
from skysail.batch.session import Arguments, Configuration
from skysail.scheduler.config.decode import decode_value
from skysail.scheduler.config.problems import Problems
from skysail.scheduler.config.strict_yaml import load_yaml

T = TypeVar("T")
API_VERSION: Final = "scheduling.skysail.io/v1alpha1"
KIND: Final = "BatchConfiguration"

VOLCANO_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "enqueue": (),
    "allocate": ("allocateJob", "allocateZone", "allocateQuota", "bind"),
    "preempt": ("reclaim",),
    "reclaim": ("reclaim",),
    "gangpreempt": ("reclaim",),
    "gangreclaim": ("reclaim",),
    "shuffle": (),
}
"""Volcano's actions. `enqueue` hides nothing here, so it does nothing; reclaiming and preempting are one action."""
VOLCANO_PLUGINS: Final[Mapping[str, str | None]] = {
    "proportion": "entitlement",
    "capacity": "entitlement",
    "overcommit": None,
    "network-topology-aware": None,
    "resourcequota": None,
}
"""Volcano's plugins under other names; None stands for those whose work needs no plugin here."""
VOLCANO_POINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "enabledJobOrder": ("jobOrder",),
    "enabledJobReady": ("jobReady",),
    "enabledJobPipelined": ("jobPipelined",),
    "enabledTaskOrder": ("taskOrder",),
    "enabledPreemptable": ("preemptable",),
    "enabledReclaimable": ("reclaimable",),
    "enabledQueueOrder": ("queueOrder",),
    "enabledPredicate": ("predicate",),
    "enabledBestNode": (),
    "enabledNodeOrder": ("nodeOrder", "batchNodeOrder"),
    "enabledOverused": ("overused",),
    "enabledAllocatable": ("allocatable",),
    "enabledJobEnqueued": ("jobEnqueueable",),
    "enabledJobStarving": ("jobStarving",),
    "enabledVictim": ("victim",),
    "enableHierarchy": (),
    "enablePreemptive": (),
}
"""Volcano's switches of a plugin at a point."""
_FIELDS: Final = (
    "apiVersion", "kind", "actions", "plugins", "expressions", "tiers", "configurations",
    "zoneLabel", "claimSeconds", "backoffSeconds",
)  # fmt: skip


class Named(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An action or plugin with its arguments."""

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


class Numbers(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The plain settings; defaults and meaning stand in `Configuration`."""

    zone_label: str = "zone"
    claim_seconds: float = 300.0
    backoff_seconds: float = 1.0


def default_configuration() -> Configuration:
    """What runs without a file."""
    return Configuration(
        tuple(make_action(name) for name in DEFAULT_ACTIONS), tuple(make_plugin(name) for name in DEFAULT_PLUGINS)
    )


def load_configuration(text: str | bytes, file: str = "") -> Configuration:
    """Read a configuration file.

    Raises:
        ConfigError: It cannot be used; names every fault with its path.
    """
    document = load_yaml(text, file)
    if document is None:
        return default_configuration()
    if not isinstance(document, dict):
        raise ConfigError("a mapping with actions and plugins is wanted", file=file)
    reader = _Reader(document)
    found = reader.read()
    reader.problems.raise_if_any(file)
    assert found is not None
    return found


class _Reader:
    def __init__(self, document: Raw) -> None:
        self._document = document
        self.problems = Problems()
        self._switched_off: dict[str, set[str]] = {}

    def read(self) -> Configuration | None:
        document, problems = self._document, self.problems
        for field in document:
            if field not in _FIELDS:
                problems.add(str(field), f"unknown field; accepted here: {', '.join(_FIELDS)}")
        for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            if document.get(field, wanted) != wanted:
                problems.add(field, f"{document[field]!r} is not supported: {wanted} is wanted")
        if "plugins" in document and "tiers" in document:
            problems.forbidden("tiers", "plugins are given already; one of the two is wanted")
        actions, plugins = self._actions(), self._plugins()
        if not actions and not problems:
            problems.required("actions", "at least one")
        names = [name for name, _ in plugins]
        expressions = self._expressions(names)
        plain = {key: document[key] for key in ("zoneLabel", "claimSeconds", "backoffSeconds") if key in document}
        numbers = decode_value(Numbers, plain, "", problems)
        if problems or numbers is None:
            return None
        return Configuration(
            tuple(make_action(name, arguments) for name, arguments in actions),
            tuple(make_plugin(name, arguments) for name, arguments in plugins),
            expressions,
            numbers.zone_label,
            numbers.claim_seconds,
            numbers.backoff_seconds,
        )

    # -- actions ---------------------------------------------------------------------------------------------------

    def _actions(self) -> list[tuple[str, Arguments]]:
        given = self._document.get("actions", list(DEFAULT_ACTIONS))
        if isinstance(given, str):
            given = [name.strip() for name in given.split(",") if name.strip()]
        configured = self._volcano_arguments()
        found: dict[str, Arguments] = {}
        for path, named in self._named(given, "actions"):
            names = (named.name,) if named.name in ACTIONS else VOLCANO_ACTIONS.get(named.name)
            if names is None:
                self.problems.unsupported(f"{path}.name", named.name, [*ACTIONS, *VOLCANO_ACTIONS])
                continue
            arguments = named.arguments or configured.get(named.name, {})
            for name in names:
                decoded = self._arguments(ACTIONS[name], arguments if len(names) == 1 else {}, f"{path}.arguments")
                if decoded is not None:
                    found.setdefault(name, decoded)
        return list(found.items())

    def _volcano_arguments(self) -> dict[str, dict[str, Any]]:
        return {
            named.name: named.arguments
            for _, named in self._named(self._document.get("configurations", []), "configurations")
        }

    # -- plugins ---------------------------------------------------------------------------------------------------

    def _plugins(self) -> list[tuple[str, Arguments]]:
        if "tiers" in self._document:
            given = self._volcano_plugins()
        else:
            given = list(self._named(self._document.get("plugins", list(DEFAULT_PLUGINS)), "plugins"))
        found: dict[str, Arguments] = {}
        for path, named in given:
            name = VOLCANO_PLUGINS.get(named.name, named.name)
            if name is None:
                continue
            if name not in PLUGINS:
                self.problems.unsupported(f"{path}.name", named.name, [*PLUGINS, *VOLCANO_PLUGINS])
            elif name in found:
                if named.name == name:
                    self.problems.duplicate(f"{path}.name", named.name)
            else:
                decoded = self._arguments(PLUGINS[name], named.arguments, f"{path}.arguments")
                if decoded is not None:
                    found[name] = decoded
        return list(found.items())

    def _volcano_plugins(self) -> list[tuple[str, Named]]:
        found: list[tuple[str, Named]] = []
        for tier, given in enumerate(self._document["tiers"] or []):
            below = given.get("plugins", []) if isinstance(given, dict) else []
            if not isinstance(given, dict) or set(given) - {"plugins"}:
                self.problems.add(f"tiers[{tier}]", "a mapping with plugins is wanted")
            for index, plugin in enumerate(below):
                path = f"tiers[{tier}].plugins[{index}]"
                if not isinstance(plugin, dict):
                    self.problems.add(path, "a mapping with a name is wanted")
                    continue
                self._switches(path, plugin)
                rest = {key: value for key, value in plugin.items() if key not in VOLCANO_POINTS}
                if isinstance(rest.get("arguments"), dict):
                    rest["arguments"] = _volcano_plugin_arguments(str(rest.get("name")), rest["arguments"])
                named = decode_value(Named, rest, path, self.problems)
                if named is not None:
                    found.append((path, named))
        return found

    def _switches(self, path: str, plugin: Raw) -> None:
        name = VOLCANO_PLUGINS.get(str(plugin.get("name")), str(plugin.get("name")))
        for switch, points in VOLCANO_POINTS.items():
            if switch in plugin and not isinstance(plugin[switch], bool):
                self.problems.invalid(f"{path}.{switch}", plugin[switch], "true or false is wanted")
            elif plugin.get(switch) is False and name is not None:
                for point in points:
                    self._switched_off.setdefault(point, set()).add(name)

    # -- expressions -----------------------------------------------------------------------------------------------

    def _expressions(self, plugins: list[str]) -> dict[str, Expression]:
        given = self._document.get("expressions") or {}
        found: dict[str, Expression] = {}
        for point, off in self._switched_off.items():
            made = default_expression(POINTS[point], [name for name in plugins if name not in off])
            if made is not None:
                found[point] = made
        if not isinstance(given, dict):
            self.problems.add("expressions", "a mapping of points to expressions is wanted")
            return found
        for point, text in given.items():
            path = f"expressions.{point}"
            if point not in POINTS:
                self.problems.add(path, f"unknown point; accepted here: {', '.join(POINTS)}")
            elif not isinstance(text, str):
                self.problems.add(path, "an expression is a string")
            else:
                try:
                    found[point] = parse(text, POINTS[point], plugins)
                except ConfigError as error:
                    self.problems.add(error.path, error.message)
        return found

    # -- shared ----------------------------------------------------------------------------------------------------

    def _named(self, given: object, path: str) -> list[tuple[str, Named]]:
        if not isinstance(given, list):
            self.problems.add(path, f"a list is wanted, not {type(given).__name__}")
            return []
        found: list[tuple[str, Named]] = []
        for index, item in enumerate(given):
            below = f"{path}[{index}]"
            named = decode_value(Named, {"name": item} if isinstance(item, str) else item, below, self.problems)
            if named is not None:
                found.append((below, named))
        return found

    def _arguments(self, row: Row, given: Raw, path: str) -> Arguments | None:
        return decode_value(row[1], given, path, self.problems)


def _volcano_plugin_arguments(plugin: str, given: Raw) -> Raw:
    """Volcano writes `binpack.weight: 10`, `binpack.cpu: 5`, `binpack.resources.nvidia.com/gpu: 2`."""
    if plugin != "binpack":
        return given
    found: Raw = {}
    resources: dict[str, int] = {}
    for key, value in given.items():
        name = str(key).removeprefix("binpack.")
        number = int(value) if isinstance(value, str) and value.isdigit() else value
        if name == "weight":
            found["weight"] = number
        elif name != "resources":
            resources[name.removeprefix("resources.")] = number
    if resources:
        found["resources"] = resources
    return found
