"""Who owns which field: kept up to date on every write; and server-side apply, which is made of it.

`update`: what a write added or changed now belongs to its manager and to nobody else; what it removed belongs to
nobody.

`apply`: a manager states its whole intent. Fields in it are set, and owned (shared with others who said the same);
fields that it owned before and left out now go, unless somebody else owns them. A field that somebody else owns with
another value is a conflict, unless forced. An object nobody ever tracked first gets an owner, `before-first-apply`.

Differs: an entry of another version of the kind is read in the version at hand, without conversion; fields whose list
or map type a CRD changed keep their old paths.

Source: apimachinery/pkg/util/managedfields; sigs.k8s.io/structured-merge-diff v6 `merge/update.go`.
"""

import copy
import json
from datetime import datetime
from typing import cast

from skysail.api.errors import ApiError, BadRequest, Conflict, Status, StatusCause, StatusDetails
from skysail.api.raw import Raw
from skysail.apiserver.decoding.readers import normalize
from skysail.apiserver.decoding.zeros import forget_empty_lists, zero_object
from skysail.apiserver.go_values import same
from skysail.apiserver.patching.comparing import ABSENT, Comparison, compare, mistakes, to_field_set, with_named_fields
from skysail.apiserver.patching.field_set import FieldSet, Path, path_text
from skysail.apiserver.patching.managers import (
    Entry,
    ManagerId,
    Managers,
    cap_update_managers,
    decode_managers,
    encode_managers,
    is_reset,
    manager_id,
    owned_by_all,
    time_text,
)
from skysail.apiserver.patching.merging import merge, remove
from skysail.apiserver.patching.reset_fields import ignored_paths, without
from skysail.apiserver.patching.structure import Node, structure_of
from skysail.apiserver.schema import TypeInfo, made_from

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"

_SERVERS = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
_STRIPPED = FieldSet.of(
    ("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _SERVERS)
)


def update(
    live: Raw | None,
    new: Raw,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    now: datetime,
    type_info: object,
) -> None:
    """Bring `new`'s metadata.managedFields up to date after any write but an apply.

    Args:
        live: The stored object before; None on create.
        new: What will be stored; altered in place. Managers that a client sent in it count, unless through a
            subresource. Required lists that are empty become null, as storing makes them.
        manager: Who writes.
        api_version: In which version.
        subresource: Through which subresource, or "".
        now: When.
        type_info: The object's `TypeInfo`.
    """
    info = cast("TypeInfo", type_info)
    given = new["metadata"].pop("managedFields", None)
    managers = _known_managers(live, given, info, through_subresource=bool(subresource))
    if not managers and live is not None:
        forget_empty_lists(new, info)
        return
    before = _blank(info) if live is None else _without_managers(live)
    who = manager_id(manager, "Update", api_version, subresource)
    entry = Entry(FieldSet(), api_version, time_text(now))
    if subresource == "scale":
        # Upstream maps these entries from the Scale to its parent, and loses their time on the way.
        entry.time = managers[who].time if who in managers else None
    _track(managers, who, compare(before, new, structure_of(info)), entry)
    cap_update_managers(managers)
    forget_empty_lists(new, info)
    if managers:
        new["metadata"]["managedFields"] = encode_managers(managers)


def _blank(info: TypeInfo) -> Raw:
    """The empty object of a type, made once; nobody alters it."""
    blanks = made_from(info, "blank objects", dict[str, Raw])
    if info.name not in blanks:
        blanks[info.name] = zero_object(info)
    return blanks[info.name]


def _known_managers(live: Raw | None, given: object, info: TypeInfo, *, through_subresource: bool) -> Managers:
    before = live["metadata"].get("managedFields") if live is not None else None
    if not through_subresource:
        if is_reset(given):
            return {}
        if sent := decode_managers(given):
            return _of_known_versions(sent, info)
    return _of_known_versions(decode_managers(before, trusted=True) or {}, info)


def _of_known_versions(managers: Managers, info: TypeInfo) -> Managers:
    """Without entries in versions that the kind no longer has."""
    known = made_from(info, "versions of kinds", lambda: _versions_of_kinds(info))
    for who in [who for who, entry in managers.items() if entry.api_version not in known.get(info.gvk[0][2], ())]:
        del managers[who]
    return managers


def _versions_of_kinds(info: TypeInfo) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for other in info.types.values():
        for group, version, kind in other.gvk:
            found.setdefault(kind, set()).add(f"{group}/{version}" if group else version)
    return found


def _without_managers(obj: Raw) -> Raw:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _track(managers: Managers, who: ManagerId, change: Comparison, entry: Entry) -> None:
    """Move ownership after a change by one manager; `entry` brings its version and time."""
    taken = change.modified.union(change.added)
    _take_away(managers, taken, change.removed)
    owned = taken.difference(_STRIPPED)
    if owned.empty:
        return
    former = managers.get(who)
    entry.fields = owned.union(former.fields) if former is not None else owned
    managers[who] = entry


def _take_away(managers: Managers, taken: FieldSet, removed: FieldSet, besides: ManagerId | None = None) -> None:
    for who, entry in list(managers.items()):
        if who != besides:
            entry.fields = entry.fields.difference(taken).difference(removed)
        if entry.fields.empty:
            del managers[who]


def apply(
    live: Raw | None,
    applied: Raw,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: datetime,
    type_info: object,
) -> Raw:
    """Server-side apply: the object with the configuration in it, in normal form, and its managedFields.

    Args:
        live: The stored object; None when there is none.
        applied: What the manager wants, whole.
        manager: Who applies.
        force: Take over what others own.
        subresource: Through which subresource, or "".
        now: When.
        type_info: The object's `TypeInfo`.

    Raises:
        BadRequest: The configuration is of another kind, or carries managedFields.
        Conflict: Others own fields that would change, and `force` is off.
        ApiError: 500: the configuration does not fit the type.
    """
    info = cast("TypeInfo", type_info)
    check_configuration(applied, info)
    task = _Apply(live, applied, manager, subresource, time_text(now), info)
    try:
        result = task.run(force=force)
    except _Conflicts as conflicts:
        task = _Apply(live, applied, manager, subresource, time_text(now), info)
        result = task.settle(conflicts)
    if manager == "kubectl":
        _renew_last_applied(result, applied)
    return result


def check_configuration(applied: Raw, info: TypeInfo) -> None:
    """Whether a configuration is of its kind and fits its type.

    Raises:
        BadRequest: It is of another kind, or carries managedFields.
        ApiError: 500: it does not fit.
    """
    _check_kind(applied, info)
    found = list(mistakes(applied, structure_of(info)))
    if not found:
        return
    metadata = applied.get("metadata")
    named: Raw = metadata if isinstance(metadata, dict) else {}
    group, version, kind = info.gvk[0]
    about = f"{named.get('namespace') or ''}/{named.get('name') or ''}; {group}/{version}, Kind={kind}"
    problem = found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in found)
    raise ApiError(Status(message=f"failed to create typed patch object ({about}): {problem}", code=500))


