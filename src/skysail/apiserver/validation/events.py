"""Events, as the core group takes them and as events.k8s.io does.

Checks work on the core form, whichever group the request came through.

Source: pkg/apis/core/validation/events.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, required
from skysail.apiserver.validation.field import Errors, at, immutable
from skysail.apiserver.validation.names import dns_subdomain, qualified_name

_NAME_LIMIT, _NOTE_LIMIT = 128, 1024
_MISMATCH = "does not match event.namespace"
_UNSET = "needs to be unset"
_REFERENCE = (
    ("Kind", "kind"), ("Namespace", "namespace"), ("Name", "name"), ("UID", "uid"), ("APIVersion", "apiVersion"),
    ("ResourceVersion", "resourceVersion"), ("FieldPath", "fieldPath"),
)  # fmt: skip
_SOURCE = (("Component", "component"), ("Host", "host"))


def core_event(obj: Raw) -> Errors:
    """Check an Event that came through the core group."""
    return _any_event(obj, "reportingComponent")


def _any_event(obj: Raw, controller_field: str) -> Errors:
    namespace = obj["metadata"].get("namespace") or ""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    errors: Errors = []
    if not obj.get("eventTime"):
        allowed = ("", "default") if not about else (about,)
        if namespace not in allowed:
            errors.append(invalid("involvedObject.namespace", about, _MISMATCH))
    else:
        if not about and namespace not in ("default", "kube-system"):
            errors.append(invalid("involvedObject.namespace", about, _MISMATCH))
        errors += _reporter(obj, controller_field)
        for key, limit in (("action", _NAME_LIMIT), ("reason", _NAME_LIMIT)):
            errors += _filled(obj, key, limit)
        if len((obj.get("message") or "").encode()) > _NOTE_LIMIT:
            errors.append(invalid("message", "", f"can have at most {_NOTE_LIMIT} characters"))
    return errors + at("namespace", dns_subdomain(namespace), namespace)


def _reporter(obj: Raw, controller_field: str) -> Errors:
    controller = obj.get("reportingComponent") or ""
    errors = [] if controller else [required(controller_field)]
    errors += at(controller_field, qualified_name(controller), controller)
    return errors + _filled(obj, "reportingInstance", _NAME_LIMIT)


def _filled(obj: Raw, key: str, limit: int) -> Errors:
    value = obj.get(key) or ""
    errors = [] if value else [required(key)]
    if len(value.encode()) > limit:
        errors.append(invalid(key, "", f"can have at most {limit} characters"))
    return errors


def new_event(obj: Raw) -> Errors:
    """Check an Event that came through events.k8s.io: the old fields are closed."""
    errors = _any_event(obj, "reportingController") + _series(obj)
    if not obj.get("eventTime"):
        errors.append(required("eventTime"))
    kind = obj.get("type") or ""
    if kind not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {kind}"))
    errors += [invalid(key, "", _UNSET) for key in ("firstTimestamp", "lastTimestamp", "count") if obj.get(key)]
    source = obj.get("source") or {}
    if source.get("component") or source.get("host"):
        errors.append(invalid("source", "", _UNSET))
    return errors


def _series(obj: Raw) -> Errors:
    series = obj.get("series")
    errors: Errors = []
    if series is not None:
        if (series.get("count") or 0) < 2:
            errors.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            errors.append(required("series.lastObservedTime"))
    return errors


def core_event_update(new: Raw, old: Raw) -> Errors:
    """Check a change through the core group: anything may change."""
    return core_event(new)


def new_event_update(new: Raw, old: Raw) -> Errors:
    """Check a change through events.k8s.io: only the series may change."""
    errors = _any_event(new, "reportingController")
    if new.get("series") != old.get("series"):
        errors += _series(new)
    errors += _form_kept(new, old, "involvedObject", _REFERENCE)
    errors += _text_kept(new, old, "reason", "message")
    errors += _form_kept(new, old, "source", _SOURCE)
    for key in ("firstTimestamp", "lastTimestamp"):
        errors += immutable(new.get(key), old.get(key), key)
    errors += immutable(new.get("count") or 0, old.get("count") or 0, "count")
    errors += _text_kept(new, old, "reason", "type")
    errors += immutable(new.get("eventTime"), old.get("eventTime"), "eventTime")
    errors += _text_kept(new, old, "action")
    errors += _form_kept(new, old, "related", _REFERENCE)
    if (new.get("reportingComponent") or "") != (old.get("reportingComponent") or ""):
        errors += immutable(new.get("reportingComponent") or "", None, "reportingController")
    return errors + _text_kept(new, old, "reportingInstance")


def _text_kept(new: Raw, old: Raw, *keys: str) -> Errors:
    return [error for key in keys for error in immutable(new.get(key) or "", old.get(key) or "", key)]


def _form_kept(new: Raw, old: Raw, key: str, names: tuple[tuple[str, str], ...]) -> Errors:
    def form(value: Raw | None) -> Raw | None:
        return None if value is None else {go: value.get(wire) or "" for go, wire in names}

    return immutable(form(new.get(key)), form(old.get(key)), key)
