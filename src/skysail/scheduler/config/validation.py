"""Checks of values: ranges, duplicates, what excludes what. Every fault is collected with its path.

Source: pkg/scheduler/apis/config/validation/validation.go, component-base/config/validation, v1.36.
Differs: a negative weight is refused here, not taken as it is; so is a negative time-out of an extender.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from skysail.api.labelsyntax import label_key_errors
from skysail.api.resources import is_extended_resource
from skysail.scheduler.config.arguments import check_arguments, decode_arguments
from skysail.scheduler.config.durations import parse_duration
from skysail.scheduler.config.problems import Problems
from skysail.scheduler.config.types import (
    API_VERSION,
    WIRE_POINTS,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginSet,
)
from skysail.scheduler.framework.queued_pod import DEFAULT_SCHEDULER_NAME

_REMOVED: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_CHECKED_WHEN_USED: Final = "NodeResourcesFit"
"""Upstream checks these arguments only when the plugin is made, that is, if some point enables it."""


def with_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """At least one profile; a single one without a name is `default-scheduler`."""
    profiles = config.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return msgspec.structs.replace(config, profiles=profiles)


def validate(config: KubeSchedulerConfiguration, gates: Mapping[str, bool], problems: Problems) -> None:
    """Check a configuration that has its defaults."""
    if config.client_connection.burst < 0:
        problems.invalid("clientConnection.burst", config.client_connection.burst, "must be non-negative")
    if not math.isfinite(config.client_connection.qps):
        problems.invalid("clientConnection.qps", config.client_connection.qps, "must be a finite number")
    _check_leader_election(config.leader_election, "leaderElection", problems)
    if config.parallelism <= 0:
        problems.invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    names: list[str] = []
    for index, profile in enumerate(config.profiles):
        name = profile.scheduler_name or ""
        _check_profile(profile, f"profiles[{index}]", gates, problems)
        if name in names:
            problems.duplicate(f"profiles[{index}].schedulerName", name)
        names.append(name)
    _check_percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore", problems)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        problems.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        problems.invalid("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds")
    _check_extenders(config.extenders, problems)


def _check_percentage(value: int | None, path: str, problems: Problems) -> None:
    if value is not None and not 0 <= value <= 100:
        problems.invalid(path, value, "not in valid range [0-100]")


def _check_profile(profile: KubeSchedulerProfile, path: str, gates: Mapping[str, bool], problems: Problems) -> None:
    if not profile.scheduler_name:
        problems.required(f"{path}.schedulerName")
    _check_percentage(profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore", problems)
    if profile.plugins is not None:
        for point, wire in WIRE_POINTS.items():
            _check_plugin_set(getattr(profile.plugins, point), f"{path}.plugins.{wire}", problems)
        if len(profile.plugins.queue_sort.enabled) > 1:
            count = len(profile.plugins.queue_sort.enabled)
            problems.invalid(f"{path}.plugins.queueSort.enabled", count, "only one queue sort plugin can be enabled")
    _check_plugin_config(profile, path, gates, problems)


def _check_plugin_set(plugins: PluginSet, path: str, problems: Problems) -> None:
    for index, plugin in enumerate(plugins.enabled):
        if plugin.name in _REMOVED:
            problems.invalid(f"{path}.enabled[{index}]", plugin.name, _removed())
        if plugin.weight is not None and plugin.weight < 0:
            problems.invalid(f"{path}.enabled[{index}].weight", plugin.weight, "must be 0 (that is, 1) or positive")


def _check_plugin_config(
    profile: KubeSchedulerProfile, path: str, gates: Mapping[str, bool], problems: Problems
) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        place = f"{path}.pluginConfig[{index}]"
        if entry.name in seen:
            problems.duplicate(place, entry.name)
        seen.add(entry.name)
        if entry.name in _REMOVED:
            problems.invalid(place, entry.name, _removed())
        args = decode_arguments(entry, place, problems)
        if args is not None and entry.name != _CHECKED_WHEN_USED:
            check_arguments(args, f"{place}.args", gates, problems)


def _removed() -> str:
    return f'was invalid in version "{API_VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def _check_leader_election(config: LeaderElectionConfiguration, path: str, problems: Problems) -> None:
    seconds: dict[str, float] = {}
    texts = {
        "leaseDuration": config.lease_duration,
        "renewDeadline": config.renew_deadline,
        "retryPeriod": config.retry_period,
    }
    for name, text in texts.items():
        try:
            seconds[name] = parse_duration(text)
        except ValueError as error:
            problems.invalid(f"{path}.{name}", text, str(error))
    if not config.leader_elect or len(seconds) < len(texts):
        return
    for name, value in seconds.items():
        if value <= 0:
            problems.invalid(f"{path}.{name}", texts[name], "must be greater than zero")
    if seconds["leaseDuration"] <= seconds["renewDeadline"]:
        problems.invalid(f"{path}.leaseDuration", texts["renewDeadline"], "must be greater than `RenewDeadline`")
    if seconds["renewDeadline"] <= seconds["retryPeriod"]:
        problems.invalid(f"{path}.renewDeadline", texts["retryPeriod"], "must be greater than `RetryPeriod`")
    if config.resource_lock != "leases":
        problems.invalid(f"{path}.resourceLock", config.resource_lock, 'resourceLock value must be "leases"')
    for name, text in (
        ("resourceNamespace", config.resource_namespace),
        ("resourceName", config.resource_name),
    ):
        if not text:
            problems.required(f"{path}.{name}", f"{name} is required")


def _check_extenders(extenders: Iterable[Extender], problems: Problems) -> None:
    binders, managed = 0, set[str]()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            problems.invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        _check_timeout(extender.http_timeout, f"{path}.httpTimeout", problems)
        binders += bool(extender.bind_verb)
        for number, resource in enumerate(extender.managed_resources):
            place = f"{path}.managedResources[{number}].name"
            errors = label_key_errors(resource.name)
            for message in errors:
                problems.invalid(place, resource.name, message)
            if not errors and not is_extended_resource(resource.name):
                problems.invalid(place, resource.name, "is an invalid extended resource name")
            if resource.name in managed:
                problems.invalid(place, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    if binders > 1:
        problems.invalid(
            "extenders", f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )


def _check_timeout(text: str, path: str, problems: Problems) -> None:
    try:
        if parse_duration(text) < 0:
            problems.invalid(path, text, "must be 0 (that is, 5s) or positive")
    except ValueError as error:
        problems.invalid(path, text, str(error))