def _check_kind(applied: Raw, info: TypeInfo) -> None:
    group, version, kind = info.gvk[0]
    api_version = f"{group}/{version}" if group else version
    found = (applied.get("apiVersion") or "", applied.get("kind") or "")
    if found != (api_version, kind):
        shown = found[0] if "/" in str(found[0]) else f"/{found[0]}"
        raise BadRequest(f"invalid object type: {shown}, Kind={found[1]}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")


class _Conflicts(Exception):
    """Fields that others own and the configuration would change."""

    def __init__(self, found: list[tuple[ManagerId, Path]]) -> None:
        self.found = found

    def as_conflict(self) -> Conflict:
        """The answer that names each."""
        causes = tuple(
            StatusCause(reason="FieldManagerConflict", message=f"conflict with {who}", field=path_text(path))
            for who, path in self.found
        )
        if len(self.found) == 1:
            who, path = self.found[0]
            message = f"Apply failed with 1 conflict: conflict with {who}: {path_text(path)}"
        else:
            lines: list[str] = []
            for who in dict.fromkeys(who for who, _ in self.found):
                lines.append(f"conflicts with {who}:")
                lines += [f"- {path_text(path)}" for other, path in self.found if other == who]
            message = f"Apply failed with {len(self.found)} conflicts: " + "\n".join(lines)
        return Conflict(Status(message=message, reason="Conflict", details=StatusDetails(causes=causes), code=409))


