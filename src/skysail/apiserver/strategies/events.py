"""Events: one store, two groups; kept in the core form, shown in either.

Source: pkg/registry/core/event/strategy.go, pkg/apis/events/v1/conversion.go, v1.36.
"""

from collections.abc import Mapping, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, RequestContext
from skysail.apiserver.strategies.defaults import core
from skysail.apiserver.strategies.generic import GenericStrategy, text_at

_NEW_GROUP = "events.k8s.io"
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "involvedObject.kind": ("involvedObject", "kind"),
    "involvedObject.namespace": ("involvedObject", "namespace"),
    "involvedObject.name": ("involvedObject", "name"),
    "involvedObject.uid": ("involvedObject", "uid"),
    "involvedObject.apiVersion": ("involvedObject", "apiVersion"),
    "involvedObject.resourceVersion": ("involvedObject", "resourceVersion"),
    "involvedObject.fieldPath": ("involvedObject", "fieldPath"),
    "reason": ("reason",),
    "reportingComponent": ("reportingComponent",),
    "type": ("type",),
}
_TO_NEW = {
    "involvedObject": "regarding", "message": "note", "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount", "reportingComponent": "reportingController",
}  # fmt: skip
_TO_CORE = {there: here for here, there in _TO_NEW.items()}
_SHOWN_WHEN_SET = ("reportingController", "reportingInstance")


class EventStrategy(GenericStrategy):
    """Events as the core group sees them."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Taken as it is."""

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Taken as it is."""

    def selectable_fields(self, obj: Raw) -> Mapping[str, str]:
        """By the object an event is about, and by who reported it; under the names of both groups."""
        values = {name: text_at(obj, path) for name, path in _FIELDS.items()}
        values["source"] = text_at(obj, ("source", "component")) or values["reportingComponent"]
        for name, path in _FIELDS.items():
            if name.startswith("involvedObject."):
                values[f"regarding.{path[1]}"] = values[name]
        values["reportingController"] = values["reportingComponent"]
        return values


class NewEventStrategy(EventStrategy):
    """Events as `events.k8s.io` sees them: other words, stricter checks."""

    def default(self, obj: Raw) -> None:
        """The parts that are always shown."""
        for key in ("regarding", "deprecatedSource"):
            obj.setdefault(key, {})
        for key in ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
            obj.setdefault(key, None)

    def validate_create(self, obj: Raw) -> Sequence[FieldError]:
        """Checked in the core form."""
        return super().validate_create(_as_core(obj))

    def validate_update(self, new: Raw, old: Raw) -> Sequence[FieldError]:
        """Checked in the core form."""
        return super().validate_update(_as_core(new), _as_core(old))

    def to_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Into the core group's words."""
        stored = _as_core(obj)
        core.event(stored)
        return stored

    def from_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Into this group's words."""
        shown = {_TO_NEW.get(key, key): value for key, value in obj.items()}
        shown["apiVersion"] = f"{group}/{version}"
        for key in _SHOWN_WHEN_SET:
            if shown.get(key) == "":
                del shown[key]
        return shown


def _as_core(obj: Raw) -> Raw:
    """An Event in the core form; keys of that form that came along by mistake give way."""
    kept = {key: value for key, value in obj.items() if key not in _TO_CORE}
    return kept | {_TO_CORE[key]: value for key, value in obj.items() if key in _TO_CORE} | {"apiVersion": "v1"}
