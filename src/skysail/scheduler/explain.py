"""A decision as data, in the form of the recorded ones (`expected` of the golden scenarios).

Everything runs the real scheduling code on the plain path, and nothing is written anywhere. `explain_scenario` decides,
`compare` says what differs from a recorded decision.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.scheduler.algorithm import Attempt, diagnose, find_feasible, node_statuses
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.explain_devices import device_changes, device_decisions, statuses_by_node
from skysail.scheduler.explain_group import explain_group
from skysail.scheduler.extenders.chain import ExtenderChain
from skysail.scheduler.extenders.deciding import ExtendedAttempt, added, find_asking
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.conversation import Call, ExtenderCall, ExtenderFailed, Reply, hold
from skysail.scheduler.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from skysail.scheduler.framework.evaluation import PlainEvaluator, PreFilterOutcome, Scored
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import Status
from skysail.scheduler.plugins.volume_binding import VolumeBinding
from skysail.scheduler.preemption.default_preemption import DefaultPreemption
from skysail.scheduler.profiles import PluginFactories, extension_points
from skysail.scheduler.registry import REGISTRY
from skysail.scheduler.scenario import (
    DEFAULT_SCHEDULER,
    World,
    build_framework,
    build_world,
    configured_extenders,
    load_scenarios,
    resolve_profiles,
)
from skysail.scheduler.scripted import ScriptedExtenders, comparable_requests, extender_name, in_recorded_order
from skysail.scheduler.telling import told_pre_filter, told_preemption, told_status

__all__ = ["compare", "explain_pod", "explain_scenario", "load_scenarios"]

Decision = Raw


class Extenders(Protocol):
    """Whoever answers in the extenders' place, or asks them."""

    requests: list[Raw]

    def answer(self, call: Call) -> Reply:
        """The answer to one call."""
        ...


def explain_scenario(
    scenario: Raw,
    only_plugins: frozenset[str] | None = None,
    extenders: Extenders | None = None,
    factories: PluginFactories | None = None,
) -> Decision:
    """Decide a scenario.

    Args:
        scenario: With `objects` and `pod` (or `pods` of a `pod_group`), optionally `config` and `feature_gates`.
        only_plugins: Leave the entries of other plugins out of `skipped_filter_plugins` and `scores`.
        extenders: Answers for the configured extenders; None plays the scenario's own `extender_answers`.
        factories: All plugins there are; None means the built-in ones.

    Raises:
        ConfigError: The scenario is malformed, or no profile has the pod's scheduler name.
    """
    world = build_world(scenario["objects"], scenario.get("feature_gates", {}))
    is_group = bool(scenario.get("pods"))
    try:
        pod = msgspec.json.decode(msgspec.json.encode(scenario["pods"][0] if is_group else scenario["pod"]), type=Pod)
    except (KeyError, msgspec.ValidationError) as error:
        raise ConfigError(f"no usable pod: {error}", path=str(scenario.get("id", ""))) from error
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    factories = REGISTRY if factories is None else factories
    profiles = resolve_profiles(scenario.get("config"), world.gates, extension_points(factories))
    profile = next((each for each in profiles if each.scheduler_name == name), None)
    if profile is None:
        known = ", ".join(each.scheduler_name for each in profiles)
        message = f"profile not found for scheduler name {name!r}; the configuration has {known}"
        raise ConfigError(message, path=str(scenario.get("id", "")))
    if pod.status.nominated_node_name:
        world.nominator.add(pod)
    framework = build_framework(profile, world, factories)
    if is_group:
        return explain_group(scenario, framework, world)
    chain = ExtenderChain(configured_extenders(scenario.get("config")))
    if extenders is None:
        extenders = ScriptedExtenders(scenario.get("extender_answers", {}), [*scenario["objects"], scenario["pod"]])
    decision = explain_pod(framework, world, pod, Outside(chain, extenders.answer))
    requests = in_recorded_order(extenders.requests, scored=decision.get("score_phase_run", False))
    if requests:
        decision["extender_requests"] = requests
    return only(decision, only_plugins) if only_plugins else decision


@dataclass(frozen=True, slots=True)
class Outside:
    """The extenders of a decision.

    Attributes:
        chain: Who they are.
        answer: Answers in their place.
    """

    chain: ExtenderChain
    answer: Callable[[Call], Reply]


NOBODY = Outside(ExtenderChain(()), lambda call: Reply(error="there are no extenders"))