class _Apply:
    """One apply. Used once: running it alters its managers."""

    def __init__(
        self, live: Raw | None, applied: Raw, manager: str, subresource: str, time: str, info: TypeInfo
    ) -> None:
        self.info, self.time, self.applied = info, time, applied
        self.node: Node = structure_of(info)
        self.api_version = applied["apiVersion"]
        self.manager, self.who = manager, manager_id(manager, "Apply", self.api_version, subresource)
        self.ignored = ignored_paths(info, subresource)
        empty = {"kind": applied["kind"], "apiVersion": self.api_version, **zero_object(info)}
        self.live = empty if live is None else _without_managers(live)
        stored = live["metadata"].get("managedFields") if live is not None else None
        self.managers = _of_known_versions(decode_managers(stored, trusted=True) or {}, info)
        if not self.managers and live is not None:
            owner = manager_id(BEFORE_FIRST_APPLY, "Update", self.api_version, subresource)
            change = compare(zero_object(info), self.live, self.node)
            _track(self.managers, owner, change, Entry(FieldSet(), self.api_version, time))

    def run(self, *, force: bool) -> Raw:
        """Merge, prune, settle ownership.

        Raises:
            _Conflicts: Others own what would change, and `force` is off.
            ApiError: The configuration does not fit the type.
        """
        former = self.managers.get(self.who)
        merged = _object(merge(self.live, self.applied, self.node))
        wanted = without(to_field_set(self.applied, self.node), self.ignored)
        mine = Entry(wanted, self.api_version, former.time if former else None)
        self.managers[self.who] = mine
        if former is not None and not former.fields.empty:
            merged = self._prune(merged, former.fields)
        self._settle_ownership(merged, force=force)
        changed = not same(merged, self.live)
        if changed and self.who in self.managers:
            self.managers[self.who].time = self.time
        return self._finished(merged if changed else self.live)

    def settle(self, conflicts: _Conflicts) -> Raw:
        """Second try: fields that client-side apply put there are kubectl's to take over.

        Raises:
            Conflict: Others remain.
        """
        allowed = self._last_applied_fields() if self.manager == "kubectl" else FieldSet()
        left = [(who, path) for who, path in conflicts.found if not allowed.has(path)]
        if left:
            raise _Conflicts(left).as_conflict() from None
        return self.run(force=True)

    def _prune(self, merged: Raw, last: FieldSet) -> Raw:
        """Take out what this manager owned, and no longer wants, and nobody else owns."""
        pruned = _object(remove(merged, with_named_fields(last, self.node), self.node))
        pruned = self._with_owned_items(merged, pruned)
        gone = self._named(merged).difference(self._named(pruned))
        return _object(remove(merged, gone.intersection(with_named_fields(last, self.node)), self.node))

    def _with_owned_items(self, merged: Raw, pruned: Raw) -> Raw:
        owned = with_named_fields(owned_by_all(self.managers), self.node)
        return _object(remove(merged, self._named(merged).difference(self._named(pruned).union(owned)), self.node))

    def _named(self, value: Raw) -> FieldSet:
        return with_named_fields(to_field_set(value, self.node), self.node)

    def _settle_ownership(self, merged: Raw, *, force: bool) -> None:
        change = compare(self.live, merged, self.node)
        taken = without(change.modified.union(change.added), self.ignored)
        removed = without(change.removed, self.ignored)
        if not force:
            found = [
                (who, path)
                for who in sorted(self.managers, key=lambda who: who.sort_text)
                if who != self.who
                for path in self.managers[who].fields.intersection(taken).paths()
            ]
            if found:
                raise _Conflicts(found)
        _take_away(self.managers, taken, removed, besides=self.who)
        mine = self.managers.get(self.who)
        if mine is not None:
            mine.fields = mine.fields.difference(_STRIPPED)
            if mine.fields.empty:
                del self.managers[self.who]

    def _finished(self, merged: Raw) -> Raw:
        group, version, kind = self.info.gvk[0]
        head = {"kind": kind, "apiVersion": f"{group}/{version}" if group else version}
        result: Raw = head | {
            key: value for key, value in normalize(copy.deepcopy(merged), self.info).items() if key not in head
        }
        forget_empty_lists(result, self.info)
        if self.managers:
            result["metadata"]["managedFields"] = encode_managers(self.managers)
        return result

    def _last_applied_fields(self) -> FieldSet:
        """What the annotation of client-side apply says was applied, where the object still has it so."""
        annotation = (self.live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
        try:
            config = json.loads(annotation) if annotation else None
        except ValueError:
            return FieldSet()
        if not isinstance(config, dict) or config.get("apiVersion") != self.api_version:
            return FieldSet()
        if any(True for _ in mistakes(config, self.node)):
            return FieldSet()
        change = compare(config, self.live, self.node)
        fields = to_field_set(config, self.node)
        return fields.difference(change.modified).difference(change.added).difference(change.removed)


def _object(value: object) -> Raw:
    return {} if value is ABSENT else cast("Raw", value)


def _renew_last_applied(result: Raw, applied: Raw) -> None:
    """An object that client-side apply wrote keeps its annotation in step with what kubectl applies."""
    annotations = result["metadata"].get("annotations")
    if not annotations or not annotations.get(LAST_APPLIED):
        return
    config = copy.deepcopy(applied)
    config.get("metadata", {}).get("annotations", {}).pop(LAST_APPLIED, None)
    annotations[LAST_APPLIED] = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
