"""Which nodes a node selector, a node affinity or a plain `nodeSelector` admits.

A selector is compiled once (`compile_node_selector` remembers equal ones) and then asked for many nodes. A term that
cannot be read is an error only when no other term admits the node: that is upstream's lenient form for stored objects.

>>> from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
>>> zone = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="zone", operator="In", values=("a",)),))
>>> matches_node_selector(NodeSelector(node_selector_terms=(zone,)), "n1", {"zone": "a"})
True

Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, v1.36.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from skysail.api.core import Pod
from skysail.api.fields import FieldRequirement, FieldSelector
from skysail.api.labels import Selector, SelectorError, invalid, quoted, requirement

_LABEL_OPERATORS: Final = {
    "In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CompiledTerm:
    """One term, ready to be asked.

    Attributes:
        labels: Tests on the node's labels; None when the term has none.
        fields: Tests on the node's fields; None when the term has none.
        errors: Why the term cannot be read; such a term admits no node.
    """

    labels: Selector | None = None
    fields: FieldSelector | None = None
    errors: tuple[str, ...] = ()

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node has these labels and this name."""
        if self.errors or (self.labels is not None and not self.labels.matches(labels)):
            return False
        if self.fields is None or not node_name:
            return True
        return self.fields.matches({"metadata.name": node_name}.get)


@dataclass(frozen=True, slots=True)
class CompiledNodeSelector:
    """Terms of which one must hold; without a term, none does.

    Attributes:
        terms: The terms that say anything; an empty term admits no node and is left out.
    """

    terms: tuple[CompiledTerm, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """Everything that is wrong with any term."""
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Whether one term admits the node.

        Raises:
            ValueError: No term admits it and one cannot be read.
        """
        if any(term.matches(node_name, labels) for term in self.terms):
            return True
        if errors := self.errors:
            raise SelectorError(errors)
        return False


@lru_cache(maxsize=8_192)
def compile_node_selector(selector: NodeSelector, path: str = "") -> CompiledNodeSelector:
    """A node selector, ready to be asked; never fails (see `CompiledNodeSelector.errors`).

    Args:
        selector: The selector as it stands in the object.
        path: Where that is, for messages.
    """
    where = f"{path}.nodeSelectorTerms" if path else "nodeSelectorTerms"
    return CompiledNodeSelector(
        tuple(
            compile_term(term, f"{where}[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not _is_empty(term)
        )
    )


def compile_term(term: NodeSelectorTerm, path: str) -> CompiledTerm:
    """One term, ready to be asked; never fails (see `CompiledTerm.errors`)."""
    errors: list[str] = []
    labels = _compile_labels(term.match_expressions, f"{path}.matchExpressions", errors)
    fields = _compile_fields(term.match_fields, f"{path}.matchFields", errors)
    return CompiledTerm(labels, fields, tuple(errors))


def compile_preferred_terms(
    terms: Iterable[PreferredSchedulingTerm], path: str = ""
) -> tuple[tuple[int, CompiledTerm], ...]:
    """Weights and terms of a preference; terms without weight or content are left out.

    Raises:
        ValueError: With everything that is wrong with any of them.
    """
    compiled = [
        (term.weight, compile_term(term.preference, f"{path}[{index}]"))
        for index, term in enumerate(terms)
        if term.weight and term.preference is not None and not _is_empty(term.preference)
    ]
    if errors := [error for _, term in compiled for error in term.errors]:
        raise SelectorError(errors)
    return tuple(compiled)


def matches_node_selector(selector: NodeSelector, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node selector admits a node.

    Raises:
        ValueError: No term admits it and one cannot be read; the message is upstream's.
    """
    return compile_node_selector(selector).matches(node_name, labels)


def matches_required_node_affinity(pod: Pod, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node has what the pod's `nodeSelector` and required node affinity ask for.

    Raises:
        ValueError: No term admits it and one cannot be read.
    """
    spec = pod.spec
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return True
    required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or matches_node_selector(required, node_name, labels)


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _compile_labels(expressions: tuple[NodeSelectorRequirement, ...], path: str, errors: list[str]) -> Selector | None:
    if not expressions:
        return None
    requirements = []
    for index, expression in enumerate(expressions):
        operator = _LABEL_OPERATORS.get(expression.operator)
        if operator is None:
            errors.append(_unsupported(f"{path}[{index}]", expression.operator, _LABEL_OPERATORS))
            continue
        try:
            requirements.append(requirement(expression.key, operator, expression.values, path=f"{path}[{index}]"))
        except SelectorError as error:
            errors += error.errors
    return Selector(requirements)


def _compile_fields(
    expressions: tuple[NodeSelectorRequirement, ...], path: str, errors: list[str]
) -> FieldSelector | None:
    if not expressions:
        return None
    requirements = []
    for index, expression in enumerate(expressions):
        if expression.operator not in ("In", "NotIn"):
            errors.append(_unsupported(f"{path}[{index}]", expression.operator, ("In", "NotIn")))
        elif len(expression.values) != 1:
            errors.append(f"{path}[{index}].values: {invalid(expression.values, 'must have one element')}")
        else:
            equal = expression.operator == "In"
            requirements.append(FieldRequirement(expression.key, "=" if equal else "!=", expression.values[0]))
    return FieldSelector(tuple(requirements))


def _unsupported(path: str, operator: str, supported: Iterable[str]) -> str:
    return (
        f"{path}.operator: Unsupported value: {quoted(operator)}: supported values: {', '.join(map(quoted, supported))}"
    )