def explain_pod(framework: Framework, world: World, pod: Pod, outside: Outside = NOBODY) -> Decision:
    """Decide one pod, with everything that led to it."""
    decision: Decision = {"pre_enqueue": told_status(framework.run_pre_enqueue(pod))}
    info, calls = PodInfo(pod), list[ExtenderCall]()
    finding = find_asking(
        framework, world.current, info, outside.chain, calls, nominations=world.nominations, incremental=False
    )
    try:
        extended = hold(finding, outside.answer)
    except PluginFailed as failure:
        return {**decision, **_failed(framework, world, info), "cycle_error": str(failure)}
    except ExtenderFailed as failure:
        attempt = find_feasible(framework, world.current, info, nominations=world.nominations, incremental=False)
        decision |= {"prefilter": _pre_filter(attempt), **_filter(attempt), **_nothing(), **_also_failing(attempt)}
        if refusers := diagnose(attempt).unschedulable_plugins:
            decision["unschedulable_plugins"] = sorted(refusers)
        return {**decision, "cycle_error": str(failure)}
    attempt = extended.attempt
    decision["prefilter"] = _pre_filter(attempt)
    if not len(world.current):
        return {**decision, **_nothing(), "cycle_error": NO_NODES_AVAILABLE}
    decision |= _filter(attempt)
    diagnosis = extended.diagnosis()
    if diagnosis.unschedulable_plugins:
        decision["unschedulable_plugins"] = sorted(diagnosis.unschedulable_plugins)
    if extended.statuses:
        decision["extender_status"] = {name: told_status(extended.statuses[name]) for name in sorted(extended.statuses)}
    if attempt.feasible:
        decision |= _volumes(attempt) | device_decisions(attempt) | _score(extended, outside)
    else:
        decision |= {"score_phase_run": False, "chosen_set": []} | _fit_error(attempt, diagnosis, outside)
    return decision | _also_failing(attempt)


def _failed(framework: Framework, world: World, info: PodInfo) -> Decision:
    """Every node's answer where a Filter plugin's error ended the attempt; the error where PreFilter failed."""
    evaluator = PlainEvaluator(framework, world.current.table, info)
    try:
        attempt = Attempt(framework, world.current.table, info, evaluator, evaluator.pre_filter())
    except PluginFailed as failure:
        outcome = PreFilterOutcome(failure.status())
        return {"prefilter": told_pre_filter(outcome, evaluator.state.skip_filter_plugins), **_nothing()}
    answers = {name: told_status(status) for name, status in statuses_by_node(attempt).items()}
    return {"prefilter": _pre_filter(attempt), "filter": answers, **_nothing()}


def _nothing() -> Decision:
    return {"feasible": [], "score_phase_run": False, "chosen_set": []}


def _pre_filter(attempt: Attempt) -> Decision:
    return told_pre_filter(attempt.outcome, attempt.state.skip_filter_plugins)


def _filter(attempt: Attempt) -> Decision:
    table = attempt.table
    found: Decision = {"feasible": sorted(table.names[int(row)] for row in attempt.feasible_rows())}
    if attempt.filtered is None:
        return found
    refused = node_statuses(attempt)
    looked_at = sorted(name for name in refused.names if name)
    if looked_at:
        found["filter"] = {name: told_status(refused.get(name, Status())) for name in looked_at}
    return found


def _also_failing(attempt: Attempt) -> Decision:
    """Last of all: plugins remember what they are asked, and nobody asks them this outside an explanation."""
    if attempt.filtered is None:
        return {}
    refused = node_statuses(attempt)
    others = {name: _others(attempt, attempt.table.rows[name], refused[name].plugin) for name in sorted(refused)}
    found = {name: statuses for name, statuses in others.items() if statuses}
    return {"also_failing": found} if found else {}


def _others(attempt: Attempt, row: int, told: str) -> list[Decision]:
    """What the Filter plugins that were not the first to refuse would have said of the row."""
    index = np.array([row], dtype=np.intp)
    found = []
    for step in attempt.framework.filters:
        if step.name == told or step.name in attempt.state.skip_filter_plugins:
            continue
        try:
            codes = step.ask(attempt.state, attempt.pod_info.pod, attempt.table, index)
        except PluginFailed:  # nobody asked it in the attempt, and an error is no refusal
            continue
        if codes.statuses and codes.codes[0]:
            found.append(told_status(codes.statuses[int(codes.codes[0]) - 1]))
    return found


def _volumes(attempt: Attempt) -> Decision:
    """What the pod's unbound claims would get on each feasible node."""
    plugin = attempt.framework.plugins.get(VolumeBinding.name)
    if not isinstance(plugin, VolumeBinding):
        return {}
    found = {}
    for row in attempt.feasible_rows():
        node = attempt.table.info(int(row)).node
        volumes = plugin.found(attempt.state, node)
        entry: Decision = {}
        if volumes.static:
            entry["static"] = {each.claim.name: each.volume.name for each in volumes.static}
        if volumes.provision:
            entry["provision"] = sorted(each.claim.name for each in volumes.provision)
        if entry:
            found[node.name] = entry
    return {"volumes": found} if found else {}


