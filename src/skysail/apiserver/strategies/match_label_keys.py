"""matchLabelKeys: the pod's own label values become part of the selectors that name the keys.

Source: pkg/registry/core/pod/strategy.go applyMatchLabelKeysAndMismatchLabelKeys, v1.36.
"""

from collections.abc import Iterable, Mapping

from skysail.api.raw import Raw

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_pod_affinity(pod: Raw) -> None:
    """Alter every pod affinity term that names matchLabelKeys or mismatchLabelKeys."""
    affinity = pod["spec"].get("affinity")
    if not affinity:
        return
    labels = pod["metadata"].get("labels") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(side) or {}
        for weighted in terms.get(_PREFERRED) or ():
            _merge_term(weighted.get("podAffinityTerm") or {}, labels)
        for term in terms.get(_REQUIRED) or ():
            _merge_term(term, labels)


def merge_topology_spread(pod: Raw) -> None:
    """Alter every topology spread constraint that names matchLabelKeys."""
    labels = pod["metadata"].get("labels") or {}
    for constraint in pod["spec"].get("topologySpreadConstraints") or ():
        if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is not None:
            _require(constraint["labelSelector"], constraint["matchLabelKeys"], "In", labels)


def _merge_term(term: Raw, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is not None:
        _require(selector, term.get("matchLabelKeys") or (), "In", labels)
        _require(selector, term.get("mismatchLabelKeys") or (), "NotIn", labels)


def _require(selector: Raw, keys: Iterable[str], operator: str, labels: Mapping[str, str]) -> None:
    added = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
    if added:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
