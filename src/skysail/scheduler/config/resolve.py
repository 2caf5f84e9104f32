"""Which plugins run at which point, in which order, with which weight.

Precedence, strongest first: a point's own set, `multiPoint` as configured, the default plugins (which are a
`multiPoint` set). Within one point the order is:

    1. plugins that multiPoint enables and the point re-configures, in the point's order
    2. plugins enabled by multiPoint only, in its order
    3. the point's other plugins, in its order

A re-configured default plugin keeps its place in the default order; `disabled: [{name: "*"}]` at a point leaves only
the point's own plugins.

Source: pkg/scheduler/apis/config/v1/default_plugins.go (mergePlugins), pkg/scheduler/framework/runtime/framework.go
(NewFramework, expandMultiPointPlugins), v1.36.
Differs: a default plugin that is not built is left out and listed; asking for it by name is an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from skysail.api.raw import Raw
from skysail.scheduler.config.arguments import check_arguments, decode_arguments, default_arguments, with_gates
from skysail.scheduler.config.decode import decode_configuration
from skysail.scheduler.config.defaults import EXTENSION_POINTS, default_plugins
from skysail.scheduler.config.problems import Problems
from skysail.scheduler.config.types import (
    POINTS,
    WIRE_POINTS,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    Plugins,
    PluginSet,
)
from skysail.scheduler.config.validation import validate, with_defaults
from skysail.scheduler.plugins.args import NodeResourcesFitArgs, PluginArgs

_FIT = "NodeResourcesFit"
ExtensionPoints = Mapping[str, frozenset[str]]
"""The plugins there are, by name, each with the points it extends (`pre_filter`, `score`, ...)."""


@dataclass(frozen=True)
class ResolvedProfile:
    """One profile, ready to be made.

    Attributes:
        scheduler_name: Whose pods it schedules.
        percentage_of_nodes_to_score: Its own or the global one; None looks at every node.
        plugins: For each point the names of its plugins, in order; points without any are absent.
        weights: The weight of each Score plugin.
        args: Decoded arguments of the plugins that take some; a third party's as they stand.
        left_out: Default plugins that are not built.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]
    args: Mapping[str, PluginArgs | Raw]
    left_out: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every plugin that runs somewhere, once, in order of its first point."""
        return tuple(dict.fromkeys(name for point in POINTS for name in self.plugins.get(point, ())))


@dataclass(frozen=True)
class ResolvedConfiguration:
    """A configuration that can be run.

    Attributes:
        source: With defaults, as read.
        gates: The feature gates it was resolved under.
        profiles: One for each of `source.profiles`.
    """

    source: KubeSchedulerConfiguration
    gates: Mapping[str, bool]
    profiles: tuple[ResolvedProfile, ...]


def load_configuration(
    text: str | bytes | None, gates: Mapping[str, bool], points: ExtensionPoints, file: str = ""
) -> ResolvedConfiguration:
    """Read, check and resolve a configuration; None is the default one.

    Raises:
        ConfigError: With the file, the path of each fault, and what would be accepted.
    """
    config = KubeSchedulerConfiguration() if text is None else decode_configuration(text, file)
    return resolve(config, gates, points, file)


def resolve(
    config: KubeSchedulerConfiguration, gates: Mapping[str, bool], points: ExtensionPoints, file: str = ""
) -> ResolvedConfiguration:
    """Check a decoded configuration and work out what runs.

    Raises:
        ConfigError: See `load_configuration`.
    """
    config = with_defaults(config)
    problems = Problems()
    validate(config, gates, problems)
    problems.raise_if_any(file)
    profiles = tuple(
        _ProfileResolver(profile, f"profiles[{index}]", config, gates, points, problems).resolve()
        for index, profile in enumerate(config.profiles)
    )
    problems.raise_if_any(file)
    for index, profile in enumerate(profiles[1:], start=1):
        sort = profile.plugins["queue_sort"][0]
        if sort != profiles[0].plugins["queue_sort"][0]:
            problems.invalid(f"profiles[{index}].plugins.queueSort", sort, "must be the same for all profiles")
    problems.raise_if_any(file)
    return ResolvedConfiguration(config, gates, profiles)


def beside_extenders(profile: ResolvedProfile, extenders: Iterable[Extender]) -> ResolvedProfile:
    """The profile as it runs beside extenders: NodeResourcesFit ignores the resources that these want ignored."""
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    fit = profile.args.get(_FIT)
    if not ignored or not isinstance(fit, NodeResourcesFitArgs):
        return profile
    return replace(profile, args={**profile.args, _FIT: msgspec.structs.replace(fit, ignored_resources=ignored)})


def merge_plugin_set(defaults: Sequence[PluginRef], custom: PluginSet) -> PluginSet:
    """The default set as a user's set changes it."""
    disabled = {plugin.name for plugin in custom.disabled}
    by_name = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    enabled: list[PluginRef] = []
    replacing: set[int] = set()
    for plugin in () if "*" in disabled else defaults:
        if plugin.name in disabled:
            continue
        index = by_name.get(plugin.name)
        if index is not None:
            replacing.add(index)
        enabled.append(plugin if index is None else custom.enabled[index])
    enabled += [plugin for index, plugin in enumerate(custom.enabled) if index not in replacing]
    return PluginSet(enabled=tuple(enabled), disabled=custom.disabled)


