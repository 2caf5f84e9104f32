"""Groups of all APIs, and priority classes that they name: one object of a name counts, ours before others'."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from skysail.api.kinds import PRIORITY_CLASSES, Kind
from skysail.api.raw import Raw
from skysail.batch.foreign.registry import GROUP_KINDS, WORKLOAD_PRIORITIES, RawKind, read_group
from skysail.batch.kinds import POD_GROUPS, PodGroup
from skysail.batch.kinds import reading as own
from skysail.batch.listening import Listening
from skysail.batch.model.specs import PodGroupSpec
from skysail.batch.world import World
from skysail.informer.factory import InformerFactory
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

_log = logging.getLogger(__name__)
_RANKS: Final = {POD_GROUPS.resource: 0} | {
    kind.resource: place for place, kinds in enumerate(GROUP_KINDS, 1) for kind in kinds
}
"""Who counts when there are groups of one name: the lowest."""


class GroupFeeding(Listening):
    """What `Feeding` knows of groups.

    Args:
        informers: The factory, shared with others or own.
        world: Who is told.
        changed: Called after every change.
        submit: Makes a change of the world, at once or when a running cycle allows it.

    Attributes:
        groups: The object behind each group, by key, with its kind: where statuses are written.
    """

    def __init__(
        self,
        informers: InformerFactory,
        world: World,
        changed: Callable[[], None],
        submit: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(informers, submit)
        self._world, self._changed = world, changed
        self.groups: dict[str, tuple[Kind[Any], Any]] = {}
        self._foreign_kinds: dict[str, RawKind] = {}
        """Those that are followed, by resource."""

    def _follow_groups(self, kind: Kind[Any]) -> None:
        if kind is not POD_GROUPS:
            self._foreign_kinds[kind.resource] = kind
        ours = Handlers(add=self._group, update=self._group_changed, delete=self._no_group)
        self._attach(kind, ours if kind is POD_GROUPS else self._foreign_group_handlers(kind))

    def _leave_groups(self, kind: Kind[Any]) -> None:
        self._detach(kind)
        self._foreign_kinds.pop(kind.resource, None)
        for key in [key for key, (of, _) in self.groups.items() if of is kind]:
            self._forget_group(kind, key)

    def _watch_priorities(self) -> None:
        self._priorities = self._informers.informer(PRIORITY_CLASSES)
        self._listen(self._priorities, self._priority_handlers())

    def _follow_priorities(self, kind: Kind[Any]) -> None:
        self._attach(kind, self._priority_handlers())

    def _leave_priorities(self, kind: Kind[Any]) -> None:
        self._detach(kind)
        self._read_groups()

    def _priority_of(self, name: str) -> int | None:
        """By a PriorityClass, or by Kueue's WorkloadPriorityClass."""
        found = self._priorities.lister.get(Key("", name))
        if found is not None:
            return int(found.value)
        kueues = self._attached.get(WORKLOAD_PRIORITIES[0].resource)
        value = (kueues.lister.get(Key("", name)) or {}).get("value") if kueues is not None else None
        return value if isinstance(value, int) else None

    def _priority_handlers(self) -> Handlers[Any]:
        """A class that comes, changes or goes is a matter of every group that names it."""

        def changed(priority: Any) -> None:
            self._read_groups(priority["metadata"]["name"] if isinstance(priority, dict) else priority.name)

        return Handlers(add=changed, update=lambda old, new: changed(new), delete=changed)

    def _read_groups(self, priority_class: str = "") -> None:
        """Read groups anew that name this priority class, or any."""
        for kind, group in list(self.groups.values()):
            named = _priority_class_of(group)
            if named and priority_class in ("", named):
                if kind is POD_GROUPS:
                    self._group(group)
                else:
                    self._foreign_group(kind, group)

    def _group(self, group: PodGroup) -> None:
        spec, problems = own.read_group(group, self._priority_of)
        for problem in problems:
            _log.info("group is not as it should be", extra={"object": problem.about, "problem": problem.message})
        self._take_group(POD_GROUPS, group, spec)

    def _group_changed(self, old: PodGroup, new: PodGroup) -> None:
        self.groups[new.key] = (POD_GROUPS, new)
        if old.spec != new.spec or old.uid != new.uid:
            self._group(new)

    def _no_group(self, group: PodGroup) -> None:
        self._forget_group(POD_GROUPS, group.key)

    def _forget_group(self, kind: Kind[Any], key: str) -> None:
        """An object is gone, or says nothing of a group any more; another system's of that name may count now."""
        if self.groups.get(key, (None,))[0] is kind:
            del self.groups[key]
            if not any(self._foreign_group(other, raw) for other, raw in self._namesakes(key)):
                self._world.remove_group(key)
                self._changed()

    def _namesakes(self, key: str) -> Iterator[tuple[RawKind, Raw]]:
        """Groups of other systems of a name, who counts first."""
        namespace, _, name = key.rpartition("/")
        for resource, kind in sorted(self._foreign_kinds.items(), key=lambda each: _RANKS[each[0]]):
            raw = self._attached[resource].lister.get(Key(namespace, name))
            if raw is not None:
                yield kind, raw

    def _take_group(self, kind: Kind[Any], obj: Any, spec: PodGroupSpec) -> bool:
        """A group is as an object says, unless one of its name is there that counts more; whether it does."""
        known = self.groups.get(spec.key)
        if known is not None and _RANKS[known[0].resource] < _RANKS[kind.resource]:
            return False
        self.groups[spec.key] = (kind, obj)
        self._world.set_group(spec)
        self._changed()
        return True

    def _foreign_group_handlers(self, kind: RawKind) -> Handlers[Raw]:
        def put(raw: Raw) -> None:
            self._foreign_group(kind, raw)

        def drop(raw: Raw) -> None:
            self._forget_group(kind, _key(raw))

        return Handlers(add=put, update=lambda old, new: put(new), delete=drop)

    def _foreign_group(self, kind: RawKind, raw: Raw) -> bool:
        """Another system's object came or changed; whether the group of its name is as it says."""
        spec, problems = read_group(kind, raw, self._priority_of)
        for problem in problems:
            _log.info("group is not as it should be", extra={"object": problem.about, "problem": problem.message})
        if spec is None:
            self._forget_group(kind, _key(raw))
            return False
        return self._take_group(kind, raw, spec)


def _key(raw: Raw) -> str:
    return f"{raw['metadata'].get('namespace', '')}/{raw['metadata']['name']}"


def _priority_class_of(group: PodGroup | Raw) -> str:
    if isinstance(group, PodGroup):
        return group.spec.priority_class_name
    return str((group.get("spec") or {}).get("priorityClassName") or "")
