"""A decision as data, in the form of the recorded ones (`expected` of the golden scenarios).

Everything runs the real scheduling code on the plain path, and nothing is written anywhere. `explain_scenario` decides,
`compare` says what differs from a recorded decision.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.scheduler.algorithm import Attempt, diagnose, find_feasible, node_statuses
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from skysail.scheduler.framework.evaluation import Scored, score_rows
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import Status
from skysail.scheduler.preemption.default_preemption import DefaultPreemption, PreemptionOutcome, aggregate
from skysail.scheduler.preemption.victims import Victims
from skysail.scheduler.scenario import (
    DEFAULT_SCHEDULER,
    World,
    build_framework,
    build_world,
    load_scenarios,
    missing_plugins,
    resolve_profiles,
)

__all__ = ["compare", "explain_pod", "explain_scenario", "load_scenarios", "missing_plugins"]

Decision = Raw


def explain_scenario(scenario: Raw, only_plugins: frozenset[str] | None = None) -> Decision:
    """Decide a scenario.

    Args:
        scenario: With `objects` and `pod`, optionally `config` and `feature_gates`.
        only_plugins: Leave the entries of other plugins out of `skipped_filter_plugins` and `scores`.

    Raises:
        ConfigError: The scenario is malformed, or no profile has the pod's scheduler name.
    """
    world = build_world(scenario["objects"], scenario.get("feature_gates", {}))
    try:
        pod = msgspec.json.decode(msgspec.json.encode(scenario["pod"]), type=Pod)
    except (KeyError, msgspec.ValidationError) as error:
        raise ConfigError(f"no usable pod: {error}", path=str(scenario.get("id", ""))) from error
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    profiles = resolve_profiles(scenario.get("config"), world.gates)
    profile = next((each for each in profiles if each.scheduler_name == name), None)
    if profile is None:
        raise ConfigError(f"profile not found for scheduler name {name!r}", path=str(scenario.get("id", "")))
    if pod.status.nominated_node_name:
        world.nominator.add(pod)
    decision = explain_pod(build_framework(profile, world), world, pod)
    return only(decision, only_plugins) if only_plugins else decision


def explain_pod(framework: Framework, world: World, pod: Pod) -> Decision:
    """Decide one pod, with everything that led to it."""
    decision: Decision = {"pre_enqueue": _status(framework.run_pre_enqueue(pod))}
    try:
        attempt = find_feasible(
            framework, world.current, PodInfo(pod), nominations=world.nominations, incremental=False
        )
    except PluginFailed as failure:
        return {**decision, **_nothing(), "cycle_error": str(failure)}
    decision["prefilter"] = _pre_filter(attempt)
    if not len(world.current):
        return {**decision, **_nothing(), "cycle_error": NO_NODES_AVAILABLE}
    decision |= _filter(attempt)
    diagnosis = diagnose(attempt)
    if diagnosis.unschedulable_plugins:
        decision["unschedulable_plugins"] = sorted(diagnosis.unschedulable_plugins)
    if attempt.feasible:
        return decision | _score(attempt)
    return decision | {"score_phase_run": False, "chosen_set": []} | _fit_error(attempt, diagnosis)


def _nothing() -> Decision:
    return {"feasible": [], "score_phase_run": False, "chosen_set": []}


def _status(status: Status) -> Decision:
    found: Decision = {"code": status.code.text}
    if status.plugin:
        found["plugin"] = status.plugin
    if status.reasons:
        found["reasons"] = list(status.reasons)
    return found


def _pre_filter(attempt: Attempt) -> Decision:
    outcome = attempt.outcome
    found = _status(outcome.status)
    names = outcome.result.node_names if outcome.status.is_success else None
    found["node_names"] = None if names is None else sorted(names)
    if outcome.restricted_by:
        found["restricted_by"] = sorted(outcome.restricted_by)
    skipped = sorted(attempt.state.skip_filter_plugins)
    if skipped:
        found["skipped_filter_plugins"] = skipped
    return found


def _filter(attempt: Attempt) -> Decision:
    table = attempt.table
    found: Decision = {"feasible": sorted(table.names[int(row)] for row in attempt.feasible_rows())}
    if attempt.filtered is None:
        return found
    refused = node_statuses(attempt)
    looked_at = sorted(name for name in refused.names if name)
    if looked_at:
        found["filter"] = {name: _status(refused.get(name, Status())) for name in looked_at}
    others = {name: _others(attempt, table.rows[name], refused[name].plugin) for name in sorted(refused)}
    others = {name: statuses for name, statuses in others.items() if statuses}
    if others:
        found["also_failing"] = others
    return found


def _others(attempt: Attempt, row: int, told: str) -> list[Decision]:
    """What the Filter plugins that were not the first to refuse would have said of the row."""
    index = np.array([row], dtype=np.intp)
    found = []
    for step in attempt.framework.filters:
        if step.name == told or step.name in attempt.state.skip_filter_plugins:
            continue
        codes = step.ask(attempt.state, attempt.pod_info.pod, attempt.table, index)
        if codes.statuses and codes.codes[0]:
            found.append(_status(codes.statuses[int(codes.codes[0]) - 1]))
    return found


def _score(attempt: Attempt) -> Decision:
    table = attempt.table
    rows = np.array(sorted(attempt.feasible_rows(), key=lambda row: table.names[row]), dtype=np.intp)
    found: Decision = {"score_phase_run": len(rows) > 1}
    names = [table.names[int(row)] for row in rows]
    try:
        scored = score_rows(attempt.framework, attempt.state, attempt.pod_info.pod, table, rows)
    except PluginFailed as failure:
        return found | {"score_error": str(failure), "chosen_set": []}
    found["scores"] = _scores(attempt, scored)
    found["totals"] = scored.totals.tolist()
    best = scored.totals.max()
    found["chosen_set"] = [name for name, total in zip(names, scored.totals, strict=True) if total == best]
    return found


def _scores(attempt: Attempt, scored: Scored) -> Decision:
    given = {scores.name: scores for scores in scored.plugins}
    found: Decision = {}
    for step in attempt.framework.scores:
        entry: Decision = {"weight": step.weight}
        scores = given.get(step.name)
        if scores is None:
            entry["skipped"] = True
        else:
            entry["raw"] = scores.raw.tolist()
            if (scores.raw != scores.normalized).any():
                entry["normalized"] = scores.normalized.tolist()
        found[step.name] = entry
    return found


def _fit_error(attempt: Attempt, diagnosis: Diagnosis) -> Decision:
    found: Decision = {"fit_error_without_postfilter": diagnosis.message()}
    framework, pod = attempt.framework, attempt.pod_info.pod
    if pod.spec.node_name:
        return found
    if framework.post_filter:
        status, _ = framework.run_post_filter(attempt.state, pod, diagnosis)
        diagnosis.post_filter_message = status.message
        preemption = framework.plugins.get("DefaultPreemption")
        if isinstance(preemption, DefaultPreemption):
            outcome = preemption.search(attempt.state, pod, diagnosis)
            found["preemption"] = _status(status) | _preemption(outcome)
    found["fit_error"] = diagnosis.message()
    return found


def _preemption(outcome: PreemptionOutcome) -> Decision:
    found: Decision = {"eligible": not outcome.ineligible_reason, "nominated_node": ""}
    if outcome.ineligible_reason:
        return found | {"ineligible_reason": outcome.ineligible_reason}
    assert outcome.candidates is not None
    victims, failures = outcome.candidates.victims, outcome.candidates.failures
    if victims:
        found["candidates"] = {name: _victims(victims[name]) for name in sorted(victims)}
        found["best_nodes"] = sorted(outcome.best)
        found["nominated_node"] = outcome.best[0] if len(outcome.best) == 1 else None
    if failures:
        found["candidate_failures"] = {name: _status(failures[name]) for name in sorted(failures)}
    if outcome.candidates.errors:
        found["find_error"] = aggregate(outcome.candidates.errors)
    return found


def _victims(victims: Victims) -> Decision:
    return {"victims": [pod.key for pod in victims.pods], "pdb_violations": victims.violations}


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

    While DynamicResources is missing (or left out), its part of what PostFilter says is passed over.

    Args:
        expected: As recorded.
        decision: As decided.
        only_plugins: See `explain_scenario`.
    """
    if only_plugins:
        expected, decision = only(expected, only_plugins), only(decision, only_plugins)
    absent = _absent(only_plugins)
    expected, decision = _comparable(expected, absent), _comparable(decision, absent)
    return [
        f"{name}: expected {_shown(expected.get(name))}, got {_shown(decision.get(name))}"
        for name in sorted(expected.keys() | decision.keys())
        if expected.get(name) != decision.get(name)
    ]


