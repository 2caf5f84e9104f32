"""What several kinds print alike: ages, selectors, containers, lists with an end cut off.

Source: apimachinery/pkg/util/duration; pkg/printers/internalversion/printers.go, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from skysail.api.labels import format_label_selector
from skysail.api.meta import LabelSelector
from skysail.api.raw import Raw

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"

_YEAR, _DAY = 24 * 365, 24


def human_duration(span: timedelta) -> str:
    """A span in at most two units: `5m30s`, `3h`, `2d4h`, `1y12d`."""
    seconds = span.total_seconds()
    if seconds < 0:
        return "0s" if seconds > -2 else "<invalid>"
    whole = int(seconds)
    minutes, hours = whole // 60, whole // 3600
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 8 * _DAY:
        return _two(hours // _DAY, "d", hours % _DAY, "h")
    if hours < 2 * _YEAR:
        return f"{hours // _DAY}d"
    if hours < 8 * _YEAR:
        return _two(hours // _YEAR, "y", hours // _DAY % 365, "d")
    return f"{hours // _YEAR}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def moment(text: object) -> datetime | None:
    """A time as it stands in an object."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def since(text: object, now: datetime) -> str:
    """How long ago a time in an object was."""
    at = moment(text)
    return UNKNOWN if at is None else human_duration(now - at)


def age(obj: Raw, now: datetime) -> str:
    """How long ago an object was made."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def container_cells(spec: Raw) -> tuple[str, str]:
    """Names and images of the containers of a pod's spec."""
    containers: Sequence[Raw] = spec.get("containers") or ()
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def template_cells(owner: Raw) -> tuple[str, str]:
    """The same for whatever has a pod template."""
    template = owner.get("template") or {}
    return container_cells(template.get("spec") or {})


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=1,b=2`, or `<none>`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Raw | None) -> str:
    """A LabelSelector as text, or `<none>`."""
    if selector is None:
        return NONE
    try:
        return format_label_selector(msgspec.convert(selector, LabelSelector))
    except (ValueError, msgspec.ValidationError):
        return "<error>"


def listed(items: Iterable[str], limit: int = 3, empty: str = UNSET) -> str:
    """The first few of many: `a,b,c + 4 more...`."""
    everything = list(items)
    shown = ",".join(everything[:limit])
    if len(everything) > limit:
        return f"{shown} + {len(everything) - limit} more..."
    return shown or empty


def part(obj: Raw, *names: str) -> Raw:
    """A nested object, or an empty one."""
    here: object = obj
    for name in names:
        here = here.get(name) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


def condition(conditions: Iterable[Raw] | None, kind: str) -> str | None:
    """The status of a condition, or None when it is not there."""
    return next((str(c.get("status")) for c in conditions or () if c.get("type") == kind), None)
