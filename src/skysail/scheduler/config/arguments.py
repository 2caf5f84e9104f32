"""The plugins' own arguments: decoded into the plugin's struct, checked as upstream checks them.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from skysail.api.affinity import NodeAffinity, TopologySpreadConstraint
from skysail.api.labelsyntax import label_key_errors
from skysail.api.nodeselector import compile_term
from skysail.scheduler.config.decode import decode_value
from skysail.scheduler.config.durations import parse_duration
from skysail.scheduler.config.problems import Problems
from skysail.scheduler.config.types import API_VERSION, PluginConfig
from skysail.scheduler.plugins.args import (
    ARGS,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

Gates = Mapping[str, bool]
_MAX_CUSTOM_SCORE: Final = 10


def decode_arguments(config: PluginConfig, path: str, problems: Problems) -> PluginArgs | None:
    """The arguments of one plugin; None for one that takes none we know of (a third party's are its own affair)."""
    wanted = ARGS.get(config.name)
    if wanted is None:
        return None
    args = decode_value(wanted, config.args or {}, f"{path}.args", problems)
    if args is not None and args.api_version not in ("", API_VERSION):
        problems.unsupported(f"{path}.args.apiVersion", args.api_version, (API_VERSION,))
    if args is not None and args.kind not in ("", f"{config.name}Args"):
        problems.unsupported(f"{path}.args.kind", args.kind, (f"{config.name}Args",))
    return args


def default_arguments(plugin: str, gates: Gates) -> PluginArgs | None:
    """What a plugin gets when nothing is configured; None when it takes no arguments."""
    wanted = ARGS.get(plugin)
    return with_gates(wanted(), gates) if wanted is not None else None


def with_gates(args: PluginArgs, gates: Gates) -> PluginArgs:
    """The arguments with the defaults that depend on feature gates filled in, or left out."""
    if isinstance(args, VolumeBindingArgs) and not args.shape and gates.get("StorageCapacityScoring"):
        points = (UtilizationShapePoint(utilization=0, score=_MAX_CUSTOM_SCORE), UtilizationShapePoint(utilization=100))
        return VolumeBindingArgs(bind_timeout_seconds=args.bind_timeout_seconds, shape=points)
    if isinstance(args, DynamicResourcesArgs):
        default = DynamicResourcesArgs()
        keeps_filter = gates.get("DRASchedulerFilterTimeout") or args.filter_timeout != default.filter_timeout
        keeps_binding = _binding_conditions(gates) or args.binding_timeout != default.binding_timeout
        return DynamicResourcesArgs(
            filter_timeout=args.filter_timeout if keeps_filter else None,
            binding_timeout=args.binding_timeout if keeps_binding else None,
        )
    return args


def check_arguments(args: PluginArgs, path: str, gates: Gates, problems: Problems) -> None:
    """Check the values of decoded arguments; `path` is that of `args` itself."""
    check = _CHECKS.get(type(args))
    if check is not None:
        check(args, path, gates, problems)


def _check_preemption(args: DefaultPreemptionArgs, path: str, gates: Gates, problems: Problems) -> None:
    share, number = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    share_path, number_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    if not 0 <= share <= 100:
        problems.invalid(share_path, share, "not in valid range [0, 100]")
    if number < 0:
        problems.invalid(number_path, number, "not in valid range [0, inf)")
    if share == 0 and number == 0:
        problems.invalid(share_path, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        problems.invalid(number_path, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


def _check_inter_pod_affinity(args: InterPodAffinityArgs, path: str, gates: Gates, problems: Problems) -> None:
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        problems.invalid(f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, "not in valid range [0, 100]")


def _check_spread(args: PodTopologySpreadArgs, path: str, gates: Gates, problems: Problems) -> None:
    kind, constraints = args.defaulting_type, args.default_constraints
    if kind not in ("System", "List"):
        problems.unsupported(f"{path}.defaultingType", kind, ("List", "System"))
    elif kind == "System" and constraints:
        problems.invalid(f"{path}.defaultingType", kind, "when .defaultConstraints are not empty")
    for index, constraint in enumerate(constraints):
        _check_constraint(constraint, f"{path}.defaultConstraints[{index}]", problems)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in [(other.topology_key, other.when_unsatisfiable) for other in constraints[:index]]:
            problems.duplicate(f"{path}.defaultConstraints[{index}]", f"{{{pair[0]}, {pair[1]}}}")


def _check_constraint(constraint: TopologySpreadConstraint, path: str, problems: Problems) -> None:
    if constraint.max_skew <= 0:
        problems.invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    for message in label_key_errors(constraint.topology_key) if constraint.topology_key else ():
        problems.invalid(f"{path}.topologyKey", constraint.topology_key, message)
    if not constraint.when_unsatisfiable:
        problems.required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        problems.unsupported(
            f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")
        )
    if constraint.label_selector is not None:
        problems.forbidden(
            f"{path}.labelSelector", "constraint must not define a selector, as they deduced for each pod"
        )


def _check_balanced(args: NodeResourcesBalancedAllocationArgs, path: str, gates: Gates, problems: Problems) -> None:
    for index, resource in enumerate(args.resources):
        if resource.name in [other.name for other in args.resources[:index]]:
            problems.duplicate(f"{path}.resources[{index}].name", resource.name)
        if resource.weight != 1:
            problems.invalid(f"{path}.resources[{index}].weight", resource.weight, "must be 1")


def _check_volume_binding(args: VolumeBindingArgs, path: str, gates: Gates, problems: Problems) -> None:
    if args.bind_timeout_seconds < 0:
        problems.invalid(
            f"{path}.bindTimeoutSeconds",
            args.bind_timeout_seconds,
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if gates.get("StorageCapacityScoring"):
        _check_shape(args.shape, f"{path}.shape", problems)
    elif args.shape:
        shown = [{"utilization": point.utilization, "score": point.score} for point in args.shape]
        problems.invalid(
            f"{path}.shape",
            shown,
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
        )


def _check_fit(args: NodeResourcesFitArgs, path: str, gates: Gates, problems: Problems) -> None:
    _check_names(args.ignored_resources, f"{path}.ignoredResources", problems)
    for index, group in enumerate(args.ignored_resource_groups):
        if "/" in group:
            problems.invalid(f"{path}.ignoredResourceGroups[{index}]", group, "resource group name can't contain '/'")
    _check_names(args.ignored_resource_groups, f"{path}.ignoredResourceGroups", problems)
    strategy, below = args.scoring_strategy, f"{path}.scoringStrategy"
    kinds = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
    if strategy.type not in kinds:
        problems.unsupported(f"{below}.type", strategy.type, kinds)
    _check_weights(strategy.resources, f"{below}.resources", problems)
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            problems.required(
                f"{below}.requestedToCapacityRatio", "must be specified when type is RequestedToCapacityRatio"
            )
        else:
            _check_shape(ratio.shape, f"{below}.requestedToCapacityRatio.shape", problems)
    elif ratio is not None:
        problems.forbidden(f"{below}.requestedToCapacityRatio", "must be nil when type is not RequestedToCapacityRatio")


def _check_names(names: Iterable[str], path: str, problems: Problems) -> None:
    for index, name in enumerate(names):
        for message in label_key_errors(name):
            problems.invalid(f"{path}[{index}]", name, message)


def _check_weights(resources: Iterable[ResourceSpec], path: str, problems: Problems) -> None:
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            problems.invalid(
                f"{path}[{index}].weight",
                resource.weight,
                f"resource weight of {resource.name} not in valid range (0, 100]",
            )


def _check_shape(shape: Sequence[UtilizationShapePoint], path: str, problems: Problems) -> None:
    if not shape:
        problems.required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            problems.invalid(
                f"{path}[{index}].utilization", shape[index].utilization, "values must be sorted in increasing order"
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            problems.invalid(f"{path}[{index}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= _MAX_CUSTOM_SCORE:
            problems.invalid(f"{path}[{index}].score", point.score, f"not in valid range [0, {_MAX_CUSTOM_SCORE}]")


def _check_node_affinity(args: NodeAffinityArgs, path: str, gates: Gates, problems: Problems) -> None:
    if args.added_affinity is None:
        return
    affinity: NodeAffinity = args.added_affinity
    below = f"{path}.addedAffinity"
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms if required is not None else ()
    for index, term in enumerate(terms):
        place = f"{below}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        _add_selector_errors(compile_term(term, place).errors, place, problems)
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        place = f"{below}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if preferred.preference is not None:
            _add_selector_errors(compile_term(preferred.preference, place).errors, place, problems)


def _add_selector_errors(errors: Iterable[str], place: str, problems: Problems) -> None:
    for error in errors:
        where, _, what = error.partition(": ")
        problems.add(where if where.startswith(place) else place, what if where.startswith(place) else error)


def _check_dynamic_resources(args: DynamicResourcesArgs, path: str, gates: Gates, problems: Problems) -> None:
    gated = (
        ("filterTimeout", args.filter_timeout, bool(gates.get("DRASchedulerFilterTimeout")), 0.0,
         "must be zero or positive", "DRASchedulingFilterTimeout feature gate is disabled"),
        ("bindingTimeout", args.binding_timeout, _binding_conditions(gates), 1.0, "must be at least 1 second",
         "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"),
    )  # fmt: skip
    for name, text, is_on, least, too_small, is_off in gated:
        if text is None:
            continue
        if not is_on:
            problems.forbidden(f"{path}.{name}", is_off)
            continue
        try:
            if parse_duration(text) < least:
                problems.invalid(f"{path}.{name}", text, too_small)
        except ValueError as error:
            problems.invalid(f"{path}.{name}", text, str(error))


def _binding_conditions(gates: Gates) -> bool:
    return bool(gates.get("DRADeviceBindingConditions")) and bool(gates.get("DRAResourceClaimDeviceStatus"))


_Check = Callable[[PluginArgs, str, Gates, Problems], None]
_CHECKS: Final[Mapping[type[PluginArgs], _Check]] = {
    DefaultPreemptionArgs: cast(_Check, _check_preemption),
    DynamicResourcesArgs: cast(_Check, _check_dynamic_resources),
    InterPodAffinityArgs: cast(_Check, _check_inter_pod_affinity),
    NodeAffinityArgs: cast(_Check, _check_node_affinity),
    NodeResourcesBalancedAllocationArgs: cast(_Check, _check_balanced),
    NodeResourcesFitArgs: cast(_Check, _check_fit),
    PodTopologySpreadArgs: cast(_Check, _check_spread),
    VolumeBindingArgs: cast(_Check, _check_volume_binding),
}