def _score(extended: ExtendedAttempt, outside: Outside) -> Decision:
    names = [candidate.name for candidate in extended.candidates]
    order = sorted(range(len(names)), key=names.__getitem__)
    found: Decision = {"score_phase_run": len(names) > 1}
    try:
        scored = extended.scored()
    except PluginFailed as failure:
        return found | {"score_error": str(failure), "chosen_set": []}
    pod = extended.attempt.pod_info.pod
    points = hold(outside.chain.prioritize(pod, extended.candidates, extended.calls), outside.answer)
    if points:
        found["extender_scores"] = {
            extender_name(extender): [int(each[place]) for place in order] for extender, each in points.items()
        }
    totals = (scored.totals + added(points, len(names)))[order]
    found["scores"] = _scores(extended.attempt, scored, order)
    found["totals"] = totals.tolist()
    best = totals.max()
    found["chosen_set"] = [names[place] for place, total in zip(order, totals, strict=True) if total == best]
    return found


def _scores(attempt: Attempt, scored: Scored, order: Sequence[int]) -> Decision:
    given = {scores.name: scores for scores in scored.plugins}
    found: Decision = {}
    for step in attempt.framework.scores:
        entry: Decision = {"weight": step.weight}
        scores = given.get(step.name)
        if scores is None:
            entry["skipped"] = True
        else:
            entry["raw"] = scores.raw[order].tolist()
            if (scores.raw != scores.normalized).any():
                entry["normalized"] = scores.normalized[order].tolist()
        found[step.name] = entry
    return found


def _fit_error(attempt: Attempt, diagnosis: Diagnosis, outside: Outside) -> Decision:
    found: Decision = {"fit_error_without_postfilter": diagnosis.message()}
    framework, pod = attempt.framework, attempt.pod_info.pod
    if pod.spec.node_name:
        return found
    if framework.post_filter:
        preemption = framework.plugins.get("DefaultPreemption")
        if isinstance(preemption, DefaultPreemption) and outside.chain.preempts:
            preemption.extenders = outside.chain
        asking = framework.post_filter_asking(attempt.state, pod, diagnosis)
        status, result = hold(asking, outside.answer)
        diagnosis.post_filter_message = status.message
        if isinstance(preemption, DefaultPreemption):
            outcome = preemption.search(attempt.state, pod, diagnosis)
            found["preemption"] = told_status(status) | told_preemption(outcome)
            if preemption.asks and found["preemption"].pop("best_nodes", None):
                found["preemption"]["nominated_node"] = result.nominated_node or ""
    found["fit_error"] = diagnosis.message()
    return found | device_changes(attempt)


def only(decision: Decision, plugins: frozenset[str]) -> Decision:
    """A decision without the entries of other plugins in `skipped_filter_plugins` and `scores`."""
    kept = dict(decision)
    if "prefilter" in kept:
        before = dict(kept["prefilter"])
        skipped = [name for name in before.pop("skipped_filter_plugins", ()) if name in plugins]
        kept["prefilter"] = before | ({"skipped_filter_plugins": skipped} if skipped else {})
    if "scores" in kept:
        kept["scores"] = {name: entry for name, entry in kept["scores"].items() if name in plugins}
    return kept


def compare(expected: Decision, decision: Decision, only_plugins: frozenset[str] | None = None) -> list[str]:
    """What differs, one line each.

    Args:
        expected: As recorded.
        decision: As decided.
        only_plugins: See `explain_scenario`.
    """
    if only_plugins:
        expected, decision = only(expected, only_plugins), only(decision, only_plugins)
    expected, decision = _comparable(expected), _comparable(decision)
    return [
        f"{name}: expected {_shown(expected.get(name))}, got {_shown(decision.get(name))}"
        for name in sorted(expected.keys() | decision.keys())
        if expected.get(name) != decision.get(name)
    ]


def _shown(value: object) -> str:
    return "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()


def _comparable(decision: Decision) -> Decision:
    kept = dict(decision)
    if "extender_requests" in kept:
        kept["extender_requests"] = comparable_requests(kept["extender_requests"])
    if "filter" in kept:
        kept["filter"] = {name: _in_any_order(status) for name, status in kept["filter"].items()}
    if "also_failing" in kept:
        kept["also_failing"] = {
            name: sorted(map(_in_any_order, statuses), key=_shown) for name, statuses in kept["also_failing"].items()
        }
    return kept


def _in_any_order(status: Mapping[str, Any]) -> Decision:
    """A status of NodeResourcesFit with its reasons sorted: upstream gives some of them in random order."""
    if status.get("plugin") != "NodeResourcesFit":
        return dict(status)
    return {**status, "reasons": sorted(status.get("reasons", ()))}