class _ProfileResolver:
    def __init__(
        self,
        profile: KubeSchedulerProfile,
        path: str,
        config: KubeSchedulerConfiguration,
        gates: Mapping[str, bool],
        points: ExtensionPoints,
        problems: Problems,
    ) -> None:
        self._profile, self._path, self._config = profile, path, config
        self._gates, self._points, self._problems = gates, points, problems
        self._custom = profile.plugins or Plugins()
        defaults = default_plugins(gates)
        self._left_out = tuple(plugin.name for plugin in defaults if plugin.name not in points)
        built = [plugin for plugin in defaults if plugin.name in points]
        self._multi_point = merge_plugin_set(built, self._custom.multi_point)

    def resolve(self) -> ResolvedProfile:
        """The profile; faults go to the problems, and the result is then not to be used."""
        before = len(self._problems.found)
        plugins = {point: self._point(point) for point in POINTS}
        if len(self._problems.found) == before:
            self._check_counts(plugins)
        needed = self._needed()
        return ResolvedProfile(
            scheduler_name=self._profile.scheduler_name or "",
            percentage_of_nodes_to_score=(
                self._config.percentage_of_nodes_to_score
                if self._profile.percentage_of_nodes_to_score is None
                else self._profile.percentage_of_nodes_to_score
            ),
            plugins={point: names for point, names in plugins.items() if names},
            weights=self._weights(plugins["score"]),
            args=self._arguments(needed),
            left_out=tuple(name for name in self._left_out if name not in self._disabled()),
        )

    def _point(self, point: str) -> tuple[str, ...]:
        own: PluginSet = getattr(self._custom, point)
        names = self._own_names(point, own)
        disabled = {plugin.name for plugin in own.disabled}
        if "*" in disabled:
            return tuple(names)
        overridden: set[str] = set()
        from_multi_point: list[str] = []
        for plugin in self._multi_point.enabled:
            if not self._exists(plugin.name, "multi_point", POINTS[point]):
                break
            if point not in self._points[plugin.name] or plugin.name in disabled:
                continue
            if plugin.name in names:
                overridden.add(plugin.name)
            elif plugin.name in from_multi_point:
                self._twice(plugin.name, "multi_point", POINTS[point])
            else:
                from_multi_point.append(plugin.name)
        return (
            *(name for name in names if name in overridden),
            *from_multi_point,
            *(name for name in names if name not in overridden),
        )

    def _own_names(self, point: str, own: PluginSet) -> list[str]:
        names: list[str] = []
        for plugin in own.enabled:
            if not self._exists(plugin.name, point, POINTS[point]):
                continue
            if point not in self._points[plugin.name]:
                self._problems.add(
                    self._place(plugin.name, point), f'plugin "{plugin.name}" does not extend {POINTS[point]} plugin'
                )
            elif plugin.name in names:
                self._twice(plugin.name, point, POINTS[point])
            else:
                names.append(plugin.name)
        return names

    def _exists(self, name: str, section: str, kind: str) -> bool:
        if name in self._points:
            return True
        place = self._place(name, section)
        if all(path != place for path, _ in self._problems.found):
            why = f'{kind} "{name}" does not exist'
            if name in EXTENSION_POINTS:
                why = f'{kind} "{name}" is not built into this version of Skysail; leave it out'
            self._problems.add(place, why)
        return False

    def _twice(self, name: str, section: str, kind: str) -> None:
        place = self._place(name, section)
        if all(path != place for path, _ in self._problems.found):
            self._problems.add(place, f'plugin "{name}" already registered as "{kind}"')

    def _place(self, name: str, section: str) -> str:
        enabled: Sequence[PluginRef] = getattr(self._custom, section).enabled
        place = f"{self._path}.plugins.{WIRE_POINTS[section]}"
        indices = [index for index, plugin in enumerate(enabled) if plugin.name == name]
        return f"{place}.enabled[{indices[-1]}]" if indices else place

    def _check_counts(self, plugins: Mapping[str, tuple[str, ...]]) -> None:
        name = self._profile.scheduler_name
        if len(plugins["queue_sort"]) != 1:
            self._problems.add(
                f"{self._path}.plugins.queueSort",
                f'only one queue sort plugin required for profile with scheduler name "{name}", '
                f"but got {len(plugins['queue_sort'])}",
            )
        if not plugins["bind"]:
            self._problems.add(
                f"{self._path}.plugins.bind",
                f'at least one bind plugin is needed for profile with scheduler name "{name}"',
            )

    def _weights(self, score: Iterable[str]) -> dict[str, int]:
        configured: dict[str, int] = {}
        for plugin in (*self._custom.score.enabled, *self._multi_point.enabled):
            configured.setdefault(plugin.name, plugin.weight or 1)
        return {name: configured[name] for name in score}

    def _needed(self) -> set[str]:
        sets: list[PluginSet] = [self._multi_point, *(getattr(self._custom, point) for point in POINTS)]
        return {plugin.name for plugins in sets for plugin in plugins.enabled}

    def _disabled(self) -> set[str]:
        names = {plugin.name for plugin in self._custom.multi_point.disabled}
        return set(self._left_out) if "*" in names else names

    def _arguments(self, needed: set[str]) -> dict[str, PluginArgs | Raw]:
        arguments: dict[str, PluginArgs | Raw] = {}
        for index, entry in enumerate(self._profile.plugin_config):
            place = f"{self._path}.pluginConfig[{index}]"
            decoded = decode_arguments(entry, place, self._problems)
            if decoded is None:
                arguments[entry.name] = entry.args or {}
                continue
            arguments[entry.name] = with_gates(decoded, self._gates)
            if entry.name == "NodeResourcesFit" and entry.name in needed:
                check_arguments(decoded, f"{place}.args", self._gates, self._problems)
        for name in sorted(needed - set(arguments)):
            default = default_arguments(name, self._gates)
            if default is not None:
                arguments[name] = default
        return arguments
