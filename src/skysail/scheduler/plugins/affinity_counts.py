"""What pod affinity counts: pods, or carriers of terms, by topology pair (key and value).

Source: pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skysail.api.core import Pod
from skysail.api.labels import Selector
from skysail.scheduler.cache.columns import MatchColumn, TermKind, TermRegistry
from skysail.scheduler.cache.matrices import IntColumn, Rows
from skysail.scheduler.cache.pod_info import AffinityTerm
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ScoreArray, zero_scores
from skysail.scheduler.framework.steps import Mask
from skysail.scheduler.plugins.domain_counts import domain_counts

Labels = Mapping[str, str]
Test = tuple[frozenset[str] | None, Selector]
NO_LABELS: Labels = {}
_NOTHING = Selector(selectable=False)


class PairCounts:
    """Counts by topology pair: for each key an array by label code, with a 0 in the last place, which ABSENT picks.

    The arrays may be shared with the table until `own` copies them; what-ifs count in and out only after that.
    """

    __slots__ = ("by_key",)

    def __init__(self, by_key: dict[str, IntColumn] | None = None) -> None:
        self.by_key: dict[str, IntColumn] = by_key if by_key is not None else {}

    def add(self, key: str, counts: IntColumn) -> None:
        """Add the counts of one term; two terms of one key count together."""
        known = self.by_key.get(key)
        self.by_key[key] = counts if known is None else known + counts

    def own(self) -> "PairCounts":
        """A copy that may be changed."""
        return PairCounts({key: counts.copy() for key, counts in self.by_key.items()})

    def move(self, table: NodeTable, key: str, value: str | None, number: int) -> None:
        """Count one pod in or out of a pair; nothing when the node lacks the key."""
        if value is None:
            return
        label = table.label(key)
        counts = self.by_key.get(key)
        if counts is None:
            counts = self.by_key[key] = np.zeros(len(label.values) + 1, dtype=np.int64)
        counts[label.code_of(value)] += number

    @property
    def empty(self) -> bool:
        """Whether nothing is counted anywhere."""
        return not any(counts.any() for counts in self.by_key.values())

    def positive(self, key: str, table: NodeTable, rows: Rows) -> Mask:
        """(n_rows,) bool: rows that have the key, with a pair that counts something."""
        found: Mask = (self.by_key[key] > 0)[table.label(key).codes[rows]]
        return found


class PairScores:
    """Weighted counts by topology pair, for scoring.

    Attributes:
        by_key: For each key (n_values + 1,) int64 by label code, 0 in the last place, which ABSENT picks.
    """

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[str, IntColumn] = {}

    def add(self, key: str, counts: IntColumn, weight: int) -> None:
        """Add one term's counts, weighted."""
        part = counts * weight
        known = self.by_key.get(key)
        self.by_key[key] = part if known is None else known + part

    def of_rows(self, table: NodeTable, rows: Rows) -> ScoreArray:
        """(n_rows,) int64: the sum over keys that each node has."""
        total = zero_scores(rows)
        for key, scores in self.by_key.items():
            total += scores[table.label(key).codes[rows]]
        return total


def resolve_namespaces(term: AffinityTerm, namespaces: Iterable[tuple[str, Labels]]) -> Test:
    """What a term of the incoming pod tests: its namespace selector is looked up.

    A selector that a namespace without labels passes admits all: upstream looks it up in a copy of the term, and then
    asks the term itself with no labels at hand.
    """
    if term.namespace_selector.matches(NO_LABELS):
        return None, term.selector
    if not term.namespace_selector.selectable:
        return term.namespaces, term.selector
    selected = [name for name, labels in namespaces if term.namespace_selector.matches(labels)]
    return term.namespaces.union(selected), term.selector


def passes(test: Test, pod: Pod) -> bool:
    """Whether a pod is meant by a resolved term."""
    namespaces, selector = test
    return (namespaces is None or pod.metadata.namespace in namespaces) and selector.matches(pod.metadata.labels)


def passes_all(tests: Sequence[Test], pod: Pod) -> bool:
    """Whether a pod is meant by every resolved term; no terms mean nobody."""
    return bool(tests) and all(passes(test, pod) for test in tests)


def count_matches(table: NodeTable, tests: Sequence[Test], key: str) -> IntColumn:
    """(n_values + 1,) int64: pods that pass all tests, by the domains of a key."""
    column: MatchColumn = table.matches(*tests)
    return domain_counts(table, ("matches", tuple(tests)), key, column).counts


def count_carriers(table: NodeTable, kind: TermKind, term: AffinityTerm) -> IntColumn:
    """(n_values + 1,) int64: pods that carry a term, by the domains of its key."""
    column = table.carriers(kind, term)
    return domain_counts(table, ("carriers", kind, term), term.topology_key, column).counts


@dataclass(slots=True)
class _Meant:
    """Which carried terms mean a pod, as long as no term comes or goes."""

    registry: TermRegistry | None = None
    version: int = -1
    terms: tuple[AffinityTerm, ...] = ()


def carried_terms(table: NodeTable, kind: TermKind, pod: Pod, namespace_labels: Labels) -> tuple[AffinityTerm, ...]:
    """The terms of a kind, carried by any pod in the cluster, that mean this pod.

    Cost: One test for each distinct term, remembered for pods of equal labels.
    """
    registry = table.registry(kind)
    if not registry.carried:
        return ()
    metadata = pod.metadata
    labels = frozenset(metadata.labels.items())
    key = ("meant", kind, metadata.namespace, labels, frozenset(namespace_labels.items()))
    known = table.remember(key, _Meant)
    if known.registry is not registry or known.version != registry.terms_version:
        known.terms = tuple(term for term in registry.carried if term.matches(pod, namespace_labels))
        known.registry, known.version = registry, registry.terms_version
    return known.terms
