"""The entries of metadata.managedFields: one a manager, operation, version and subresource.

An Apply entry is one per manager and subresource, whatever the version; an Update entry is one per version too. They
are written sorted by operation, time and manager.

Source: apimachinery/pkg/util/managedfields/internal/{managedfields,capmanagers,conflict}.go, v1.36.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from skysail.api.raw import Raw
from skysail.apiserver.contract import quote
from skysail.apiserver.patching.field_set import FieldSet

MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"


@dataclass(frozen=True, slots=True, order=True)
class ManagerId:
    """Who owns: what tells two entries apart.

    Attributes:
        api_version: Empty for an Apply.
    """

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def sort_text(self) -> str:
        """The order in which upstream lists several managers: that of their JSON form."""
        version = f',"apiVersion":{quote(self.api_version)}' if self.api_version else ""
        below = f',"subresource":{quote(self.subresource)}' if self.subresource else ""
        return f'{{"manager":{quote(self.manager)},"operation":{quote(self.operation)}{version}{below}}}'

    def __str__(self) -> str:
        """As a conflict names it: `"m1"`, `"kubectl-scale" using apps/v1`."""
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(slots=True)
class Entry:
    """What one manager owns.

    Attributes:
        fields: The paths.
        api_version: In which version the paths are meant.
        time: RFC 3339, or None when it never was set.
    """

    fields: FieldSet
    api_version: str
    time: str | None = None


Managers = dict[ManagerId, Entry]


def manager_id(manager: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    """The identity of a request's manager."""
    return ManagerId(manager or "unknown", operation, api_version if operation == "Update" else "", subresource)


def decode_managers(entries: object, *, trusted: bool = False) -> Managers | None:
    """The managers of an object, or None when the list is broken; what the server itself wrote is `trusted`."""
    found: Managers = {}
    if entries is None:
        return found
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return None
        version = entry.get("apiVersion")
        if not version or entry.get("fieldsType") != "FieldsV1":
            return None
        try:
            fields = FieldSet(entry["fieldsV1"]) if trusted else FieldSet.decode(entry.get("fieldsV1") or {})
        except ValueError:
            return None
        who = manager_id(entry.get("manager", ""), entry["operation"], version, entry.get("subresource") or "")
        found[who] = Entry(fields, version, entry.get("time"))
    return found


def is_reset(entries: object) -> bool:
    """Whether a client asks to forget all owners: an empty list, or one empty entry."""
    if not isinstance(entries, list):
        return False
    return not entries or (len(entries) == 1 and not any(_meaningful(entries[0])))


def _meaningful(entry: Raw) -> Iterable[object]:
    return (value for key, value in entry.items() if key != "time" or value)


def encode_managers(managers: Managers) -> list[Raw]:
    """The list as it is stored."""
    entries = sorted(managers.items(), key=lambda pair: _order(*pair))
    return [_encoded(who, entry) for who, entry in entries]


def _order(who: ManagerId, entry: Entry) -> tuple[str, str, str, str, str]:
    return (who.operation, entry.time or "", who.manager, entry.api_version, who.subresource)


def _encoded(who: ManagerId, entry: Entry) -> Raw:
    out: Raw = {"manager": who.manager, "operation": who.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out |= {"fieldsType": "FieldsV1", "fieldsV1": entry.fields.tree}
    if who.subresource:
        out["subresource"] = who.subresource
    return out


def time_text(now: datetime) -> str:
    """A time in whole seconds, as entries carry it."""
    return f"{now.astimezone(UTC).isoformat()[:19]}Z"


def cap_update_managers(managers: Managers) -> None:
    """Keep at most ten Update managers: the oldest are joined into one a version."""
    updaters = [who for who in managers if who.operation == "Update"]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return
    updaters.sort(key=lambda who: (managers[who].time or "", who.sort_text))
    first_of: dict[str, ManagerId] = {}
    left = len(updaters)
    for who in updaters:
        if left <= MAX_UPDATE_MANAGERS:
            return
        entry = managers[who]
        first = first_of.setdefault(entry.api_version, who)
        if first == who:
            continue
        bucket = ManagerId(ANCIENT, "Update", entry.api_version)
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
        joined = managers[bucket].fields.union(entry.fields)
        managers[bucket] = Entry(joined, entry.api_version, entry.time)
        managers.pop(who, None)
        left -= 1


def owned_by_all(managers: Mapping[ManagerId, Entry]) -> FieldSet:
    """Every path that anybody owns."""
    out = FieldSet()
    for entry in managers.values():
        out = out.union(entry.fields)
    return out