def _absent(only_plugins: frozenset[str] | None) -> frozenset[str]:
    """The PostFilter plugins that are missing, or left out."""
    missing = frozenset(missing_plugins())
    left_out = _POST_FILTERS - only_plugins if only_plugins else frozenset[str]()
    return _POST_FILTERS & (missing | left_out)


_POST_FILTERS = frozenset({"DefaultPreemption", "DynamicResources"})


def _shown(value: object) -> str:
    return "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()


def _comparable(decision: Decision, absent: frozenset[str]) -> Decision:
    kept = dict(decision)
    if "DefaultPreemption" in absent:
        kept.pop("preemption", None)
        kept.pop("fit_error", None)
    elif "DynamicResources" in absent and "preemption" in kept:
        kept = _without_device_claims(kept)
    if "filter" in kept:
        kept["filter"] = {name: _in_any_order(status) for name, status in kept["filter"].items()}
    if "also_failing" in kept:
        kept["also_failing"] = {
            name: sorted(map(_in_any_order, statuses), key=_shown) for name, statuses in kept["also_failing"].items()
        }
    return kept


def _without_device_claims(decision: Decision) -> Decision:
    """A decision as it would be without DynamicResources, whose PostFilter runs first and adds its own words."""
    preemption = dict(decision["preemption"])
    own = [reason for reason in preemption.pop("reasons", ()) if reason.startswith("preemption: ")]
    preemption.pop("plugin", None)
    kept = dict(decision)
    if own:
        kept["preemption"] = preemption | {"reasons": own}
        kept["fit_error"] = f"{decision['fit_error_without_postfilter']} {', '.join(own)}"
    elif preemption["code"] == "Error":
        del kept["preemption"]
        kept.pop("fit_error", None)
    return kept


def _in_any_order(status: Mapping[str, Any]) -> Decision:
    """A status of NodeResourcesFit with its reasons sorted: upstream gives some of them in random order."""
    if status.get("plugin") != "NodeResourcesFit":
        return dict(status)
    return {**status, "reasons": sorted(status.get("reasons", ()))}
