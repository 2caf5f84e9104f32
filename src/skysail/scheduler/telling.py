"""What a decision found out, in the form of the recorded ones: shared by `skysail explain` and `/debug/attempts`."""

from skysail.api.raw import Raw
from skysail.scheduler.framework.evaluation import PreFilterOutcome
from skysail.scheduler.framework.score_cards import ScoreCard
from skysail.scheduler.framework.status import Status
from skysail.scheduler.preemption.default_preemption import PreemptionOutcome, aggregate
from skysail.scheduler.preemption.victims import Victims


def told_status(status: Status) -> Raw:
    """Code, plugin, reasons; what is empty is left out."""
    found: Raw = {"code": status.code.text}
    if status.plugin:
        found["plugin"] = status.plugin
    if status.reasons:
        found["reasons"] = list(status.reasons)
    return found


def told_pre_filter(outcome: PreFilterOutcome, skipped: frozenset[str]) -> Raw:
    """What PreFilter decided, to which nodes it narrowed the search, and whose Filter it left out."""
    found = told_status(outcome.status)
    names = outcome.result.node_names if outcome.status.is_success else None
    found["node_names"] = None if names is None else sorted(names)
    if outcome.restricted_by:
        found["restricted_by"] = sorted(outcome.restricted_by)
    if skipped:
        found["skipped_filter_plugins"] = sorted(skipped)
    return found


def told_preemption(outcome: PreemptionOutcome) -> Raw:
    """Who may preempt, where evicting whom would help, and where not."""
    found: Raw = {"eligible": not outcome.ineligible_reason, "nominated_node": ""}
    if outcome.ineligible_reason:
        return found | {"ineligible_reason": outcome.ineligible_reason}
    assert outcome.candidates is not None
    victims, failures = outcome.candidates.victims, outcome.candidates.failures
    if victims:
        found["candidates"] = {name: _victims(victims[name]) for name in sorted(victims)}
        found["best_nodes"] = sorted(outcome.best)
        found["nominated_node"] = outcome.best[0] if len(outcome.best) == 1 else None
    if failures:
        found["candidate_failures"] = {name: told_status(failures[name]) for name in sorted(failures)}
    if outcome.candidates.errors:
        found["find_error"] = aggregate(outcome.candidates.errors)
    return found


def _victims(victims: Victims) -> Raw:
    return {"victims": [pod.key for pod in victims.pods], "pdb_violations": victims.violations}


def told_card(card: ScoreCard) -> Raw:
    """One node's scores, by plugin raw, normalised and weighted."""
    scores = {
        name: {
            "weight": card.weights[name], "raw": raw, "normalized": normalized,
            "weighted": card.weights[name] * normalized,
        }
        for name, (raw, normalized) in sorted(card.scores.items())
    }  # fmt: skip
    found: Raw = {"node": card.node_name, "total": card.total, "scores": scores}
    return found | ({"extenders": card.extra} if card.extra else {})
