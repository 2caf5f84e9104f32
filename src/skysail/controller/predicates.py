"""Ready-made answers to "is this change worth a reconcile?".

Source: sigs.k8s.io/controller-runtime/pkg/predicate.
"""

from collections.abc import Collection

from skysail.api.labels import Selector
from skysail.controller.watches import Change, ObjectEvent, Predicate
from skysail.informer.keys import annotations_of, generation_of, key_of, labels_of, version_of


def generation_changed(event: ObjectEvent[object]) -> bool:
    """Leaves out updates that touched only metadata or status. Not for kinds without a generation (pods)."""
    return event.change is not Change.UPDATED or generation_of(event.old) != generation_of(event.new)


def version_changed(event: ObjectEvent[object]) -> bool:
    """Leaves out resyncs."""
    return event.change is not Change.UPDATED or version_of(event.old) != version_of(event.new)


def labels_changed(event: ObjectEvent[object]) -> bool:
    """Leaves out updates with the same labels."""
    return event.change is not Change.UPDATED or labels_of(event.old) != labels_of(event.new)


def annotations_changed(event: ObjectEvent[object]) -> bool:
    """Leaves out updates with the same annotations."""
    return event.change is not Change.UPDATED or annotations_of(event.old) != annotations_of(event.new)


def matches(selector: Selector) -> Predicate[object]:
    """Only objects a label selector matches."""

    def accepts(event: ObjectEvent[object]) -> bool:
        return selector.matches(labels_of(event.object))

    return accepts


def in_namespaces(namespaces: Collection[str]) -> Predicate[object]:
    """Only objects of these namespaces."""

    def accepts(event: ObjectEvent[object]) -> bool:
        return key_of(event.object).namespace in namespaces

    return accepts


def any_of(*predicates: Predicate[object]) -> Predicate[object]:
    """One of several is enough."""

    def accepts(event: ObjectEvent[object]) -> bool:
        return any(predicate(event) for predicate in predicates)

    return accepts


def negated(predicate: Predicate[object]) -> Predicate[object]:
    """The opposite."""

    def accepts(event: ObjectEvent[object]) -> bool:
        return not predicate(event)

    return accepts
